"""A call: what to send, how to read the reply, whether it may be sent twice. Plain data, made without a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

from . import replies
from .errors import BadRequest, Garbled
from .replies import Alias, Events, Experiment, Retracted

T = TypeVar("T")
R = TypeVar("R", Alias, Events, Experiment, Retracted)
JSON = Mapping[str, Any]


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
    """A second attempt that finds nothing means that the first arrived."""


def identified(event: JSON) -> JSON:
    """The event with an id, so that it may be sent again."""
    if event.get("feedback_id") or event.get("prediction_id"):
        return event
    return {**event, "feedback_id": uuid4().hex}


def dumps(value: Any) -> bytes:
    """JSON, refusing what JSON has not."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise BadRequest(f"this is not JSON: {error}") from error


def loads(content: bytes) -> Any:
    """JSON of a reply."""
    try:
        return json.loads(content)
    except ValueError as error:
        raise Garbled(f"the reply is not JSON: {content[:80]!r}") from error


def segment(name: str) -> str:
    """A name as a part of a path."""
    if not name or name.strip(".") == "":
        raise BadRequest(f"{name!r} is not a name")
    return quote(name, safe="")


def params_of(**values: str | int | None) -> dict[str, str]:
    """Query parameters, those left out left out."""
    return {key: str(value) for key, value in values.items() if value is not None}


def as_json(read: Callable[[Any], T]) -> Callable[[bytes], T]:
    """A reader of a JSON reply."""
    return lambda content: read(loads(content))


def reader_of(kind: type[R]) -> Callable[[Any], R]:
    """A reader of a reply of `kind`."""
    return lambda data: replies.read(kind, data)


def many(key: str, read: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    """A reader of the replies to a batch."""

    def reader(data: Any) -> list[T]:
        if not isinstance(data, dict) or not isinstance(data.get(key), list):
            raise Garbled(f"a reply to a batch must have a list {key!r}")
        return [read(one) for one in data[key]]

    return reader


def as_object(data: Any) -> dict[str, Any]:
    """A reply that is read as it is."""
    if not isinstance(data, dict):
        raise Garbled("the reply must be an object")
    return data


def nothing(_: bytes) -> None:
    """A reply without content."""
