"""What operators and machines ask: is it alive, is it ready, how is it doing."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import Response

from ..calls import reply
from ..errors import StoreUnavailable
from ..metrics import CONTENT_TYPE_LATEST
from ..problems import MEDIA_TYPE
from ..replies import Health

router = APIRouter(tags=["health"])

NOT_READY: dict[int | str, dict[str, Any]] = {
    503: {
        "description": "the store does not take writes, or the service is stopping",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}
# Swagger UI comes from its CDN and starts with a line of inline script; nothing else may run on the page.
DOCS_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' https://cdn.jsdelivr.net; connect-src 'self'; "
    "style-src 'unsafe-inline' https://cdn.jsdelivr.net; img-src data: https://fastapi.tiangolo.com; "
    "base-uri 'none'; frame-ancestors 'none'"
)


@router.get("/livez", response_model=Health)
async def livez() -> Response:
    """The process runs; never touches the store."""
    return reply({"status": "ok"})


@router.get("/readyz", response_model=Health, responses=NOT_READY)
async def readyz(request: Request) -> Response:
    """The store takes writes now."""
    state = request.app.state
    if state.stopping.is_set():
        raise StoreUnavailable("the service is stopping")
    await state.host.ready()
    return reply({"status": "ok"})


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Prometheus metrics."""
    state = request.app.state
    return Response(state.metrics.page(state.host.stats()), headers={"Content-Type": CONTENT_TYPE_LATEST})


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """The API, to read and to try."""
    page = get_swagger_ui_html(openapi_url="openapi.json", title="feedrank")
    page.headers["Content-Security-Policy"] = DOCS_POLICY
    return page
