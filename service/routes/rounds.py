"""The calls a learner lives by: predict, feedback, stream, retract."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from ..bodies import JSON
from ..calls import Call, Documented, Handler, Name, call, reply
from ..replies import Outcome, Outcomes, Prediction, Predictions, Retracted
from ..schemas import FeedbackBody, PredictBody, RetractBody
from ..stream import NDJSON, StreamReply

router = APIRouter(route_class=Call, tags=["rounds"])

IDEMPOTENCY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "another name for `feedback_id`; in a batch, of the batch as a whole",
    "schema": {"type": "string", "minLength": 1, "maxLength": 512},
}
LINES = {
    "application/json": {"schema": {"$ref": "#/components/schemas/StreamLine"}},
    NDJSON: {"schema": {"type": "string", "description": "one such object a line"}},
}


@router.post("/v1/learners/{name}/predict", **call("predict", 404, 409, 413, reply=Prediction | Predictions))
async def predict(request: Request, name: Name, body: Annotated[JSON, Documented(PredictBody)]) -> Response:
    """Decide on one instance, or on each of a batch; changes nothing in the learner."""
    told = request.app.state.host.predict(name, body)
    del body
    return reply(await told)


@router.post(
    "/v1/learners/{name}/feedback",
    **call(
        "feedback",
        404,
        409,
        410,
        413,
        507,
        reply=Outcome | Outcomes,
        openapi_extra={"parameters": [IDEMPOTENCY]},
    ),
)
async def feedback(request: Request, name: Name, body: Annotated[JSON, Documented(FeedbackBody)]) -> Response:
    """Learn from one event, or from all of a batch or none; once, however often it is sent."""
    key = request.headers.get("idempotency-key")
    told = request.app.state.host.feedback(name, body, key)
    del body
    return reply(await told)


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
    await request.app.state.host.rounds(name, [])
    return StreamReply(request.app.state, name, request.scope.get("feedrank.key"))


@router.post("/v1/learners/{name}/retract", **call("feedback", 404, 409, 413, reply=Retracted))
async def retract(request: Request, name: Name, body: Annotated[JSON, Documented(RetractBody)]) -> Response:
    """Withdraw an event: the learner becomes what it would be without it."""
    return reply(await request.app.state.host.retract(name, body))


def express() -> dict[str, Handler]:
    """The handlers of predict and feedback by the last part of their path, for the edge to call without the router."""
    routes = [route for route in router.routes if isinstance(route, Call)]
    return {
        route.path.rsplit("/", 1)[1]: route.get_route_handler()
        for route in routes
        if route.endpoint in (predict, feedback)
    }
