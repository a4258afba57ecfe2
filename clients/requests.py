"""All calls on learners, as plain data; those on experiments are in `experiment_requests`.

The two clients differ only in how they wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .calls import (
    SNAPSHOT_LIMIT,
    Call,
    convert,
    dumps,
    identified,
    nothing,
    packed,
    params_of,
    reply_of,
    segment,
    text,
    without_none,
)
from .exceptions import BadRequest, InvalidResponse, Refused, refusal
from .payloads import JSON, Payload
from .replies import (
    Alias,
    Aliases,
    ClicksSoFar,
    Erased,
    ErasedEverywhere,
    Events,
    History,
    LabelCounts,
    Learner,
    Learners,
    Outcome,
    Outcomes,
    Prediction,
    Predictions,
    Queue,
    Reliability,
    Renamed,
    Retracted,
    RetractedMany,
    RewardSoFar,
    Weights,
)
from .unknown_input import reader

StreamReply = Prediction | Outcome | Refused

PIECE = 1 << 16
"""Bytes of a stream sent at once. An HTTP/1.1 client reads the reply after its body is out, and the service reads on
only when its replies are taken: a piece that fits the service's buffer can never make the two wait for each other."""

_learner = reply_of(Learner)
_anything = reply_of(object)
_predictions = reply_of(Predictions)
_outcomes = reply_of(Outcomes)


def create(name: str, spec: Payload) -> Call[Learner]:
    """Make a learner of a spec; if it is there with an equal spec, give it."""
    return Call("PUT", _path(name), _learner, dumps(spec))


def learners(limit: int | None = None, cursor: str | None = None) -> Call[Learners]:
    """A page of learners in order of name."""
    params = params_of(limit=limit, cursor=cursor)
    return Call("GET", "/v1/learners", reply_of(Learners), params=params)


def learner(name: str) -> Call[Learner]:
    """Spec, version, labels, progress, and what the theory proves."""
    return Call("GET", _path(name), _learner)


def delete(name: str) -> Call[None]:
    """Remove a learner and all that belongs to it, or an alias."""
    return Call("DELETE", _path(name), nothing, absent_is_done=True)


def predict(
    name: str,
    instance: Payload,
    *,
    top: int | None = None,
    explain: bool = False,
    coverage: bool = False,
    remember: bool = True,
    min_margin: float | None = None,
    min_precision: float | None = None,
    promise: str | None = None,
    min_version: int | None = None,
    loss: str | None = None,
    exclude: Sequence[str] | None = None,
    prediction_id: str | None = None,
    subject: str | None = None,
    unknown: str = "warn",
) -> Call[Prediction]:
    """Decide on `{"features": ...}`, `{"text": ...}`, `{"vector": ...}`, these together, or `{"items": ...}`.

    With a `prediction_id` of your own the same request, sent again, replies as the first time. By its `subject`, all that
    is kept of somebody can be erased. `unknown`: see `unknown_input`.
    """
    options = without_none(
        top=top,
        min_margin=min_margin,
        min_precision=min_precision,
        promise=promise,
        min_version=min_version,
        loss=loss,
        exclude=None if exclude is None else list(exclude),
        prediction_id=prediction_id,
        subject=subject,
        explain=True if explain else None,
        coverage=True if coverage else None,
        remember=None if remember else False,
    )
    return Call("POST", _path(name, "predict"), reader(name, unknown), dumps({**instance, **options}))


def predict_many(name: str, instances: Iterable[Payload]) -> Call[list[Prediction]]:
    """Decide on each instance of a batch; each may carry its own `top`, `explain`, `remember`, `min_version`, ..."""
    body = dumps({"instances": list(instances)})
    return Call("POST", _path(name, "predict"), lambda content: _predictions(content).predictions, body)


def feedback(
    name: str, event: Payload, *, weight: float | None = None, subject: str | None = None
) -> Call[Outcome]:
    """Learn from one event: an instance or a `prediction_id`, and the truth. It counts `weight` times.

    Without an id it gets one, so that it is learned once however often it must be sent.
    """
    body = dumps({**identified(event), **without_none(weight=weight, subject=subject)})
    return Call("POST", _path(name, "feedback"), reply_of(Outcome), body)


def feedback_many(name: str, events: Iterable[Payload]) -> Call[list[Outcome]]:
    """Learn from all events in order, or, if one is refused, from none. Each may carry its own `weight`."""
    body = dumps({"events": [identified(event) for event in events]})
    return Call("POST", _path(name, "feedback"), lambda content: _outcomes(content).results, body)


def clicks(name: str, prediction_id: str, ids: Iterable[str]) -> Call[ClicksSoFar]:
    """Clicks as they come. They join the prediction, and become one event when its window (`wait`) is over."""
    body = dumps({"prediction_id": prediction_id, "clicks": list(ids)})
    return Call("POST", _path(name, "clicks"), reply_of(ClicksSoFar), body)


def queue(
    name: str, limit: int | None = None, *, lease: float | None = None, cursor: str | None = None
) -> Call[Queue]:
    """Remembered predictions without an answer, the least certain first; `lease` seconds nobody else gets them."""
    params = params_of(limit=limit, lease=lease, cursor=cursor)
    return Call("GET", _path(name, "queue"), reply_of(Queue), params=params)


def rewards(
    name: str, prediction_id: str, part: str, reward: float | Mapping[str, float]
) -> Call[RewardSoFar]:
    """A part of a choice's reward. The parts add up to one event when its window (`wait`) is over; each counts once."""
    body = dumps({"prediction_id": prediction_id, "part": part, "reward": reward})
    return Call("POST", _path(name, "rewards"), reply_of(RewardSoFar), body)


def retract(
    name: str, *, feedback_id: str | None = None, prediction_id: str | None = None
) -> Call[Retracted]:
    """Retract one event: the learner becomes what it would be without it."""
    body = dumps(without_none(feedback_id=feedback_id, prediction_id=prediction_id))
    return Call("POST", _path(name, "retract"), reply_of(Retracted), body)


def retract_many(name: str, events: Iterable[Payload]) -> Call[RetractedMany]:
    """Retract many events, each `{"feedback_id"}` or `{"prediction_id"}`: all or none, and folded again once."""
    return Call("POST", _path(name, "retract"), reply_of(RetractedMany), dumps({"events": list(events)}))


def rename_label(name: str, old: str, new: str) -> Call[Renamed]:
    """Call a label by another name, or merge it into another label: all feedback for `old` means `new`."""
    return Call("POST", _path(name, "labels"), reply_of(Renamed), dumps({"rename": {old: new}}))


def erase(
    name: str, *, feedback_id: str | None = None, prediction_id: str | None = None, subject: str | None = None
) -> Call[Erased]:
    """Retract events, and remove for good what they held; what stays are checksums."""
    body = dumps(without_none(feedback_id=feedback_id, prediction_id=prediction_id, subject=subject))
    return Call("POST", _path(name, "erase"), reply_of(Erased), body)


def erase_subject(subject: str) -> Call[ErasedEverywhere]:
    """The same for all that a subject brought, in all learners and experiments that the key reaches."""
    return Call("POST", "/v1/erase", reply_of(ErasedEverywhere), dumps({"subject": subject}))


def evaluate(
    name: str,
    *,
    spec: Payload | None = None,
    learner: str | None = None,
    policy: Payload | str | None = None,
    segments: Sequence[str] | None = None,
) -> Call[JSON]:
    """What another spec, learner or policy would have lost or earned on this learner's log."""
    body = dumps(without_none(spec=spec, learner=learner, policy=policy, segments=segments))
    return Call("POST", _path(name, "evaluate"), reply_of(JSON), body)


def events(name: str, after: int = 0, limit: int | None = None) -> Call[Events]:
    """A page of the log."""
    params = params_of(after=after, limit=limit)
    return Call("GET", _path(name, "events"), reply_of(Events), params=params)


def history(name: str, points: int | None = None) -> Call[History]:
    """The learning curve, in at most so many points."""
    return Call("GET", _path(name, "history"), reply_of(History), params=params_of(points=points))


def labels(name: str, limit: int | None = None) -> Call[LabelCounts]:
    """The labels by how often they were true, with the mistakes among them."""
    return Call("GET", _path(name, "labels"), reply_of(LabelCounts), params=params_of(limit=limit))


def reliability(name: str) -> Call[Reliability]:
    """What decisions were worth, by stated probability and label, each as it was before its event."""
    return Call("GET", _path(name, "reliability"), reply_of(Reliability))


def weights(name: str, label: str | None = None, limit: int | None = None) -> Call[Weights]:
    """The features that count most for a label and against it; no label in subset ranking."""
    params = params_of(label=label, limit=limit)
    return Call("GET", _path(name, "weights"), reply_of(Weights), params=params)


def snapshot(name: str) -> Call[bytes]:
    """The whole learner as one portable file."""
    return Call("GET", _path(name, "snapshot"), bytes, limit=SNAPSHOT_LIMIT)


def restore(name: str, data: bytes) -> Call[Learner]:
    """Make a learner of such a file."""
    media_type = "application/octet-stream"
    return Call("PUT", _path(name, "snapshot"), _learner, data, media_type, repeatable=False)


def alias(name: str, learner: str) -> Call[Alias]:
    """Let a second name stand for a learner, from now on."""
    return Call("PUT", f"/v1/aliases/{segment(name)}", reply_of(Alias), dumps({"learner": learner}))


def aliases(limit: int | None = None, cursor: str | None = None) -> Call[Aliases]:
    """A page of aliases in order of name."""
    return Call("GET", "/v1/aliases", reply_of(Aliases), params=params_of(limit=limit, cursor=cursor))


def live() -> Call[None]:
    """Whether the service runs."""
    return Call("GET", "/livez", nothing)


def ready() -> Call[None]:
    """Whether the service reaches its store."""
    return Call("GET", "/readyz", nothing)


def metrics() -> Call[str]:
    """Prometheus' text."""
    return Call("GET", "/metrics", text)


def item_table(ids: Sequence[str], columns: Sequence[str], rows: Any) -> JSON:
    """A list to rank as one table: `rows[i][j]` is the value of feature `columns[j]` of item `ids[i]`.

    Shorter on the wire, and faster to read, than the features of each item by name. Rows of a NumPy array of float32 go as
    the base64 of its bytes.
    """
    if str(getattr(rows, "dtype", "")) == "float32":
        if rows.shape != (len(ids), len(columns)):
            raise BadRequest(
                f"{len(ids)} ids and {len(columns)} columns need as many rows of as many numbers"
            )
        return {"items": {"ids": list(ids), "columns": list(columns), "rows": packed(rows)}}
    table = [[float(value) for value in row] for row in rows]
    if len(table) != len(ids) or any(len(row) != len(columns) for row in table):
        raise BadRequest(f"{len(ids)} ids and {len(columns)} columns need as many rows of as many numbers")
    return {"items": {"ids": list(ids), "columns": list(columns), "rows": table}}


def line(entry: Payload) -> bytes:
    """One line of a stream: `{"predict": {...}}` or `{"feedback": {...}}`."""
    if isinstance(entry.get("feedback"), dict):
        entry = {"feedback": identified(entry["feedback"])}
    return dumps(entry) + b"\n"


def piece(name: str, lines: Sequence[bytes]) -> Call[list[StreamReply]]:
    """Some lines of a stream as one request."""

    def read(content: bytes) -> list[StreamReply]:
        answers = [_line(one) for one in content.splitlines() if one.strip()]
        if len(answers) != len(lines):
            raise InvalidResponse(f"{len(lines)} lines were sent, {len(answers)} came back")
        return answers

    return Call("POST", _path(name, "stream"), read, b"".join(lines), "application/x-ndjson")


class Pieces:
    """Lines in order, as many together as `PIECE` allows, but at least one."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = 0

    def add(self, line: bytes) -> list[bytes]:
        """The piece that is full before this line, or nothing."""
        full = self.rest() if self._size + len(line) > PIECE else []
        self._lines.append(line)
        self._size += len(line)
        return full

    def rest(self) -> list[bytes]:
        """What is left."""
        lines, self._lines, self._size = self._lines, [], 0
        return lines


def _line(content: bytes) -> StreamReply:
    data = _anything(content)
    if not isinstance(data, dict):
        raise InvalidResponse(f"a line of a stream must be an object: {content[:80]!r}")
    if "ranking" in data:
        return convert(Prediction, data)
    if isinstance(data.get("status"), int):
        return refusal(data["status"], data)
    return convert(Outcome, data)


def _path(name: str, call: str = "") -> str:
    return f"/v1/learners/{segment(name)}" + (f"/{call}" if call else "")
