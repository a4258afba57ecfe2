"""Builds the FastAPI application from the settings; its lifespan opens and closes the host."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from feedrank import __version__
from feedrank.service.contract import tracing
from feedrank.service.contract.faults import ServiceError
from feedrank.service.contract.settings import Settings
from feedrank.service.experiments.manager import Experiments
from feedrank.service.runtime import Host, same_bits
from feedrank.service.runtime.folding import stopped
from feedrank.service.store import Store

from .calls import SocketCalls
from .edge import App, Edge
from .keyring import Keyring, read_keys
from .metrics import Metrics
from .openapi import document
from .problems import MethodNotAllowed, respond
from .routes import experiment_calls as experiments
from .routes import learner_calls as learners
from .routes import page_files as page
from .routes import personalizer_calls as personalizer
from .routes import personalizer_views
from .routes import probes as health
from .routes import round_calls as rounds
from .traces import Spans, TracedEdge

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

log = logging.getLogger("feedrank.app")

FIRST_REPLIES = 1.0  # seconds from the start on that belong to them alone
DESCRIPTION = "Ranking and labelling that learns from every piece of feedback, at once and durably."


def create_app(settings: Settings | None = None, exporter: SpanExporter | None = None) -> App:
    """The service as an ASGI app; without settings they come from the environment. `exporter` takes its spans."""
    chosen = Settings.from_env() if settings is None else settings
    if chosen.keys_file:
        read_keys(chosen.keys_file)
    tracer = tracing.tracer(exporter)
    spans = None if tracer is None else Spans(tracer)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        app.state.stopping = asyncio.Event()
        async with Host.open(chosen.store, chosen) as host:
            if tracer is not None:
                tracing.trace_store(host.store, tracer)
            app.state.host = host
            app.state.experiments = Experiments(host)
            edge.shares.host = host
            app.calls = SocketCalls(edge, host, spans, cors)
            for notice in host.notices:
                log.warning(notice)
            comparing = asyncio.create_task(compare_bits(host.store))
            yield
            await stopped(comparing)
            await app.state.experiments.close()
            await edge.shares.close()

    app = App(
        title="feedrank",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.settings = chosen
    app.state.metrics = Metrics()
    # The busiest calls come first, because routes are tried in order.
    for module in (rounds, learners, experiments, health, personalizer, personalizer_views, page):
        app.include_router(module.router)
    for kind in (ServiceError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, _refuse)
    app.state.keyring = keyring = Keyring(chosen.keys_file) if chosen.keys_file else None
    app.edge = edge = Edge(partial(FastAPI.__call__, app), chosen, app.state.metrics, keyring)
    app.state.shares = edge.shares
    if spans is not None:
        app.edge = TracedEdge(edge, spans)
    cors = None
    if chosen.origins:
        app.edge = cors = CORSMiddleware(
            app.edge,
            allow_origins=list(chosen.origins),
            allow_methods=["GET", "PUT", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "X-Request-ID"],
        )
    app.openapi = lambda: document(app)  # type: ignore[method-assign]
    return app


async def compare_bits(store: Store) -> None:
    """Say whether this process learns other bits than the one before it, once the start and the first replies are out."""
    await asyncio.sleep(FIRST_REPLIES)
    for notice in await same_bits.compare(store):
        log.warning(notice)


async def _refuse(request: Request, error: Exception) -> Response:
    if isinstance(error, ClientDisconnect):
        raise error  # nobody is left to answer
    if isinstance(error, HTTPException) and error.status_code == 405:
        described = await asyncio.to_thread(request.app.openapi)
        return respond(MethodNotAllowed.at(request.url.path, described["paths"]))
    return respond(error)
