"""Routes that are compatible with Azure Personalizer: rank, reward, activate.

Under `/at/{name}` they speak to the learner of that name; at the root to the one that `FEEDRANK_PERSONALIZER` names. The
key comes in the header `Ocp-Apim-Subscription-Key`, errors go out as `{"error": {"code", "message"}}`.

    rank      a choice under the caller's event id; with `deferActivation` it is kept aside until it is activated
    reward    204 whatever comes of it: late, repeated and inactive rewards were ignored there, and are here
    activate  204
"""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Awaitable, Callable, Iterator

from fastapi import APIRouter, Request
from starlette.responses import Response

from feedrank.service.contract.faults import (
    Conflict,
    Gone,
    NotFound,
    Unauthorized,
    Unprocessable,
)
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.messages import DEFERRED
from feedrank.service.contract.naming import SHAPE
from feedrank.service.http.bodies import authorize, body_lease, read_json, read_object, reply
from feedrank.service.http.problems import describe

router = APIRouter(include_in_schema=False)
KEY = "ocp-apim-subscription-key"
CODES = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "ResourceNotFound",
    409: "RankDuplicatedEventId",
}
PATHS = ("/at/{name}/personalizer/v1.0", "/at/{name}/personalizer", "/personalizer/v1.0", "/personalizer")
Work = Callable[[Request, str], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]


async def answer(request: Request, scope: str, work: Work) -> Response:
    """Check the key and the learner's name, and put what goes wrong in Personalizer's words."""
    try:
        state = request.app.state
        name = request.path_params.get("name") or state.settings.personalizer
        if not name or SHAPE.fullmatch(name) is None:
            raise NotFound("no learner is at this address: use /at/{learner}, or set FEEDRANK_PERSONALIZER")
        if state.keyring is not None:
            key = state.keyring.find(request.headers.get(KEY, ""))
            if key is None:
                raise Unauthorized(f"send `{KEY}` with a valid key")
            authorize(key, scope, name)
            request.scope["feedrank.use"] = state.shares.begin(key)
        with body_lease(request) as request.scope["feedrank.lease"]:
            return await work(request, name)
    except Exception as error:
        return refuse(error)


def refuse(error: Exception) -> Response:
    """An error as the SDKs read it."""
    problem = describe(error)
    status = 400 if problem.status == 422 else problem.status
    code = CODES.get(status, "InternalServerError" if status >= 500 else "BadRequest")
    return reply({"error": {"code": code, "message": problem.detail}}, status)


async def body_of(request: Request, scope: str) -> JSON:
    """The JSON object that was sent."""
    return await read_json(request, request.scope["feedrank.lease"], scope, read_object)


def post(tail: str) -> Callable[[Endpoint], Endpoint]:
    """Route the calls of both SDKs, with and without a learner in the path, to one endpoint."""

    def register(endpoint: Endpoint) -> Endpoint:
        for start in PATHS:
            router.post(start + tail)(endpoint)
        return endpoint

    return register


# ---- rank


@post("/rank")
async def rank(request: Request) -> Response:
    """Choose an action: 201."""
    return await answer(request, "predict", _rank)


async def _rank(request: Request, name: str) -> Response:
    body = await body_of(request, "predict")
    actions = body.get("actions")
    if not isinstance(actions, list) or not all(isinstance(action, dict) for action in actions):
        raise Unprocessable.at("/actions", "must be a list of actions")
    event = body.get("eventId") or secrets.token_hex(16)
    if not isinstance(event, str):
        raise Unprocessable.at("/eventId", "must be text")
    deferred = bool(body.get("deferActivation"))
    instance = {
        "items": [{"id": action.get("id"), "features": flat(action.get("features"))} for action in actions],
        "features": flat(body.get("contextFeatures")),
        "exclude": body.get("excludedActions") or [],
        "prediction_id": DEFERRED + event if deferred else event,
    }
    chosen = await request.app.state.host.predict(name, instance)
    first = chosen["choice"]
    entries = sorted(chosen["ranking"], key=lambda entry: (entry["id"] != first, -entry["probability"]))
    ranking = [{"id": entry["id"], "probability": entry["probability"]} for entry in entries]
    return reply({"ranking": ranking, "eventId": event, "rewardActionId": first}, 201)


def flat(features: object) -> dict[str, float]:
    """Nested features by their path: a number as it is, text and the members of a list as `path=value`."""
    sums: dict[str, float] = {}
    for name, value in _leaves("", features):
        sums[name] = sums.get(name, 0.0) + value
    return sums


def _leaves(path: str, value: object) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(f"{path}.{name}" if path else str(name), part)
    elif isinstance(value, list):
        for part in value:
            if isinstance(part, dict | list):
                yield from _leaves(path, part)
            elif part is not None:
                yield f"{path}={part}", 1.0
    elif isinstance(value, str):
        yield f"{path}={value}", 1.0
    elif isinstance(value, bool | int | float) and math.isfinite(value):
        yield path or "value", float(value)


# ---- reward and activate


@post("/events/{event:path}/reward")
async def reward(request: Request) -> Response:
    """Say what the action earned: 204."""
    return await answer(request, "feedback", _reward)


async def _reward(request: Request, name: str) -> Response:
    value = (await body_of(request, "feedback")).get("value")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unprocessable.at("/value", "must be a number")
    host = request.app.state.host
    low, high = (await host.spec(name)).get("range", (0.0, 1.0))
    event = {"prediction_id": request.path_params["event"], "reward": min(max(float(value), low), high)}
    return await _ignored(host.feedback(name, event, None))


@post("/events/{event:path}/activate")
async def activate(request: Request) -> Response:
    """Say that a deferred choice was shown after all: 204."""
    return await answer(request, "feedback", _activate)


async def _activate(request: Request, name: str) -> Response:
    event = request.path_params["event"]
    await request.app.state.host.spec(name)
    return await _ignored(request.app.state.host.activate(name, DEFERRED + event, event))


async def _ignored(work: Awaitable[object]) -> Response:
    """204, also for what comes late, twice, or for no event."""
    with contextlib.suppress(NotFound, Gone, Conflict):
        await work
    return Response(status_code=204)
