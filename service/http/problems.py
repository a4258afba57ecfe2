# ruff: noqa: N818  (as in errors.py: a name says what happened)
"""Maps every exception to an `application/problem+json` document (RFC 9457); docs/errors.md lists them."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from feedrank.learners.errors import InputError, SnapshotError, pointer
from feedrank.service.contract.faults import (
    NO_MEMORY,
    NotFound,
    ServiceError,
    StateDropped,
    StoreUnavailable,
    TimedOut,
    Unprocessable,
)
from feedrank.service.contract.headroom import dumps_small
from feedrank.service.contract.json_types import View
from feedrank.service.store import Damaged

MEDIA_TYPE = "application/problem+json"

log = logging.getLogger("feedrank.problems")


class MalformedJson(Unprocessable):
    """The body is not JSON at all."""

    status, type, title = 422, "malformed-json", "The body is not JSON"


class MethodNotAllowed(ServiceError):
    status, type, title = 405, "method-not-allowed", "The address does not support this method"

    @classmethod
    def at(cls, path: str, documented: Mapping[str, View]) -> MethodNotAllowed:
        """Names all methods of the address: the router only knows those of the first route that fits."""
        taken = {
            method.upper()
            for template, calls in documented.items()
            if re.fullmatch(re.sub(r"{\w+}", "[^/]+", template), path)
            for method in calls
        }
        allowed = ", ".join(sorted(taken or {"GET"}))
        return cls(f"use {allowed}", headers={"Allow": allowed})


class Refused(ServiceError):
    """What the HTTP layer refuses on its own account."""

    status, type, title = 400, "bad-request", "The request is not valid HTTP"


def describe(error: Exception) -> ServiceError:
    """The service error that stands for any exception; what nobody foresaw is logged and answered without details."""
    match error:
        case Unprocessable(errors=[]):
            # The contract promises places with every 422; without one, the whole body is the place.
            error.errors = [{"pointer": "", "detail": error.detail}]
            return error
        case ServiceError():
            return error
        case Damaged():
            log.error("what is stored is damaged: %s", error)
            return StoreUnavailable(f"what is stored is damaged: {error}")
        case InputError():
            return Unprocessable.at(error.pointer, error.detail)
        case SnapshotError():
            return Unprocessable.at("", str(error))
        case RequestValidationError():
            return _invalid(error.errors())
        case HTTPException(status_code=404):
            return NotFound("there is nothing at this address; /openapi.json lists what is")
        case HTTPException(status_code=status) if status < 500:
            return Refused(str(error.detail))
        case ClientDisconnect():
            return Refused("the connection ended before the request did")
        case MemoryError():
            log.error("there was not enough memory", exc_info=error)
            return StateDropped(NO_MEMORY)
        case TimeoutError():
            return TimedOut("the reply took too long; the same request may be sent again")
        case _:
            log.error("unforeseen error", exc_info=error)
            return ServiceError("the fault is ours; the log has it under the request id of this reply")


def _invalid(places: Any) -> Unprocessable:
    """Pydantic's findings on path and query parameters; the pointer names the parameter."""
    errors = [{"pointer": pointer(*place["loc"][1:]), "detail": str(place["msg"])} for place in places]
    return Unprocessable(f"{errors[0]['pointer']}: {errors[0]['detail']}", errors=errors)


def respond(error: Exception) -> Response:
    """The reply for an exception."""
    fault = describe(error)
    headers: Mapping[str, str] = fault.headers
    body = dumps_small(fault.problem()) + b"\n"
    return Response(body, status_code=fault.status, headers=headers, media_type=MEDIA_TYPE)
