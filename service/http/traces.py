"""A span for every request, which continues the caller's trace. Used only if traces are on (contract/tracing.py)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer


class Spans:
    """Begins the spans of requests."""

    def __init__(self, tracer: Tracer) -> None:
        from opentelemetry.propagate import extract  # noqa: PLC0415  (an extra)
        from opentelemetry.trace import SpanKind, StatusCode, use_span  # noqa: PLC0415

        self._tracer, self._extract, self.use = tracer, extract, use_span
        self._kind, self.error = SpanKind.SERVER, StatusCode.ERROR

    def begin(self, headers: Iterable[tuple[bytes, bytes]], method: str, path: str) -> RequestSpan:
        """The span of a request."""
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        span = self._tracer.start_span(
            method,
            context=self._extract(carrier),
            kind=self._kind,
            attributes={"http.request.method": method, "url.path": path},
        )
        return RequestSpan(self, span, method)


class RequestSpan:
    """That of one request."""

    def __init__(self, spans: Spans, span: Span, method: str) -> None:
        self._spans, self._span, self._method = spans, span, method

    def inside(self) -> AbstractContextManager[Any]:
        """What is called meanwhile is a part of it."""
        return self._spans.use(self._span, end_on_exit=False)

    def end(self, status: int, operation: str | None) -> None:
        """The reply is out, with this status, or 0 if there was none."""
        if status:
            self._span.set_attribute("http.response.status_code", status)
        if status >= 500:
            self._span.set_status(self._spans.error)
        if operation:
            self._span.update_name(f"{self._method} {operation}")
        self._span.end()


class TracedEdge:
    """The ASGI app around the edge."""

    def __init__(self, app: ASGIApp, spans: Spans) -> None:
        self._app, self._spans = app, spans

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        span, status = self._spans.begin(scope["headers"], scope["method"], scope["path"]), 0

        async def reply(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            with span.inside():
                await self._app(scope, receive, reply)
        finally:
            span.end(status, getattr(scope.get("endpoint"), "__name__", None))
