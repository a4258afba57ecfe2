"""All calls on experiments, as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import uuid4

from .calls import Call, dumps, identified, nothing, params_of, reply_of, segment, without_none
from .payloads import JSON, Payload
from .replies import Assigned, Experiment, Prediction, RetractedMany, UnitPage


def create_experiment(name: str, plan: Payload) -> Call[Experiment]:
    """Make an experiment: `arms`, `method`, `measure`, `confidence`."""
    return Call("PUT", _experiment(name), reply_of(Experiment), dumps(plan))


def experiment(name: str) -> Call[Experiment]:
    """An experiment as it stands: arms, differences, the verdict."""
    return Call("GET", _experiment(name), reply_of(Experiment))


def experiment_predict(name: str, unit: str | None, instance: Payload) -> Call[Prediction]:
    """Decide for a unit, by the arm it belongs to or by a list drafted from all. Without one it is a unit of its own."""
    return Call(
        "POST",
        _experiment(name, "predict"),
        reply_of(Prediction),
        dumps(instance if unit is None else {**instance, "unit": unit}),
    )


def experiment_feedback(name: str, event: Payload) -> Call[JSON]:
    """Credit the arms, and let every arm learn."""
    return Call("POST", _experiment(name, "feedback"), reply_of(JSON), dumps(identified(event)))


def experiment_clicks(name: str, prediction_id: str, ids: Iterable[str]) -> Call[None]:
    """Clicks as they come; when the window of the prediction is over they credit the arms as one event."""
    body = dumps({"prediction_id": prediction_id, "clicks": list(ids)})
    return Call("POST", _experiment(name, "clicks"), nothing, body)


def experiment_retract(
    name: str, *, feedback_id: str | None = None, prediction_id: str | None = None
) -> Call[JSON]:
    """Retract one event of the experiment, in every arm."""
    body = dumps(without_none(feedback_id=feedback_id, prediction_id=prediction_id))
    return Call("POST", _experiment(name, "retract"), reply_of(JSON), body)


def experiment_retract_many(name: str, events: Iterable[Payload]) -> Call[RetractedMany]:
    """Retract many events of the experiment, each `{"feedback_id"}` or `{"prediction_id"}`, in every arm."""
    body = dumps({"events": list(events)})
    return Call("POST", _experiment(name, "retract"), reply_of(RetractedMany), body)


def assign(
    name: str, unit: str, *, before: float | None = None, segments: Payload | None = None
) -> Call[Assigned]:
    """The unit's arm, as an exposure, without ranking anything."""
    # Without an id a second attempt would be a later exposure, by which a unit may be said to have returned.
    body = {"unit": unit, "prediction_id": uuid4().hex, **without_none(before=before, segments=segments)}
    return Call("POST", _experiment(name, "assign"), reply_of(Assigned), dumps(body))


def unit_event(
    name: str, unit: str, metric: str, value: float, *, feedback_id: str | None = None
) -> Call[JSON]:
    """A value of a unit, for a guardrail or a measure with `per`."""
    event = identified(
        {"unit": unit, "metric": metric, "value": value, **without_none(feedback_id=feedback_id)}
    )
    return Call("POST", _experiment(name, "events"), reply_of(JSON), dumps(event))


def units_page(name: str, limit: int | None = None, cursor: str | None = None) -> Call[UnitPage]:
    """A page of the units; `units` gives all of them."""
    params = params_of(limit=limit, cursor=cursor)
    return Call("GET", _experiment(name, "units"), reply_of(UnitPage), params=params)


def ramp(name: str, share: float) -> Call[Experiment]:
    """Let a larger share of the units in; those who are in stay where they are."""
    return _step(name, "ramp", {"share": share})


def experiments(limit: int | None = None, cursor: str | None = None) -> Call[JSON]:
    """A page of experiments in order of name: `experiments` and `next`."""
    return Call("GET", "/v1/experiments", reply_of(JSON), params=params_of(limit=limit, cursor=cursor))


def experiment_history(name: str) -> Call[JSON]:
    """How the confidence sequences narrowed."""
    return Call("GET", _experiment(name, "history"), reply_of(JSON))


def delete_experiment(name: str) -> Call[None]:
    """Remove an experiment; its learners stay."""
    return Call("DELETE", _experiment(name), nothing, absent_is_done=True)


def pause_experiment(name: str) -> Call[Experiment]:
    """Serve everybody by the first arm until it is resumed."""
    return _step(name, "pause")


def resume_experiment(name: str) -> Call[Experiment]:
    """Take a paused experiment up again."""
    return _step(name, "resume")


def stop_experiment(name: str) -> Call[Experiment]:
    """End it for good: nothing counts any more."""
    return _step(name, "stop")


def promote(name: str, *, arm: str | None = None, alias: str | None = None) -> Call[Experiment]:
    """Switch the alias to the winner, or to `arm`, and stop the experiment."""
    return _step(name, "promote", params_of(arm=arm, alias=alias))


def _step(name: str, step: str, body: Payload | None = None) -> Call[Experiment]:
    content = None if body is None else dumps(body)
    return Call("POST", _experiment(name, step), reply_of(Experiment), content)


def _experiment(name: str, call: str = "") -> str:
    return f"/v1/experiments/{segment(name)}" + (f"/{call}" if call else "")
