"""The app: settings in, a FastAPI application out, with the host opened and closed by its lifespan."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from feedrank import __version__

from .edge import Edge
from .errors import ServiceError
from .experiments import routes as experiments
from .host import Host, HostSettings
from .keys import Keyring, read_keys
from .metrics import Metrics
from .page import routes as page
from .problems import MethodNotAllowed, respond
from .replies import Problem
from .routes import health, learners, rounds
from .schemas import StreamLine
from .settings import Settings

log = logging.getLogger("feedrank.app")

DESCRIPTION = "Ranking and labelling that learns from every piece of feedback, at once and durably."


class App(FastAPI):
    """FastAPI with the edge around all of it, so that what the edge answers itself costs nothing more."""

    edge: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["app"] = self
            await self.edge(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def create_app(settings: Settings | None = None) -> FastAPI:
    """The service as an ASGI app; without settings they come from the environment."""
    chosen = Settings.from_env() if settings is None else settings
    if chosen.keys_file:
        read_keys(chosen.keys_file)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.stopping = asyncio.Event()
        async with Host.open(chosen.store, host_settings(chosen)) as host:
            app.state.host = host
            for notice in host.notices:
                log.warning(notice)
            yield

    app = App(
        title="feedrank",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.settings = chosen
    app.state.metrics = Metrics()
    # The busiest calls come first, because routes are tried in order.
    for module in (rounds, learners, experiments, health, page):
        app.include_router(module.router)
    for kind in (ServiceError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, _refuse)
    app.state.keyring = keyring = Keyring(chosen.keys_file) if chosen.keys_file else None
    app.edge = Edge(partial(FastAPI.__call__, app), chosen, app.state.metrics, keyring, rounds.express())
    if chosen.origins:
        app.edge = CORSMiddleware(
            app.edge,
            allow_origins=list(chosen.origins),
            allow_methods=["GET", "PUT", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "X-Request-ID"],
        )
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    return app


def host_settings(settings: Settings) -> HostSettings:
    """The host's share of the settings."""
    return HostSettings(
        memory=settings.memory,
        snapshot_every=settings.snapshot_every,
        retention_events=settings.log_retention or None,
        retention_age=settings.log_retention_age or None,
        prediction_ttl=settings.prediction_ttl,
        wait=settings.version_wait,
        max_features=settings.max_features,
        max_items=settings.max_items,
        max_labels=settings.max_labels,
        max_batch=settings.max_batch,
        max_learner_bytes=settings.max_learner_bytes,
        max_learners=settings.max_learners,
    )


async def _refuse(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 405:
        return respond(MethodNotAllowed.at(request.url.path, request.app.openapi()["paths"]))
    return respond(error)


def _document(app: FastAPI) -> dict[str, Any]:
    """OpenAPI with what FastAPI cannot know: the problem document and, where keys are configured, their scheme."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        parts = document.setdefault("components", {})
        named: list[tuple[type[BaseModel], JsonSchemaMode]] = [
            (Problem, "validation"),
            (StreamLine, "validation"),
        ]
        _, definitions = models_json_schema(named, ref_template="#/components/schemas/{model}")
        parts["schemas"].update(definitions["$defs"])
        if app.state.settings.keys_file:
            parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            for calls in document["paths"].values():
                for call in calls.values():
                    if "x-scope" in call:
                        call["security"] = [{"key": []}]
        app.openapi_schema = document
    return app.openapi_schema
