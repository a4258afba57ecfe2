# ruff: noqa: N818  (a name says what happened; that it is an error, the base says)
"""The one exception tree of the service; the HTTP edge turns each into a problem document, and nowhere else.

ServiceError
  Unauthorized 401   Forbidden 403   NotFound 404   Conflict 409   Gone 410   TooLarge 413   Unprocessable 422
  StoreUnavailable 503 (StateDropped, MemoryFull, NotReady)   TimedOut 503   StorageFull 507
  StoreRefused       at start only: the store cannot be used and was not touched
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from .json_types import JSON

__all__ = [
    "Conflict",
    "Forbidden",
    "Gone",
    "MemoryFull",
    "NotFound",
    "NotReady",
    "ServiceError",
    "StateDropped",
    "StorageFull",
    "StoreRefused",
    "StoreUnavailable",
    "TimedOut",
    "TooLarge",
    "Unauthorized",
    "Unprocessable",
]


class ServiceError(Exception):
    """A request that cannot be served: `status`, a stable `type` and `title` by class; `detail` says what to do."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"

    def __init__(
        self,
        detail: str,
        *,
        errors: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = [dict(error) for error in errors]
        self.headers = dict(headers or {})

    def problem(self) -> JSON:
        """The RFC 9457 document of this error."""
        document: JSON = {
            "type": self.type,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        if self.errors:
            document["errors"] = self.errors
        return document


class Unauthorized(ServiceError):
    status, type, title = 401, "unauthorized", "A key is needed"

    def __init__(self, detail: str = "send `Authorization: Bearer KEY` with a valid key") -> None:
        super().__init__(detail, headers={"WWW-Authenticate": "Bearer"})


class Forbidden(ServiceError):
    status, type, title = 403, "forbidden", "The key does not allow this"


class NotFound(ServiceError):
    status, type, title = 404, "not-found", "Not found"


class Conflict(ServiceError):
    status, type, title = 409, "conflict", "Conflict with what is there"


class Gone(ServiceError):
    status, type, title = 410, "gone", "Expired"


class TooLarge(ServiceError):
    status, type, title = 413, "too-large", "The body is too large"


class Unprocessable(ServiceError):
    """The request is wrong; `errors` holds `{"pointer", "detail"}`, the pointer an RFC 6901 path into the body."""

    status, type, title = 422, "unprocessable", "The request is not valid"

    @classmethod
    def at(cls, pointer: str, detail: str) -> Unprocessable:
        """One error at one place."""
        return cls(detail, errors=[{"pointer": pointer, "detail": detail}])

    def under(self, prefix: str) -> Unprocessable:
        """The same error seen from a document that holds this one at `prefix`, e.g. `/events/3`."""
        moved = [{**error, "pointer": prefix + error["pointer"]} for error in self.errors]
        return Unprocessable(self.detail, errors=moved, headers=self.headers)


class StoreUnavailable(ServiceError):
    """The store did not take or give the data; nothing was acknowledged, and the same request may be sent again."""

    status, type, title = 503, "store-unavailable", "The store is unavailable"

    def __init__(self, detail: str, *, retry_after: int = 1) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after)})


class StateDropped(StoreUnavailable):
    """A fault of this process, not of the request: the learner is folded again from its log, and nothing is lost."""

    status, type, title = 503, "state-dropped", "The learner is being rebuilt"


NO_MEMORY = "the server has not enough memory for this: send it again later"


class MemoryFull(StoreUnavailable):
    """There is no memory for it now: nothing was begun, and the same request may be sent again."""

    status, type, title = 503, "memory-full", "There is no memory for this now"

    def __init__(self, detail: str, *, retry_after: int = 5) -> None:
        super().__init__(detail, retry_after=retry_after)


class NotReady(StoreUnavailable):
    """A check of `/readyz` fails: `checks` says why, by its name, and nothing for those that pass."""

    def __init__(self, checks: Mapping[str, str]) -> None:
        failing = {name: reason for name, reason in checks.items() if reason}
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in failing.items()))
        self.checks = {name: reason or "ok" for name, reason in checks.items()}

    def problem(self) -> JSON:
        return super().problem() | {"checks": self.checks}


class TimedOut(ServiceError):
    status, type, title = 503, "timed-out", "It took too long"

    def __init__(self, detail: str, *, retry_after: int = 1) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after)})


class StorageFull(ServiceError):
    status, type, title = 507, "storage-full", "A storage limit is reached"


class StoreRefused(ServiceError):
    """The store at this address cannot be used (locked, foreign, newer, damaged, not writable) and is untouched."""

    status, type, title = 503, "store-refused", "The store cannot be opened"


def no_such(title: str) -> NotFound:
    """A learner or an experiment, by its title."""
    return NotFound(f"there is no {title}")


def name_taken(name: str) -> Conflict:
    """Somebody else was faster."""
    return Conflict(f"the name {name!r} was taken by another request")


def being_rebuilt(title: str) -> StateDropped:
    """The state was dropped, and is folded from its log again."""
    return StateDropped(f"{title} is being rebuilt: send it again")


def newer_store(place: object, layout: int) -> StoreRefused:
    """An older release does not know what a later one has stored."""
    return StoreRefused(f"{place} was written by a newer feedrank (layout {layout}): upgrade feedrank")


def no_store(place: object) -> StoreRefused:
    """What is only read must be there."""
    return StoreRefused(f"there is no store at {place}")


def stopped(experiment: str) -> Conflict:
    """A stopped experiment stays so."""
    return Conflict(f"the experiment {experiment!r} is stopped: make a new one")
