"""A span for every request, which continues the caller's trace. Used only if traces are on (contract/tracing.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


class TracedEdge:
    """The ASGI app around the edge."""

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        from opentelemetry.propagate import extract  # noqa: PLC0415  (an extra)
        from opentelemetry.trace import SpanKind, StatusCode  # noqa: PLC0415

        self._app, self._tracer, self._extract = app, tracer, extract
        self._kind, self._error = SpanKind.SERVER, StatusCode.ERROR

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        method = scope["method"]
        with self._tracer.start_as_current_span(
            method,
            context=self._extract(carrier),
            kind=self._kind,
            attributes={"http.request.method": method, "url.path": scope["path"]},
        ) as span:

            async def reply(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(self._error)
                await send(message)

            try:
                await self._app(scope, receive, reply)
            finally:
                operation = scope.get("operation") or getattr(scope.get("endpoint"), "__name__", None)
                if operation:
                    span.update_name(f"{method} {operation}")
