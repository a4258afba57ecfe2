"""Every call about learners, described once; those about experiments are in `experiments`.

The two clients differ only in how they wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from . import replies
from .calls import JSON, Call, as_json, dumps, identified, loads, many, nothing, params_of, reader_of, segment
from .errors import Garbled, Refused, refusal
from .replies import Alias, Events, History, Learner, Learners, Outcome, Prediction, Retracted

Line = Prediction | Outcome | Refused

PIECE = 1 << 16
"""Bytes of a stream sent at once. An HTTP/1.1 client reads the reply after its body is out, and the service reads on
only when its replies are taken: a piece that fits the service's buffer can never make the two wait for each other."""


def create(name: str, spec: JSON) -> Call[Learner]:
    """Make a learner of a spec; if it is there with an equal spec, give it."""
    return Call("PUT", _learner(name), as_json(replies.learner), dumps(spec))


def learners(limit: int | None = None, cursor: str | None = None) -> Call[Learners]:
    """A page of learners in order of name."""
    return Call(
        "GET", "/v1/learners", as_json(replies.learners), params=params_of(limit=limit, cursor=cursor)
    )


def learner(name: str) -> Call[Learner]:
    """Spec, version, labels, progress, and what the theory proves."""
    return Call("GET", _learner(name), as_json(replies.learner))


def delete(name: str) -> Call[None]:
    """Remove a learner and all that belongs to it."""
    return Call("DELETE", _learner(name), nothing, absent_is_done=True)


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
    return Call("POST", _learner(name, "predict"), as_json(replies.prediction), dumps(body))


def predict_many(name: str, instances: Iterable[JSON]) -> Call[list[Prediction]]:
    """Decide on each instance of a batch; each may carry its own `top`, `explain`, `remember`, `min_version`, ..."""
    read = many("predictions", replies.prediction)
    return Call("POST", _learner(name, "predict"), as_json(read), dumps({"instances": list(instances)}))


def feedback(name: str, event: JSON) -> Call[Outcome]:
    """Learn from one event: an instance or a `prediction_id`, and the truth. Without an id it gets one."""
    return Call("POST", _learner(name, "feedback"), as_json(_outcome), dumps(identified(event)))


def feedback_many(name: str, events: Iterable[JSON]) -> Call[list[Outcome]]:
    """Learn from all events in order, or, if one is refused, from none."""
    body = {"events": [identified(event) for event in events]}
    return Call("POST", _learner(name, "feedback"), as_json(many("results", _outcome)), dumps(body))


def retract(
    name: str, *, feedback_id: str | None = None, prediction_id: str | None = None
) -> Call[Retracted]:
    """Withdraw one event."""
    body = params_of(feedback_id=feedback_id, prediction_id=prediction_id)
    return Call("POST", _learner(name, "retract"), as_json(reader_of(Retracted)), dumps(body))


def events(name: str, after: int = 0, limit: int | None = None) -> Call[Events]:
    """A page of the log."""
    return Call(
        "GET",
        _learner(name, "events"),
        as_json(reader_of(Events)),
        params=params_of(after=after, limit=limit),
    )


def history(name: str) -> Call[History]:
    """The learning curve."""
    return Call("GET", _learner(name, "history"), as_json(replies.history))


def snapshot(name: str) -> Call[bytes]:
    """The whole learner as one portable file."""
    return Call("GET", _learner(name, "snapshot"), bytes)


def restore(name: str, data: bytes) -> Call[Learner]:
    """Make a learner of such a file."""
    return Call(
        "PUT",
        _learner(name, "snapshot"),
        as_json(replies.learner),
        data,
        "application/octet-stream",
        repeatable=False,
    )


def alias(name: str, learner: str) -> Call[Alias]:
    """Let a second name stand for a learner, from now on."""
    path = f"/v1/aliases/{segment(name)}"
    return Call("PUT", path, as_json(reader_of(Alias)), dumps({"learner": learner}))


def live() -> Call[None]:
    """Whether the service runs."""
    return Call("GET", "/livez", nothing)


def ready() -> Call[None]:
    """Whether the service reaches its store."""
    return Call("GET", "/readyz", nothing)


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


def _line(content: bytes) -> Line:
    data = loads(content)
    if isinstance(data, dict) and "ranking" in data:
        return replies.prediction(data)
    if isinstance(data, dict) and isinstance(data.get("status"), int):
        return refusal(data["status"], data)
    return _outcome(data)


def _learner(name: str, call: str = "") -> str:
    return f"/v1/learners/{segment(name)}" + (f"/{call}" if call else "")


def _outcome(data: Any) -> Outcome:
    return replies.read(Outcome, data)
