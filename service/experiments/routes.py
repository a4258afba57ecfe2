"""The calls of experiments, as thin as those of learners."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field, RootModel
from starlette.responses import Response

from ..bodies import JSON
from ..calls import Call, Documented, Name, call, reached, reply
from ..keys import Key
from ..schemas import FeedbackOne, Options, PredictOne
from .manager import Experiments

router = APIRouter(route_class=Call, tags=["experiments"])


class Definition(BaseModel):
    """Two or more learners against each other."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"arms": ["old", "new"], "method": "split", "measure": "loss"}]},
    )
    arms: list[str] = Field(
        min_length=2, description="learners of one task; the first serves who does not take part"
    )
    method: str = Field("split", pattern="^(split|interleave)$")
    measure: str | None = Field(
        None, description="`loss`, a loss of the task, `reward`, `clicks@k`, `reciprocal-rank`"
    )
    confidence: float = Field(0.95, gt=0.5, lt=1)
    weights: dict[str, float] | None = Field(
        None, description="share of units of each arm; equal if left out"
    )
    share: float = Field(1, gt=0, le=1, description="of the units take part")
    learn: Literal["all", "served"] | list[str] = Field(
        "all", description="which arms learn from feedback: `all`, the one that `served`, or those named"
    )
    shadow: list[str] = Field([], description="learners that predict and learn, but never serve")
    alias: str | None = Field(None, description="the name that `promote` switches")
    seed: str | None = Field(None, description="key of the assignment; the experiment's name if left out")
    count: str = Field("units", pattern="^(units|rounds)$")


class Asked(PredictOne):
    """One instance, and the unit it is for."""

    unit: str | None = Field(None, description="who is served: always by the same arm")


class AskedMany(Options):
    """Many instances, each with its unit."""

    model_config = ConfigDict(extra="forbid")
    instances: list[Asked] = Field(min_length=1)


class AskedBody(RootModel[Asked | AskedMany]):
    """One instance, or a batch."""


class Told(FeedbackOne):
    """One event; a reward if that is what is measured."""

    unit: str | None = None
    reward: float | None = Field(None, ge=0, le=1)


class ToldMany(BaseModel):
    """Many events, all applied in order or none."""

    model_config = ConfigDict(extra="forbid")
    events: list[Told] = Field(min_length=1)


class ToldBody(RootModel[Told | ToldMany]):
    """One event, or a batch."""


class Promotion(BaseModel):
    """Which arm, and under which name."""

    model_config = ConfigDict(extra="forbid")
    arm: str | None = Field(None, description="the verdict's, if left out")
    alias: str | None = Field(None, description="the definition's, if left out")


class Difference(BaseModel):
    """One pair of arms: the running difference of their measures, first less second, with its interval."""

    arms: list[str]
    difference: float | None
    lower: float
    upper: float
    rounds: int
    better: str | None


class Experiment(BaseModel):
    """A definition, and what may be said now; intervals and verdict hold at every look."""

    name: str
    definition: Definition
    status: str
    arms: dict[str, dict[str, Any]] = Field(description="units, rounds and mean of each")
    differences: list[Difference]
    verdict: str = Field(description="an arm, or `undecided`")
    more_rounds: int | None = Field(
        description="that a verdict would take at the present effect; null if there is none"
    )


class Moment(BaseModel):
    """The intervals as they were after so many events, in the order of `arms`."""

    events: int
    differences: list[dict[str, Any]] = Field(description="rounds, difference, lower and upper of each pair")


class Past(BaseModel):
    """How the confidence sequences narrowed; the last point is now."""

    version: int
    arms: list[list[str]] = Field(description="the pairs")
    points: list[Moment]


def experiments(request: Request) -> Experiments:
    """The experiments of the app's host."""
    state = request.app.state
    held: Experiments | None = getattr(state, "experiments", None)
    if held is None or held.host is not state.host:
        held = state.experiments = Experiments(state.host)
    return held


@router.put("/v1/experiments/{name}", **call("admin", 409, 413, 422, reply=Experiment))
async def create_experiment(
    request: Request, name: Name, body: Annotated[JSON, Documented(Definition)]
) -> Response:
    """Make an experiment; 200 if it is there with an equal definition."""
    listed = [body.get("arms"), body.get("shadow"), [body.get("alias")]]
    reached(
        request, [name for own in listed if isinstance(own, list) for name in own if isinstance(name, str)]
    )
    info, made = await experiments(request).create(name, body)
    return reply(info, 201 if made else 200)


@router.get("/v1/experiments", **call("any"))
async def list_experiments(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[str | None, Query(description="`next` of the page before")] = None,
) -> Response:
    """The experiments in order of name."""
    page = await experiments(request).page(limit, cursor)
    key: Key | None = request.scope.get("feedrank.key")
    if key is not None:
        page["experiments"] = [entry for entry in page["experiments"] if key.reaches(entry["name"])]
    return reply(page)


@router.get("/v1/experiments/{name}", **call("any", 404, reply=Experiment))
async def experiment(request: Request, name: Name) -> Response:
    """Units, rounds and mean of each arm; differences with intervals that hold at every look; the verdict."""
    return reply(await experiments(request).info(name))


@router.get("/v1/experiments/{name}/history", **call("any", 404, reply=Past))
async def experiment_history(request: Request, name: Name) -> Response:
    """The confidence sequences as they narrowed, in a bounded number of points."""
    return reply(await experiments(request).history(name))


@router.delete("/v1/experiments/{name}", **call("admin", 404, 409, status=204))
async def delete_experiment(request: Request, name: Name) -> Response:
    """Remove an experiment; its learners stay."""
    await experiments(request).delete(name)
    return Response(status_code=204)


@router.post("/v1/experiments/{name}/predict", **call("predict", 404, 409, 413, 422))
async def experiment_predict(
    request: Request, name: Name, body: Annotated[JSON, Documented(AskedBody)]
) -> Response:
    """Decide by the unit's arm, or by a list drafted from all arms."""
    return reply(await experiments(request).predict(name, body))


@router.post("/v1/experiments/{name}/feedback", **call("feedback", 404, 409, 410, 413, 422, 507))
async def experiment_feedback(
    request: Request, name: Name, body: Annotated[JSON, Documented(ToldBody)]
) -> Response:
    """Credit the arms, and teach them; once, however often it is sent."""
    return reply(await experiments(request).feedback(name, body, request.headers.get("idempotency-key")))


@router.post("/v1/experiments/{name}/promote", **call("admin", 404, 409, 413, 422, reply=Experiment))
async def promote(request: Request, name: Name, body: Annotated[JSON, Documented(Promotion)]) -> Response:
    """Switch the alias to the winner, for all replicas at once, and stop the experiment."""
    reached(request, [value for value in (body.get("alias"),) if isinstance(value, str)])
    return reply(await experiments(request).promote(name, body))


@router.post("/v1/experiments/{name}/pause", **call("admin", 404, 409, reply=Experiment))
async def pause(request: Request, name: Name) -> Response:
    """Serve everybody by the first arm; what was served before still counts."""
    return reply(await experiments(request).step(name, "pause"))


@router.post("/v1/experiments/{name}/resume", **call("admin", 404, 409, reply=Experiment))
async def resume(request: Request, name: Name) -> Response:
    """Take a paused experiment up again; every unit has its arm as before."""
    return reply(await experiments(request).step(name, "resume"))


@router.post("/v1/experiments/{name}/stop", **call("admin", 404, 409, reply=Experiment))
async def stop(request: Request, name: Name) -> Response:
    """End it for good: nothing counts any more, arms go on learning from feedback."""
    return reply(await experiments(request).step(name, "stop"))
