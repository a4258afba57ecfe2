"""A call as plain data: what to send, how to read the reply, and whether it may be sent twice."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote
from uuid import uuid4

import msgspec

from .exceptions import BadRequest, InvalidResponse
from .payloads import JSON, Payload

T = TypeVar("T")

REPLY_LIMIT = 64 << 20
"""Bytes of a reply, unpacked: far above what the contract allows, far below what a machine has."""
SNAPSHOT_LIMIT = 2 << 30


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request and how to read its reply."""

    method: str
    path: str
    read: Callable[[bytes], T]
    content: bytes | None = None
    media_type: str = "application/json"
    params: dict[str, str] = field(default_factory=dict)
    repeatable: bool = True
    """Sending it again does no harm, even if the first one arrived."""
    absent_is_done: bool = False
    """A second attempt that meets 404 means that the first arrived."""
    limit: int = REPLY_LIMIT
    """Bytes of the reply, unpacked, above which it is refused."""


def identified(event: Payload) -> Payload:
    """The event with an id, so that it may be sent again."""
    if event.get("feedback_id") or event.get("prediction_id"):
        return event
    return {**event, "feedback_id": uuid4().hex}


def dumps(value: Any) -> bytes:
    """JSON, refusing what JSON has not; an array of numbers, a `vector` or the `rows` of items, is sent as base64."""
    try:
        return json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=packed
        ).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRequest(f"this is not JSON: {error}") from error


def packed(array: Any) -> str:
    """The base64 of little-endian float32 of what NumPy takes for an array: its own, and those of other libraries."""
    if not hasattr(array, "__array__") or not getattr(array, "shape", ()):
        raise TypeError(f"{type(array).__name__} has no JSON")
    numbers = array.__array__()
    if numbers.dtype.kind not in "fiu":
        raise TypeError(f"an array of {numbers.dtype} has no JSON")
    return base64.b64encode(numbers.astype("<f4").tobytes()).decode("ascii")


def encode(value: Any) -> bytes:
    """JSON of plain values that were checked before, several times as fast. NaN becomes null, which the service refuses."""
    try:
        return msgspec.json.encode(value, enc_hook=packed)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadRequest(f"this is not JSON: {error}") from error


@lru_cache(maxsize=64)
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def reply_of(kind: type[T]) -> Callable[[bytes], T]:
    """A reader of JSON replies that checks every type; too deep a nesting is as wrong as a wrong type."""
    decoder: msgspec.json.Decoder[T] = _decoder(cast(Hashable, kind))

    def read(content: bytes) -> T:
        try:
            return decoder.decode(content)
        except msgspec.ValidationError as error:
            raise InvalidResponse(f"a reply of another shape: {error}") from error
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise InvalidResponse(f"the reply is not JSON: {content[:80]!r} ({error})") from error

    return read


def convert(kind: type[T], data: object) -> T:
    """JSON that was read already, as `kind`."""
    try:
        return msgspec.convert(data, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidResponse(f"a reply of another shape: {error}") from error


def nothing(_: bytes) -> None:
    """A reply whose content does not matter."""


def text(content: bytes) -> str:
    """A reply of plain text."""
    return content.decode(errors="replace")


def segment(name: str) -> str:
    """A name as a part of a path."""
    if not isinstance(name, str) or not name or name.strip(".") == "":
        raise BadRequest(f"{name!r} is not a name")
    try:
        return quote(name, safe="")
    except UnicodeEncodeError as error:
        raise BadRequest(f"{name!r} is not a name: {error}") from error


def without_none(**values: object) -> JSON:
    """The values that were given."""
    return {key: value for key, value in values.items() if value is not None}


def params_of(**values: str | float | None) -> dict[str, str]:
    """The query parameters that were given."""
    return {key: str(value) for key, value in values.items() if value is not None}
