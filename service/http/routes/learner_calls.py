"""Routes of learners as resources: create, list, read, delete, snapshots, aliases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Body, Query, Request
from starlette.responses import Response, StreamingResponse

from feedrank.service.contract.faults import Unprocessable
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.naming import is_name
from feedrank.service.http.bodies import Call, reach, reached, reply
from feedrank.service.http.openapi import Cursor, Documented, Name, call, described
from feedrank.service.store.shared import portions, spool

router = APIRouter(route_class=Call, tags=["learners"])

SNAPSHOT = "application/octet-stream"
PART = 2**18  # bytes of a snapshot that are sent at a time
Limit = Annotated[int, Query(ge=1, le=1000, description="entries of a page")]
BINARY = {"content": {SNAPSHOT: {"schema": {"type": "string", "format": "binary"}}}}
LATER: dict[int | str, Any] = {
    202: described("Renamed", "it takes long: until it is done, the learner answers as before")
}
CREATED: dict[int | str, Any] = {201: described("Learner", "made")}


@router.put("/v1/learners/{name}", **call("admin", 409, 413, 507, reply="Learner", also=CREATED))
async def create(request: Request, name: Name, body: Annotated[JSON, Documented("Spec")]) -> Response:
    """Make a learner of a spec; 200 if it is there with an equal spec."""
    info, made = await request.app.state.host.create(name, body)
    return reply(info, 201 if made else 200)


@router.get("/v1/learners", **call("any", reply="Learners"))
async def learners(
    request: Request,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """The learners in order of name."""
    return reply(await request.app.state.host.list(limit, cursor, reach(request)))


@router.get("/v1/learners/{name}", **call("any", 404, reply="Learner"))
async def learner(request: Request, name: Name) -> Response:
    """Spec, version, labels, progress and what the theory proves."""
    return reply(await request.app.state.host.info(name))


@router.delete("/v1/learners/{name}", **call("admin", 404, status=204))
async def delete(request: Request, name: Name) -> Response:
    """Remove a learner and all that belongs to it, or an alias."""
    await request.app.state.host.delete(name)
    return Response(status_code=204)


@router.get("/v1/learners/{name}/history", **call("any", 404, reply="History"))
async def history(
    request: Request,
    name: Name,
    points: Annotated[int, Query(ge=1, le=512, description="the most points to reply")] = 512,
) -> Response:
    """The learning curve, thinned here: however long it is, the reply is short."""
    return reply(await request.app.state.host.history(name, points))


@router.get("/v1/learners/{name}/labels", **call("any", 404, reply="LabelCounts"))
async def labels(request: Request, name: Name, limit: Limit = 100) -> Response:
    """The labels by how often they were true, with the mistakes among them."""
    return reply(await request.app.state.host.labels(name, limit))


@router.get("/v1/learners/{name}/reliability", **call("any", 404, reply="Reliability"))
async def reliability(request: Request, name: Name) -> Response:
    """What decisions were worth, by their stated probability and label, each as it was before its event."""
    return reply(await request.app.state.host.reliability(name))


@router.post("/v1/learners/{name}/labels", **call("admin", 404, 409, 413, reply="Renamed", also=LATER))
async def rename(request: Request, name: Name, body: Annotated[JSON, Documented("LabelsBody")]) -> Response:
    """Rename labels, or merge them: the learner becomes what it would be had the old name always been the new one."""
    done = await request.app.state.host.rename(name, body)
    return reply(done, 200 if done["state"] == "done" else 202)


@router.get("/v1/learners/{name}/weights", **call("any", 404, reply="Weights"))
async def weights(
    request: Request,
    name: Name,
    label: Annotated[str | None, Query(description="one of the labels; left out in subset ranking")] = None,
    limit: Limit = 20,
) -> Response:
    """The features that speak loudest for a label, and against it."""
    return reply(await request.app.state.host.weights(name, label, limit))


@router.get("/v1/learners/{name}/events", **call("admin", 404, 410, reply="Events"))
async def events(
    request: Request,
    name: Name,
    after: Annotated[int, Query(ge=0, le=2**63 - 1, description="the version to read after")] = 0,
    limit: Limit = 100,
) -> Response:
    """The log of feedback, retractions and renames, for audit."""
    return reply(await request.app.state.host.events(name, after, limit))


@router.get("/v1/learners/{name}/snapshot", **call("admin", 404, also={200: BINARY}, response_class=Response))
async def export(request: Request, name: Name) -> Response:
    """The whole learner as one portable file."""
    data = spool()
    try:
        await request.app.state.host.write(name, data)
    except BaseException:
        data.close()
        raise
    headers = {
        "Content-Disposition": f'attachment; filename="{name}.feedrank"',
        "Content-Length": str(data.tell()),
    }
    return StreamingResponse(download(data), media_type=SNAPSHOT, headers=headers)


async def download(data: BinaryIO) -> AsyncIterator[bytes | memoryview]:
    with data:
        async for part in portions(data, PART):
            yield part


@router.put(
    "/v1/learners/{name}/snapshot",
    **call("admin", 409, 413, 507, reply="Learner", status=201),
)
async def restore(
    request: Request, name: Name, data: Annotated[bytes, Body(media_type=SNAPSHOT)]
) -> Response:
    """Make a learner of such a file."""
    return reply(await request.app.state.host.restore(name, data), 201)


@router.get("/v1/aliases", **call("any", reply="Aliases"))
async def aliases(
    request: Request,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """The aliases in order of name."""
    return reply(await request.app.state.host.aliases(limit, cursor, reach(request)))


@router.put("/v1/aliases/{name}", **call("admin", 404, 409, 413, reply="Alias"))
async def alias(request: Request, name: Name, body: Annotated[JSON, Documented("AliasBody")]) -> Response:
    """Let a second name stand for a learner, from now on and at once."""
    for field in body:
        if field != "learner":
            raise Unprocessable.at(f"/{field}", "unknown field")
    learner = body.get("learner")
    if not isinstance(learner, str) or not is_name(learner):
        raise Unprocessable.at("/learner", "must be the name of a learner")
    reached(request, [learner])
    return reply(await request.app.state.host.alias(name, learner))
