"""Routes of experiments."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from feedrank.service.contract.json_types import JSON
from feedrank.service.experiments.evaluation import Evaluation
from feedrank.service.experiments.manager import Experiments
from feedrank.service.http.bodies import Call, reach, reached, reply
from feedrank.service.http.openapi import Cursor, Documented, Name, call, described

from .round_calls import LATER

router = APIRouter(route_class=Call, tags=["experiments"])
ERASED_LATER: dict[int | str, Any] = {202: described("ErasedEverywhere", "some of it takes long and goes on")}
CREATED: dict[int | str, Any] = {201: described("Experiment", "made")}


def experiments(request: Request) -> Experiments:
    """The experiments of the app's host."""
    manager: Experiments = request.app.state.experiments
    return manager


@router.put("/v1/experiments/{name}", **call("admin", 409, 413, reply="Experiment", also=CREATED))
async def create_experiment(
    request: Request, name: Name, body: Annotated[JSON, Documented("Definition")]
) -> Response:
    """Make an experiment; 200 if it is there with an equal definition."""
    listed = [body.get("arms"), body.get("shadow"), [body.get("alias")]]
    reached(
        request, [name for own in listed if isinstance(own, list) for name in own if isinstance(name, str)]
    )
    info, made = await experiments(request).create(name, body)
    return reply(info, 201 if made else 200)


@router.get("/v1/experiments", **call("any", reply="ExperimentPage"))
async def list_experiments(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Cursor = None,
) -> Response:
    """The experiments in order of name."""
    return reply(await experiments(request).page(limit, cursor, reach(request)))


@router.get("/v1/experiments/{name}", **call("any", 404, reply="Experiment"))
async def experiment(request: Request, name: Name) -> Response:
    """Units, rounds and mean of each arm; differences with intervals that hold at every look; the verdict."""
    return reply(await experiments(request).info(name))


@router.get("/v1/experiments/{name}/history", **call("any", 404, reply="Past"))
async def experiment_history(request: Request, name: Name) -> Response:
    """The confidence sequences as they narrowed, in a bounded number of points."""
    return reply(await experiments(request).history(name))


@router.delete("/v1/experiments/{name}", **call("admin", 404, 409, status=204))
async def delete_experiment(request: Request, name: Name) -> Response:
    """Remove an experiment; its learners stay."""
    await experiments(request).delete(name)
    return Response(status_code=204)


@router.post(
    "/v1/experiments/{name}/predict",
    **call("predict", 404, 409, 410, 413, reply="ExperimentPrediction | ExperimentPredictions"),
)
async def experiment_predict(
    request: Request, name: Name, body: Annotated[JSON, Documented("ServeBody")]
) -> Response:
    """Decide by the unit's arm, or by a list drafted from all arms."""
    return reply(await experiments(request).predict(name, body))


@router.post(
    "/v1/experiments/{name}/feedback",
    **call("feedback", 404, 409, 410, 413, 507, reply="ExperimentOutcome | ExperimentOutcomes"),
)
async def experiment_feedback(
    request: Request, name: Name, body: Annotated[JSON, Documented("ExperimentFeedbackBody")]
) -> Response:
    """Credit the arms, and teach them; once, however often it is sent."""
    return reply(await experiments(request).feedback(name, body, request.headers.get("idempotency-key")))


@router.post(
    "/v1/experiments/{name}/clicks", **call("feedback", 404, 409, 410, 413, reply="ClicksSoFar", status=202)
)
async def experiment_clicks(
    request: Request, name: Name, body: Annotated[JSON, Documented("Clicks")]
) -> Response:
    """Join clicks to a prediction as they come; they count together when its window is over."""
    return reply(await experiments(request).clicks(name, body), 202)


@router.post(
    "/v1/experiments/{name}/retract",
    **call("feedback", 404, 409, 410, 413, 422, reply="Retracted | RetractedMany", also=LATER),
)
async def experiment_retract(
    request: Request, name: Name, body: Annotated[JSON, Documented("RetractBody")]
) -> Response:
    """Take an event back, out of the arms and out of the figures."""
    done = await experiments(request).retract(name, body)
    return reply(done, 200 if done["state"] == "done" else 202)


@router.post("/v1/experiments/{name}/assign", **call("predict", 404, 409, 413, reply="Assigned"))
async def assign(request: Request, name: Name, body: Annotated[JSON, Documented("AssignBody")]) -> Response:
    """The unit's arm, as an exposure, without ranking anything."""
    return reply(await experiments(request).assign(name, body))


@router.post(
    "/v1/experiments/{name}/events", **call("feedback", 404, 409, 413, 507, reply="UnitValue | UnitValues")
)
async def unit_events(
    request: Request, name: Name, body: Annotated[JSON, Documented("UnitEventBody")]
) -> Response:
    """A value of a unit, for a guardrail or a measure with `per`."""
    return reply(await experiments(request).events(name, body, request.headers.get("idempotency-key")))


@router.get("/v1/experiments/{name}/units", **call("admin", 404, 409, reply="UnitPage"))
async def units(
    request: Request,
    name: Name,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Cursor = None,
) -> Response:
    """Each unit with its arm, first exposure, values and segments: what the verdict is computed from."""
    return reply(await experiments(request).units(name, cursor, limit))


@router.post("/v1/experiments/{name}/ramp", **call("admin", 404, 409, 413, reply="Experiment"))
async def ramp(request: Request, name: Name, body: Annotated[JSON, Documented("RampBody")]) -> Response:
    """A larger share of the units; those who are in stay where they are."""
    return reply(await experiments(request).ramp(name, body))


@router.post("/v1/experiments/{name}/evaluate", **call("admin", 404, 409, 413, 422, reply="Evaluated"))
async def experiment_evaluate(
    request: Request, name: Name, body: Annotated[JSON, Documented("EvaluateBody")]
) -> Response:
    """What another ranker would have earned on this interleaved log, by clicks on what it puts first."""
    reached(request, [value for value in (body.get("learner"),) if isinstance(value, str)])
    return reply(await experiments(request).evaluate(name, body))


@router.post("/v1/learners/{name}/evaluate", **call("admin", 404, 409, 413, 422, reply="Evaluated"))
async def evaluate(
    request: Request, name: Name, body: Annotated[JSON, Documented("EvaluateBody")]
) -> Response:
    """What another learner would have lost or earned on this log; 409 where the log cannot tell."""
    reached(request, [value for value in (body.get("learner"),) if isinstance(value, str)])
    return reply(await Evaluation(request.app.state.host)(name, body))


@router.post("/v1/experiments/{name}/promote", **call("admin", 404, 409, 413, 422, reply="Experiment"))
async def promote(request: Request, name: Name, body: Annotated[JSON, Documented("Promotion")]) -> Response:
    """Switch the alias to the winner, for all replicas at once, and stop the experiment."""
    reached(request, [value for value in (body.get("alias"),) if isinstance(value, str)])
    return reply(await experiments(request).promote(name, body))


@router.post("/v1/experiments/{name}/pause", **call("admin", 404, 409, reply="Experiment"))
async def pause(request: Request, name: Name) -> Response:
    """Serve everybody by the first arm; what was served before still counts."""
    return reply(await experiments(request).step(name, "pause"))


@router.post("/v1/experiments/{name}/resume", **call("admin", 404, 409, reply="Experiment"))
async def resume(request: Request, name: Name) -> Response:
    """Take a paused experiment up again; every unit has its arm as before."""
    return reply(await experiments(request).step(name, "resume"))


@router.post("/v1/experiments/{name}/stop", **call("admin", 404, 409, reply="Experiment"))
async def stop(request: Request, name: Name) -> Response:
    """End it for good: nothing counts any more, arms go on learning from feedback."""
    return reply(await experiments(request).step(name, "stop"))


@router.post("/v1/erase", **call("admin", 409, 413, reply="ErasedEverywhere", also=ERASED_LATER))
async def erase_subject(request: Request, body: Annotated[JSON, Documented("EraseSubjectBody")]) -> Response:
    """Remove for good all that a subject brought, in all learners and experiments that the key reaches."""
    done = await experiments(request).erase(body, reach(request))
    return reply(done, 200 if done["state"] == "done" else 202)
