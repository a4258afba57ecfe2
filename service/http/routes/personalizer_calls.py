"""The calls of Azure Personalizer that an app makes all day: rank, reward and activate, of one slot and of several.

rank      a choice under the caller's event id; with `deferActivation` it is kept aside until it is activated
reward    204 whatever comes of it: late, repeated and inactive rewards were ignored there, and are here
activate  204
"""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Awaitable, Iterator

from fastapi import APIRouter, Request
from starlette.responses import Response

from feedrank.service.contract.faults import Conflict, Gone, NotFound, Unprocessable
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.messages import DEFERRED
from feedrank.service.http.bodies import reply

from .personalizer_frame import body_of, route, text_of

router = APIRouter(include_in_schema=False)

# ---- rank


@route(router, "POST", "/rank", "predict")
async def rank(request: Request, name: str) -> Response:
    """Choose an action: 201."""
    body = await body_of(request, "predict")
    event, instance = _asked(body)
    instance["exclude"] = body.get("excludedActions") or []
    chosen = await request.app.state.host.predict(name, instance)
    first = chosen["choice"]
    entries = sorted(chosen["ranking"], key=lambda entry: (entry["id"] != first, -entry["probability"]))
    ranking = [{"id": entry["id"], "probability": entry["probability"]} for entry in entries]
    return reply({"ranking": ranking, "eventId": event, "rewardActionId": first}, 201)


@route(router, "POST", "/multislot/rank", "predict")
async def rank_slots(request: Request, name: str) -> Response:
    """Choose an action for every slot: 201."""
    body = await body_of(request, "predict")
    event, instance = _asked(body)
    instance["slots"] = [_slot(slot, body["actions"]) for slot in _objects(body, "slots")]
    chosen = await request.app.state.host.predict(name, instance)
    slots = [{"id": slot["id"], "rewardActionId": slot["choice"]} for slot in chosen["slots"]]
    return reply({"eventId": event, "slots": slots}, 201)


def _asked(body: JSON) -> tuple[str, JSON]:
    """The event's id, and what is asked of the learner."""
    event = text_of(body, "eventId") or secrets.token_hex(16)
    actions = _objects(body, "actions")
    return event, {
        "items": [{"id": action.get("id"), "features": flat(action.get("features"))} for action in actions],
        "features": flat(body.get("contextFeatures")),
        "prediction_id": DEFERRED + event if body.get("deferActivation") else event,
    }


def _objects(body: JSON, field: str) -> list[JSON]:
    value = body.get(field)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise Unprocessable.at(f"/{field}", "must be a list of objects")
    return value


def _slot(slot: JSON, actions: list[JSON]) -> JSON:
    """A slot, with the actions that say themselves that they are not for it."""
    shut = [action.get("id") for action in actions if slot.get("id") in (action.get("excludedSlots") or ())]
    made = {
        "id": slot.get("id"),
        "features": flat(slot.get("features")),
        "exclude": [*(slot.get("excludedActions") or ()), *shut],
    }
    return made | ({"baseline": slot["baselineAction"]} if slot.get("baselineAction") is not None else {})


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


@route(router, "POST", "/multislot/events/{event:path}/reward", "feedback")
async def reward_slots(request: Request, name: str) -> Response:
    """Say what the actions of the slots earned: 204."""
    rewards = {}
    for one in _objects(await body_of(request, "feedback"), "reward"):
        if not isinstance(one.get("slotId"), str):
            raise Unprocessable.at("/reward", "every reward needs the `slotId` of its slot")
        rewards[one["slotId"]] = await _within(request, name, one.get("value"))
    return await _reward(request, name, rewards)


@route(router, "POST", "/events/{event:path}/reward", "feedback")
async def reward(request: Request, name: str) -> Response:
    """Say what the action earned: 204."""
    value = (await body_of(request, "feedback")).get("value")
    return await _reward(request, name, await _within(request, name, value))


async def _within(request: Request, name: str, value: object) -> float:
    """A reward, set to the nearer end of the range of the learner if it is outside."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unprocessable.at("/value", "the value of a reward must be a number")
    low, high = (await request.app.state.host.spec(name)).get("range", (0.0, 1.0))
    return float(min(max(float(value), low), high))


async def _reward(request: Request, name: str, earned: float | dict[str, float]) -> Response:
    event = {"prediction_id": request.path_params["event"], "reward": earned}
    return await _ignored(request.app.state.host.feedback(name, event, None))


@route(router, "POST", "/multislot/events/{event:path}/activate", "feedback")
@route(router, "POST", "/events/{event:path}/activate", "feedback")
async def activate(request: Request, name: str) -> Response:
    """Say that a deferred choice was shown after all: 204."""
    event = request.path_params["event"]
    await request.app.state.host.spec(name)
    return await _ignored(request.app.state.host.activate(name, DEFERRED + event, event))


async def _ignored(work: Awaitable[object]) -> Response:
    """204, also for what comes late, twice, or for no event."""
    with contextlib.suppress(NotFound, Gone, Conflict):
        await work
    return Response(status_code=204)
