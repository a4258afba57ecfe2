"""OpenTelemetry traces, configured by its own environment variables; without them the SDK is not imported.

    OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT   where spans go, by OTLP over HTTP
    OTEL_TRACES_EXPORTER    `otlp`, `console` (to standard error) or `none`
    OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_SDK_DISABLED, ...   as everywhere

A request's span continues the trace that its `traceparent` names, and each call of the store is a span inside it. A commit
that is shared by several requests belongs to the one that began it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from .faults import StoreRefused

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer

    T = TypeVar("T")

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
STORE_CALLS = (
    "append",
    "read",
    "find",
    "remember",
    "recall",
    "amend",
    "save",
    "snapshot",
    "get",
    "put",
    "page",
)


def wanted() -> str:
    """The exporter that the environment asks for: `otlp`, `console`, or none at all."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ""
    named = os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if named:
        return "" if named == "none" else named
    return "otlp" if any(os.environ.get(name) for name in ENDPOINTS) else ""


def tracer(exporter: SpanExporter | None = None) -> Tracer | None:
    """What makes spans, sent to `exporter` or to where the environment says; None where it asks for nothing."""
    chosen = wanted()
    if exporter is None and not chosen:
        return None
    try:
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor  # noqa: PLC0415
    except ImportError:
        raise StoreRefused("traces need another package: pip install 'feedrank[otel]'") from None
    name = os.environ.get("OTEL_SERVICE_NAME") or "feedrank"
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}))
    if exporter is None:
        provider.add_span_processor(BatchSpanProcessor(_exporter(chosen)))
    else:
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("feedrank")


def _exporter(name: str) -> SpanExporter:
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter  # noqa: PLC0415

        return ConsoleSpanExporter(out=sys.stderr)
    if name != "otlp":
        raise StoreRefused(f"OTEL_TRACES_EXPORTER must be otlp, console or none, not {name!r}")
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    except ImportError:
        raise StoreRefused("traces need another package: pip install 'feedrank[otel]'") from None
    return OTLPSpanExporter()


def trace_store(store: object, made_by: Tracer) -> None:
    """Let every call of the store be a span of whoever makes it."""
    for name in STORE_CALLS:
        setattr(store, name, _spanned(getattr(store, name), f"store.{name}", made_by))


def _spanned(call: Callable[..., Awaitable[T]], name: str, made_by: Tracer) -> Callable[..., Awaitable[T]]:
    @wraps(call)
    async def spanned(*args: Any, **kwargs: Any) -> T:
        with made_by.start_as_current_span(name):
            return await call(*args, **kwargs)

    return spanned
