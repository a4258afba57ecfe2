"""Routes for operators and orchestrators: liveness, readiness, metrics."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import Response

from feedrank.service.contract.faults import StoreUnavailable
from feedrank.service.contract.json_types import JSON
from feedrank.service.http.bodies import reply
from feedrank.service.http.metrics import CONTENT_TYPE_LATEST
from feedrank.service.http.openapi import described
from feedrank.service.http.problems import MEDIA_TYPE

router = APIRouter(tags=["health"])

NOT_READY: dict[int | str, JSON] = {
    503: {
        "description": "the store does not take writes, something does not run, or the service is stopping",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}


@router.get("/livez", responses={200: described("Health")})
async def livez() -> Response:
    """The process runs; never touches the store."""
    return reply({"status": "ok"})


@router.get("/readyz", responses={200: described("Health"), **NOT_READY})
async def readyz(request: Request) -> Response:
    """The store takes writes now, and all that must keep running runs: `checks` names each."""
    state = request.app.state
    if state.stopping.is_set():
        raise StoreUnavailable("the service is stopping")
    return reply({"status": "ok", "checks": await state.host.ready()})


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """The description of the API; it is made when it is first asked for, which takes a while."""
    return reply(await asyncio.to_thread(request.app.openapi))


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Prometheus metrics."""
    state = request.app.state
    page = state.metrics.page(state.host.stats(), state.host.waits, state.shares.refusals)
    return Response(page, headers={"Content-Type": CONTENT_TYPE_LATEST})
