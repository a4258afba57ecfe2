"""Every call of the contract, described once: what to send, how to read the reply, whether it may be sent twice.

The two clients differ only in how they wait. A description is plain data, so it can be made and tested without a server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

from . import replies
from .errors import BadRequest, Garbled, Refused, refusal
from .replies import Alias, Events, Experiment, History, Learner, Learners, Outcome, Prediction, Retracted

T = TypeVar("T")
R = TypeVar("R", Alias, Events, Experiment, Retracted)
JSON = Mapping[str, Any]
Line = Prediction | Outcome | Refused

PIECE = 1 << 16
"""Bytes of a stream sent at once. An HTTP/1.1 client reads the reply after its body is out, and the service reads on
only when its replies are taken: a piece that fits the service's buffer can never make the two wait for each other."""


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


def create(name: str, spec: JSON) -> Call[Learner]:
    """Make a learner of a spec; if it is there with an equal spec, give it."""
    return Call("PUT", _learner(name), _json(replies.learner), dumps(spec))


def learners(limit: int | None = None, cursor: str | None = None) -> Call[Learners]:
    """A page of learners in order of name."""
    return Call("GET", "/v1/learners", _json(replies.learners), params=_params(limit=limit, cursor=cursor))


def learner(name: str) -> Call[Learner]:
    """Spec, version, labels, progress, and what the theory proves."""
    return Call("GET", _learner(name), _json(replies.learner))


def delete(name: str) -> Call[None]:
    """Remove a learner and all that belongs to it."""
    return Call("DELETE", _learner(name), _nothing, absent_is_done=True)


def predict(
    name: str,
    instance: JSON,
    *,
    top: int | None = None,
    explain: bool = False,
    remember: bool = True,
    min_margin: float | None = None,
    min_version: int | None = None,
    loss: str | None = None,
) -> Call[Prediction]:
    """Decide on `{"features": ...}` or `{"items": ...}`."""
    options = {"top": top, "min_margin": min_margin, "min_version": min_version, "loss": loss}
    body = {**instance, **{key: value for key, value in options.items() if value is not None}}
    body |= {"explain": True} if explain else {}
    body |= {} if remember else {"remember": False}
    return Call("POST", _learner(name, "predict"), _json(replies.prediction), dumps(body))


def predict_many(name: str, instances: Iterable[JSON]) -> Call[list[Prediction]]:
    """Decide on each instance of a batch; each may carry its own `top`, `explain`, `remember`, `min_version`, ..."""
    read = _many("predictions", replies.prediction)
    return Call("POST", _learner(name, "predict"), _json(read), dumps({"instances": list(instances)}))


def feedback(name: str, event: JSON) -> Call[Outcome]:
    """Learn from one event: an instance or a `prediction_id`, and the truth. Without an id it gets one."""
    return Call("POST", _learner(name, "feedback"), _json(_outcome), dumps(identified(event)))


def feedback_many(name: str, events: Iterable[JSON]) -> Call[list[Outcome]]:
    """Learn from all events in order, or, if one is refused, from none."""
    body = {"events": [identified(event) for event in events]}
    return Call("POST", _learner(name, "feedback"), _json(_many("results", _outcome)), dumps(body))


def retract(
    name: str, *, feedback_id: str | None = None, prediction_id: str | None = None
) -> Call[Retracted]:
    """Withdraw one event."""
    body = _params(feedback_id=feedback_id, prediction_id=prediction_id)
    return Call("POST", _learner(name, "retract"), _json(_reader(Retracted)), dumps(body))


def events(name: str, after: int = 0, limit: int | None = None) -> Call[Events]:
    """A page of the log."""
    return Call(
        "GET",
        _learner(name, "events"),
        _json(_reader(Events)),
        params=_params(after=after, limit=limit),
    )


def history(name: str) -> Call[History]:
    """The learning curve."""
    return Call("GET", _learner(name, "history"), _json(replies.history))


def snapshot(name: str) -> Call[bytes]:
    """The whole learner as one portable file."""
    return Call("GET", _learner(name, "snapshot"), bytes)


def restore(name: str, data: bytes) -> Call[Learner]:
    """Make a learner of such a file."""
    return Call(
        "PUT",
        _learner(name, "snapshot"),
        _json(replies.learner),
        data,
        "application/octet-stream",
        repeatable=False,
    )


def alias(name: str, learner: str) -> Call[Alias]:
    """Let a second name stand for a learner, from now on."""
    path = f"/v1/aliases/{_segment(name)}"
    return Call("PUT", path, _json(_reader(Alias)), dumps({"learner": learner}))


def create_experiment(name: str, plan: JSON) -> Call[Experiment]:
    """Make an experiment: `arms`, `method`, `measure`, `confidence`."""
    return Call("PUT", _experiment(name), _json(_reader(Experiment)), dumps(plan))


def experiment(name: str) -> Call[Experiment]:
    """An experiment as it stands: arms, differences, the verdict."""
    return Call("GET", _experiment(name), _json(_reader(Experiment)))


def experiment_predict(name: str, unit: str | None, instance: JSON) -> Call[Prediction]:
    """Decide for a unit, by the arm it belongs to or by a list drafted from all. Without one it is a unit of its own."""
    return Call(
        "POST",
        _experiment(name, "predict"),
        _json(replies.prediction),
        dumps(instance if unit is None else {**instance, "unit": unit}),
    )


def experiment_feedback(name: str, event: JSON) -> Call[dict[str, Any]]:
    """Credit the arms, and let every arm learn."""
    return Call("POST", _experiment(name, "feedback"), _json(_object), dumps(identified(event)))


def live() -> Call[None]:
    """Whether the service runs."""
    return Call("GET", "/livez", _nothing)


def ready() -> Call[None]:
    """Whether the service reaches its store."""
    return Call("GET", "/readyz", _nothing)


def metrics() -> Call[str]:
    """Prometheus' text."""
    return Call("GET", "/metrics", bytes.decode)


def line(entry: JSON) -> bytes:
    """One line of a stream: `{"predict": {...}}` or `{"feedback": {...}}`."""
    if "feedback" in entry:
        entry = {"feedback": identified(entry["feedback"])}
    return dumps(entry) + b"\n"


def piece(name: str, lines: Sequence[bytes]) -> Call[list[Line]]:
    """Some lines of a stream as one request."""

    def read(content: bytes) -> list[Line]:
        found = [_line(one) for one in content.splitlines() if one.strip()]
        if len(found) != len(lines):
            raise Garbled(f"{len(lines)} lines were sent, {len(found)} came back")
        return found

    return Call("POST", _learner(name, "stream"), read, b"".join(lines), "application/x-ndjson")


def pieces(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Lines in order, as many together as `PIECE` allows, but at least one."""
    held: list[bytes] = []
    size = 0
    for one in lines:
        if held and size + len(one) > PIECE:
            yield held
            held, size = [], 0
        held.append(one)
        size += len(one)
    if held:
        yield held


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


def _line(content: bytes) -> Line:
    data = loads(content)
    if isinstance(data, dict) and "ranking" in data:
        return replies.prediction(data)
    if isinstance(data, dict) and isinstance(data.get("status"), int):
        return refusal(data["status"], data)
    return _outcome(data)


def _learner(name: str, call: str = "") -> str:
    return f"/v1/learners/{_segment(name)}" + (f"/{call}" if call else "")


def _experiment(name: str, call: str = "") -> str:
    return f"/v1/experiments/{_segment(name)}" + (f"/{call}" if call else "")


def _segment(name: str) -> str:
    if not name or name.strip(".") == "":
        raise BadRequest(f"{name!r} is not a name")
    return quote(name, safe="")


def _params(**values: str | int | None) -> dict[str, str]:
    return {key: str(value) for key, value in values.items() if value is not None}


def _json(read: Callable[[Any], T]) -> Callable[[bytes], T]:
    return lambda content: read(loads(content))


def _reader(kind: type[R]) -> Callable[[Any], R]:
    return lambda data: replies.read(kind, data)


def _outcome(data: Any) -> Outcome:
    return replies.read(Outcome, data)


def _many(key: str, read: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    def reader(data: Any) -> list[T]:
        if not isinstance(data, dict) or not isinstance(data.get(key), list):
            raise Garbled(f"a reply to a batch must have a list {key!r}")
        return [read(one) for one in data[key]]

    return reader


def _object(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise Garbled("the reply must be an object")
    return data


def _nothing(_: bytes) -> None:
    return None
