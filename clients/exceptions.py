# ruff: noqa: N818  (a name says what happened; that it is an error, the base says)
"""The one exception tree of the clients.

ClientError
  BadRequest         never sent: it is not JSON, a name is empty, the address is no URL
  NoReply            no reply after every attempt: refused, cut off
    TimedOut
  InvalidResponse    a reply that is not what the contract says: not JSON, of other types, damaged, too long
  UnknownInput       asked for with `unknown="raise"`: the learner has not learned from something in the input
  Refused            a problem document: `status`, `type`, `title`, `detail`, `errors`
    Unauthorized 401   Forbidden 403   NotFound 404   Conflict 409   Gone 410   TooLarge 413   Invalid 422
    Unavailable 429, 502, 503, 504: still so after every attempt
"""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "BadRequest",
    "ClientError",
    "Conflict",
    "Forbidden",
    "Gone",
    "Invalid",
    "InvalidResponse",
    "NoReply",
    "NotFound",
    "Refused",
    "TimedOut",
    "TooLarge",
    "Unauthorized",
    "Unavailable",
    "UnknownInput",
]


class ClientError(Exception):
    """Whatever a call can raise."""


class BadRequest(ClientError):
    """The request cannot be written down; nothing was sent."""


class NoReply(ClientError):
    """The service did not answer. A feedback may have been learned: send it again with the same id."""


class TimedOut(NoReply):
    """It took longer than the timeout."""


class InvalidResponse(ClientError):
    """The reply is not what the contract says; is this the address of a feedrank service?"""


class UnknownInput(ClientError):
    """The learner has not learned from something in this input; asked for with `predict(..., unknown="raise")`."""


class Refused(ClientError):
    """The service refused, and nothing changed. `errors` holds `{"pointer", "detail"}` of each wrong place."""

    statuses: ClassVar[tuple[int, ...]] = ()

    def __init__(self, status: int, problem: object) -> None:
        """`problem` is whatever came: a proxy's page or a damaged document is a refusal without a reason."""
        fields: dict[str, Any] = problem if isinstance(problem, dict) else {}
        places = fields.get("errors")
        self.status = status
        self.type: str = str(fields.get("type", "about:blank"))
        self.title: str = str(fields.get("title", ""))
        self.detail: str = str(fields.get("detail", ""))
        self.errors: list[dict[str, str]] = [
            {key: str(place.get(key, "")) for key in ("pointer", "detail")}
            for place in (places if isinstance(places, list) else [])
            if isinstance(place, dict)
        ]
        where = (
            f"{self.errors[0]['pointer']}: " if len(self.errors) == 1 and self.errors[0]["pointer"] else ""
        )
        super().__init__(f"{status} {where}{self.detail or self.title or 'no reason given'}")


class Unauthorized(Refused):
    statuses: ClassVar[tuple[int, ...]] = (401,)


class Forbidden(Refused):
    statuses: ClassVar[tuple[int, ...]] = (403,)


class NotFound(Refused):
    statuses: ClassVar[tuple[int, ...]] = (404,)


class Conflict(Refused):
    statuses: ClassVar[tuple[int, ...]] = (409,)


class Gone(Refused):
    statuses: ClassVar[tuple[int, ...]] = (410,)


class TooLarge(Refused):
    statuses: ClassVar[tuple[int, ...]] = (413,)


class Invalid(Refused):
    statuses: ClassVar[tuple[int, ...]] = (422,)


class Unavailable(Refused):
    statuses: ClassVar[tuple[int, ...]] = (429, 502, 503, 504)


_BY_STATUS = {status: kind for kind in Refused.__subclasses__() for status in kind.statuses}


def refusal(status: int, problem: object) -> Refused:
    """The error of a problem document."""
    return _BY_STATUS.get(status, Refused)(status, problem)
