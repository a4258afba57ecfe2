"""The calls of Azure Personalizer on the service itself: model, configuration and policy, as views of a learner's spec.

A spec never changes, so what would change it makes the learner anew, and is taken only before its first reward; later it is
refused with the calls that make another learner and let it take over. What has no counterpart is refused in the same form
with the call that does it here.
"""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from feedrank import learners
from feedrank.learners.errors import SnapshotError
from feedrank.service.contract.faults import NotFound, Unprocessable
from feedrank.service.contract.json_types import JSON
from feedrank.service.http.bodies import reply, save_body
from feedrank.service.runtime import Host
from feedrank.service.store.shared import spool

from .learner_calls import SNAPSHOT, download
from .personalizer_frame import PATHS, answer, body_of, route, text_of

router = APIRouter(include_in_schema=False)
DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
ONLINE, APPRENTICE = "Online", "Apprentice"
SHARE = 0.1  # of an apprentice whose spec does not say
ARGUMENTS = ("gamma", "floor", "forget")
INSTEAD = {
    "evaluations": "POST /v1/learners/{name}/evaluate estimates another spec or policy on this log, at once",
    "featureImportances": "POST /v1/learners/{name}/predict with `explain` shows what each feature adds",
    "logs": "GET /v1/learners/{name}/events reads the log, POST /v1/learners/{name}/erase removes from it, and a choice "
    "made elsewhere is sent to POST /v1/learners/{name}/feedback with `served`",
    "configurations": "PUT /v1/learners/NEW makes a learner with another spec, PUT /v1/aliases/{name} lets it take over",
}


# ---- configuration and policy


@route(router, "GET", "/configurations/service", "any")
async def configuration(request: Request, name: str) -> Response:
    """The spec as a service configuration."""
    return reply(_configuration(await request.app.state.host.info(name)))


@route(router, "PUT", "/configurations/service", "admin")
async def configure(request: Request, name: str) -> Response:
    """The same spec, or before the first reward another one."""
    body, host = await body_of(request, "admin"), request.app.state.host
    spec = (await host.info(name))["spec"]
    changes: JSON = {}
    if (wait := text_of(body, "rewardWaitTime")) is not None:
        changes["wait"] = _seconds(wait)
    for field, own in (("defaultReward", "default_reward"), ("explorationPercentage", "floor")):
        if body.get(field) is not None:
            changes[own] = body[field]
    # What the view shows of a learner without a default reward is no wish to have one.
    if spec["default_reward"] is None and body.get("defaultReward") == 0:
        del changes["default_reward"]
    mode = text_of(body, "learningMode") or ONLINE
    if mode not in (ONLINE, APPRENTICE):
        raise Unprocessable.at("/learningMode", f"must be {ONLINE} or {APPRENTICE}: {_instead('logs', name)}")
    if "learningMode" in body:
        changes["baseline"] = (spec["baseline"] or SHARE) if mode == APPRENTICE else 0.0
    if (text_of(body, "rewardAggregation") or "earliest").lower() != "earliest":
        raise Unprocessable.at("/rewardAggregation", "must be earliest: the first reward of an event counts")
    await _change(host, name, changes)
    return reply(_configuration(await host.info(name)))


@route(router, "GET", "/configurations/policy", "any")
async def policy(request: Request, name: str) -> Response:
    """The parameters of the spec as the arguments of a policy."""
    return reply(_policy(await request.app.state.host.spec(name)))


@route(router, "PUT", "/configurations/policy", "admin")
async def update_policy(request: Request, name: str) -> Response:
    """The same parameters, or before the first reward others."""
    host = request.app.state.host
    words = (text_of(await body_of(request, "admin"), "arguments") or "").split()
    changes: JSON = {}
    for flag, value in zip(words[::2], words[1::2], strict=False):
        if flag.removeprefix("--") not in ARGUMENTS or not flag.startswith("--"):
            break
        changes[flag.removeprefix("--")] = value if value == "auto" else _number(value)
    if 2 * len(changes) != len(words):
        known = ", ".join(f"--{name}" for name in ARGUMENTS)
        raise Unprocessable.at("/arguments", f"must be pairs of {known} and a value")
    await _change(host, name, changes)
    return reply(_policy(await host.spec(name)))


@route(router, "DELETE", "/configurations/policy", "admin")
async def reset_policy(request: Request, name: str) -> Response:
    """The default parameters, before the first reward."""
    host = request.app.state.host
    fresh = learners.build({"task": "choice"}).spec
    await _change(host, name, {parameter: fresh[parameter] for parameter in ARGUMENTS})
    return reply(_policy(await host.spec(name)))


def _configuration(info: JSON) -> JSON:
    spec = info["spec"]
    apprentice = spec["baseline"] > 0 and not info["choice"]["apprentice"]["released"]
    return {
        "rewardWaitTime": f"PT{spec['wait']:g}S",
        "defaultReward": spec["default_reward"] or 0.0,
        "rewardAggregation": "earliest",
        "explorationPercentage": spec["floor"],
        "modelExportFrequency": "PT0S",
        "logRetentionDays": -1,
        "modelRetrainDays": 0,
        "logMirrorEnabled": False,
        "isAutoOptimizationEnabled": False,
        "learningMode": APPRENTICE if apprentice else ONLINE,
    }


def _policy(spec: JSON) -> JSON:
    arguments = " ".join(f"--{name} {spec[name]}" for name in ARGUMENTS)
    return {"name": str(spec["algorithm"]), "arguments": arguments}


def _seconds(duration: str) -> float:
    match = DURATION.fullmatch(duration)
    if match is None or duration in ("P", "PT"):
        raise Unprocessable.at("/rewardWaitTime", "must be a duration such as PT10M")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return 86_400 * days + 3_600 * hours + 60 * minutes + seconds


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Unprocessable.at("/arguments", f"a number must follow its flag, not {text!r}") from None


async def _change(host: Host, name: str, changes: JSON) -> None:
    """Make the learner anew with another spec, if that is another, and nothing is lost by it."""
    info = await host.info(name)
    spec = info["spec"]
    wanted = (await host.build({**spec, **changes})).spec
    if wanted == spec:
        return
    if info["version"]:
        raise Unprocessable.at(
            "", f"the learner has rewards, and its spec never changes: {_instead('configurations', name)}"
        )
    await _anew(host, info["name"], wanted)


async def _anew(host: Host, name: str, spec: JSON) -> None:
    await host.delete(name)
    await host.create(name, spec)


# ---- model


@route(router, "GET", "/model", "admin")
async def model(request: Request, name: str) -> Response:
    """The whole learner as one file."""
    data = spool()
    try:
        await request.app.state.host.write(name, data)
    except BaseException:
        data.close()
        raise
    return StreamingResponse(download(data), media_type=SNAPSHOT)


@route(router, "PUT", "/model", "admin")
async def import_model(request: Request, name: str) -> Response:
    """Put the learner of such a file in the place of this one: 204."""
    state = request.app.state
    host, lease = state.host, request.scope["feedrank.lease"]
    real = (await host.info(name))["name"]
    with spool() as data:
        most = state.settings.max_snapshot
        size = await save_body(request.scope, request.receive, most, host.budget, lease, data)
        try:
            learner = await asyncio.to_thread(learners.load, data)
        except SnapshotError as error:
            raise Unprocessable.at("", str(error)) from None
        use = request.scope.get("feedrank.use")
        if use is not None:
            await use.store(name, "admin", size)
        if learner.task != "choice":
            raise Unprocessable.at("", f"the file holds a learner of the task {learner.task}, not a choice")
        del learner
        data.seek(0)
        await host.delete(real)
        await host.restore(real, data)
    return Response(status_code=204)


@route(router, "DELETE", "/model", "admin")
async def reset_model(request: Request, name: str) -> Response:
    """The same spec with nothing learned: 204."""
    host = request.app.state.host
    info = await host.info(name)
    await _anew(host, info["name"], info["spec"])
    return Response(status_code=204)


@route(router, "GET", "/model/properties", "any")
async def model_properties(request: Request, name: str) -> Response:
    """When it learned first and last."""
    first, last = await _times(request.app.state.host, name)
    shown = {"creationTime": first, "lastModifiedTime": last}
    return reply({field: value for field, value in shown.items() if value is not None})


@route(router, "GET", "/logs/properties", "any")
async def log_properties(request: Request, name: str) -> Response:
    """From when to when there are rewards."""
    first, last = await _times(request.app.state.host, name)
    span = {"from": first, "to": last}
    return reply({"dateRange": {field: value for field, value in span.items() if value is not None}})


async def _times(host: Host, name: str) -> tuple[str | None, str | None]:
    points = (await host.history(name, 512))["points"]
    at = [point["at"] for point in points if point["at"] is not None]
    return (_time(at[0]), _time(at[-1])) if at else (None, None)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


# ---- what has no counterpart


def _instead(what: str, name: str) -> str:
    return INSTEAD[what].replace("{name}", name)


async def other(request: Request, name: str) -> Response:
    """Refuse in Personalizer's form, with the call that does it here."""
    what = request.path_params["rest"].split("/")[0]
    if what not in INSTEAD:
        raise NotFound("Personalizer has no such call; docs/personalizer.md lists those that work here")
    raise Unprocessable.at("", f"not in this form: {_instead(what, name)}")


async def elsewhere(request: Request, name: str) -> Response:
    """One SDK drops what is behind the host: say what to give it."""
    raise NotFound(
        "this SDK drops the path of its endpoint: give it the address of the host alone, and set FEEDRANK_PERSONALIZER "
        "or use a key with the learner's name as its only prefix"
    )


async def _other(request: Request) -> Response:
    return await answer(request, "any", other)


async def _elsewhere(request: Request) -> Response:
    return await answer(request, "any", elsewhere)


# What matches every address comes last.
for _start in PATHS:
    router.add_api_route(_start + "/{rest:path}", _other, methods=["GET", "PUT", "POST", "DELETE"])
router.add_api_route("/at/{name}", _elsewhere, methods=["POST"])
