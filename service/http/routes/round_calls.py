"""Routes of daily use: predict, feedback, clicks, stream, retract."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from feedrank.service.contract.json_types import JSON
from feedrank.service.http.bodies import Call, JsonReply, reply
from feedrank.service.http.openapi import Cursor, Documented, Name, call, described
from feedrank.service.http.stream import NDJSON, StreamReply
from feedrank.service.runtime.replies import BODY
from feedrank.service.runtime.review import LARGEST

router = APIRouter(route_class=Call, tags=["rounds"])

IDEMPOTENCY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "another name for `feedback_id`; in a batch, of the batch as a whole",
    "schema": {"type": "string", "minLength": 1, "maxLength": 512},
}
LATER: dict[int | str, Any] = {
    202: described(
        "Retracted | RetractedMany", "it takes long: `GET` shows under `retracting` when it is done"
    )
}
ERASED: dict[int | str, Any] = {
    202: described("Erased", "it takes long and goes on: `GET` shows under `retracting` when it is done")
}
LINES = {
    "application/json": {"schema": {"$ref": "#/components/schemas/StreamLine"}},
    NDJSON: {"schema": {"type": "string", "description": "one such object a line"}},
}


@router.post(
    "/v1/learners/{name}/predict", **call("predict", 404, 409, 410, 413, reply="Prediction | Predictions")
)
async def predict(request: Request, name: Name, body: Annotated[JSON, Documented("PredictBody")]) -> Response:
    """Decide on one instance, or on each of a batch; changes nothing in the learner."""
    replied = request.app.state.host.predict.replied(name, body, BODY)
    del body
    return JsonReply(await replied, 200)


@router.post(
    "/v1/learners/{name}/feedback",
    **call(
        "feedback",
        404,
        409,
        410,
        413,
        507,
        reply="Outcome | Outcomes",
        openapi_extra={"parameters": [IDEMPOTENCY]},
    ),
)
async def feedback(
    request: Request, name: Name, body: Annotated[JSON, Documented("FeedbackBody")]
) -> Response:
    """Learn from one event, or from all of a batch or none; once, however often it is sent."""
    key: bytes | None = request.scope["feedrank.headers"].get(b"idempotency-key")
    named = None if key is None else key.decode("latin-1")
    replied = request.app.state.host.feedback.replied(name, body, BODY, named)
    del body
    return JsonReply(await replied, 200)


@router.post(
    "/v1/learners/{name}/stream",
    **call(
        "any",
        404,
        openapi_extra={"requestBody": {"required": True, "content": LINES}},
        response_class=StreamReply,
    ),
)
async def stream(request: Request, name: Name) -> Response:
    """Many predicts and feedbacks on one connection: a line in, a line out, in order, both ways at once."""
    state = request.app.state
    lines, key, use = await state.host.stream(name), *map(request.scope.get, ("feedrank.key", "feedrank.use"))
    if use is not None:
        use.name = name
    return StreamReply(state, lines, key, state.host.budget, use)


@router.post(
    "/v1/learners/{name}/clicks", **call("feedback", 404, 409, 410, 413, reply="ClicksSoFar", status=202)
)
async def clicks(request: Request, name: Name, body: Annotated[JSON, Documented("ClicksBody")]) -> Response:
    """Join clicks to a remembered prediction; when its window is over, one feedback event with all of them is learned."""
    return reply(await request.app.state.host.clicks(name, body), 202)


@router.post(
    "/v1/learners/{name}/rewards", **call("feedback", 404, 409, 410, 413, reply="RewardSoFar", status=202)
)
async def rewards(request: Request, name: Name, body: Annotated[JSON, Documented("RewardsBody")]) -> Response:
    """Add a part to the reward of a remembered choice; when its window is over, one event with their sum is learned."""
    return reply(await request.app.state.host.rewards(name, body), 202)


@router.get("/v1/learners/{name}/queue", **call("feedback", 404, reply="Queue"))
async def queue(
    request: Request,
    name: Name,
    limit: Annotated[int, Query(ge=1, le=LARGEST, description="the most predictions to reply")] = 20,
    lease: Annotated[
        float, Query(ge=0, le=86_400, description="seconds for which others do not get them")
    ] = 0,
    cursor: Cursor = None,
) -> Response:
    """Remembered predictions without an answer: the least certain first, spread over labels and inputs."""
    return reply(await request.app.state.host.queue(name, limit, lease, cursor))


@router.post(
    "/v1/learners/{name}/retract",
    **call("feedback", 404, 409, 410, 413, reply="Retracted | RetractedMany", also=LATER),
)
async def retract(request: Request, name: Name, body: Annotated[JSON, Documented("RetractBody")]) -> Response:
    """Retract an event: the learner becomes what it would be without it."""
    done = await request.app.state.host.retract(name, body)
    return reply(done, 200 if done["state"] == "done" else 202)


@router.post("/v1/learners/{name}/erase", **call("admin", 404, 409, 410, 413, reply="Erased", also=ERASED))
async def erase(request: Request, name: Name, body: Annotated[JSON, Documented("EraseBody")]) -> Response:
    """Retract events, and remove for good what they held: what stays are checksums."""
    done = await request.app.state.host.erase(name, body)
    return reply(done, 200 if done["state"] == "done" else 202)
