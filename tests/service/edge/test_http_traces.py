"""Traces: one from the client through the edge to the store; nothing of it is loaded where nobody asked."""

import asyncio
import os
import subprocess
import sys

import httpx
import pytest

from feedrank.clients import AsyncClient
from feedrank.service.contract import tracing
from feedrank.service.contract.faults import ServiceError
from feedrank.service.contract.settings import Settings
from feedrank.service.http.app import create_app

memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")


@pytest.fixture
def spans():
    return memory.InMemorySpanExporter()


def test_a_trace_goes_from_the_client_to_the_store(spans, tmp_path):
    app = create_app(Settings(store=f"sqlite:{tmp_path}/t.db"), exporter=spans)
    callers = tracing.tracer(memory.InMemorySpanExporter())

    async def talk():
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            AsyncClient("http://127.0.0.1", transport=transport) as client,
        ):
            await client.create("mail", {"task": "multiclass"})
            with callers.start_as_current_span("the app's own") as own:
                await client.feedback("mail", {"features": ["tax"], "label": "bills"})
            return own.get_span_context()

    own = asyncio.run(talk())
    inside = [span for span in spans.get_finished_spans() if span.context.trace_id == own.trace_id]
    (request,) = [span for span in inside if span.name == "POST feedback"]
    assert request.parent.span_id == own.span_id
    assert request.attributes["http.response.status_code"] == 200
    assert "store.append" in {span.name for span in inside}


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("import feedrank.clients", "opentelemetry"),
        # FastAPI itself may load the API of OpenTelemetry where it is installed, but not the SDK.
        (
            "from feedrank.service.http.app import create_app; "
            "from feedrank.service.contract.settings import Settings; create_app(Settings())",
            "opentelemetry.sdk",
        ),
    ],
)
def test_nothing_is_imported_without_the_variables(statement, part):
    code = f"import sys; {statement}; print([name for name in sys.modules if name.startswith({part!r})])"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("environ", "exporter"),
    [
        ({}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"}, ""),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"}, ""),
    ],
)
def test_the_standard_variables_decide(monkeypatch, environ, exporter):
    for name in (*tracing.ENDPOINTS, "OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert tracing.wanted() == exporter


def test_an_unknown_exporter_is_refused_in_one_line(monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "smoke")
    with pytest.raises(ServiceError, match="otlp, console or none"):
        tracing.tracer()
