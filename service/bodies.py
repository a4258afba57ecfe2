"""Request bodies: never more than the limit is read, and JSON means JSON (no NaN, no Infinity, no 1e999)."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import orjson
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from feedrank.learners.errors import pointer

from .errors import TooLarge, Unprocessable
from .problems import MalformedJson

JSON = dict[str, Any]


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The body, or TooLarge as soon as its length is announced or seen to pass `limit`; the rest is not read."""
    for name, value in scope["headers"]:
        if name == b"content-length" and int(value) > limit:
            raise too_large(limit)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        body: bytes = message.get("body", b"")
        if len(body) > limit:
            raise too_large(limit)
        return body
    chunks, size = [], 0
    while True:
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise too_large(limit)
        if not message.get("more_body", False):
            return b"".join(chunks)
        message = await receive()


def too_large(limit: int) -> TooLarge:
    """The refusal; the connection closes, since the rest of the body is still on it."""
    return TooLarge(f"the server takes at most {limit} bytes here", headers={"Connection": "close"})


def read_object(data: bytes) -> JSON:
    """The JSON object in `data`."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise refusal(data, str(error)) from None
    if not isinstance(value, dict):
        raise Unprocessable.at("", "must be a JSON object")
    return value


def refusal(data: bytes, reason: str) -> Unprocessable:
    """Why `data` is not JSON: the standard library also reads NaN and 1e999, so it can say where they stand."""
    place = None
    with contextlib.suppress(ValueError, RecursionError):
        place = non_finite(json.loads(data))
    if place is not None:
        return Unprocessable.at(pointer(*place), "must be a finite number")
    return MalformedJson.at("", reason)


def non_finite(value: Any) -> tuple[str | int, ...] | None:
    """The way to the first number that no double can hold."""
    match value:
        case dict() | list():
            for key, part in value.items() if isinstance(value, dict) else enumerate(value):
                if (place := non_finite(part)) is not None:
                    return (key, *place)
            return None
        case bool() | str() | None:
            return None
        case _:
            try:
                return None if math.isfinite(float(value)) else ()
            except OverflowError:
                return ()
