"""Predict and feedback, the calls that are made all day: from the bytes of a request to those of its reply.

They are read and decided in the callback of their socket, and become a task only where they have to wait: for a learner
that is not loaded, say. What must be durable first is answered by the batch that it was written with: one loop over all
who wait, not a task to wake for each. The app, which has routes for them as well, gets what does not come whole, and what
stands behind another call of its connection.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from feedrank.service.contract.budget import PARSED
from feedrank.service.contract.faults import ServiceError
from feedrank.service.runtime import Host
from feedrank.service.runtime.at_once import begin
from feedrank.service.runtime.replies import BODY

from .bodies import LARGE, read_round
from .edge import HEADERS, Edge, by_name
from .logs import request_id
from .problems import respond
from .shares import Use

if TYPE_CHECKING:
    from .traces import Spans

BODY_WAIT, TURN = "body", "turn"  # why the app gets a call
RawHeaders = list[tuple[bytes, bytes]]


def lines(headers: RawHeaders) -> bytes:
    """Headers as they are sent."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


OK, MARKS = STATUS_LINE[200], lines(HEADERS)
JSON_TYPE = lines([(b"content-type", b"application/json")])


class Connection(Protocol):
    """What is needed of wire.py's protocol."""

    headers: RawHeaders
    transport: Any
    flow: Any
    cycle: Any
    server_state: Any

    def on_response_complete(self) -> None: ...


class SocketCalls:
    """Those to the learners of a host. `spans` and `cors` are what else stands around the app, if anything does."""

    def __init__(self, edge: Edge, host: Host, spans: Spans | None, cors: CORSMiddleware | None) -> None:
        self.edge, self.host, self.spans, self.cors = edge, host, spans, cors
        self._limit = min(LARGE, host.settings.max_body)
        self.budget = host.budget
        self._defaults: tuple[RawHeaders | None, bytes] = None, b""

    def expects(self, sent: RawHeaders, name: str, operation: str) -> bool:
        """Whether the rest of a request is worth waiting for: the app refuses some by their head."""
        try:
            headers = by_name(sent)
            self.edge.admit(headers, name, operation)
            return 0 < int(headers.get(b"content-length", 0)) <= self._limit
        except ServiceError:
            return False

    def answer(self, connection: Connection, name: str, operation: str, data: bytes) -> bool:
        """Answer a request that has come whole; False leaves it to the app, before anything was done."""
        # One in a turn of the loop, as the app does: replies that wait for its end hold nobody back.
        if connection.flow.write_paused or connection.transport.pending:
            self.leave(TURN)
            return False
        if len(data) > self._limit:
            self.leave(BODY_WAIT)
            return False
        SocketCall(self, connection, name, operation).begin(data)
        return True

    def leave(self, reason: str) -> None:
        """Count a call that the app gets."""
        waits = self.host.waits
        waits[reason] = waits.get(reason, 0) + 1

    def defaults(self, connection: Connection) -> bytes:
        """The server's own headers, which it makes anew every second."""
        headers = connection.server_state.default_headers
        if headers is not self._defaults[0]:
            self._defaults = headers, lines(headers)
        return self._defaults[1]


class SocketCall:
    """One call. For the batch that it waits for it is a future, for uvicorn the cycle of a request."""

    response_started = disconnected = response_complete = _waits = False
    keep_alive = True
    span: Any = None
    _identity = ""
    _weight = 0  # bytes of memory that are counted while it waits
    _task: asyncio.Task[None] | None = None
    _use: Use | None = None

    def __init__(self, calls: SocketCalls, connection: Connection, name: str, operation: str) -> None:
        self._calls, self._connection, self._name, self._operation = calls, connection, name, operation
        self._begun = perf_counter()

    def begin(self, data: bytes) -> None:
        """Go as far as it goes without waiting."""
        calls, sent = self._calls, self._connection.headers
        headers, self._identity = calls.edge.identify(sent)
        token = request_id.set(self._identity)
        if calls.spans is not None:
            self.span = calls.spans.begin(sent, "POST", self.path)
        try:
            key = calls.edge.admit(headers, self._name, self._operation)
            if key is not None:
                self._use = calls.edge.shares.begin(key)
            if calls.budget.flight > calls.budget.share:
                raise calls.budget.full()
            if self.span is None:
                self._task = begin(self._run(headers, data), calls.host.waits)
            else:
                with self.span.inside():
                    self._task = begin(self._run(headers, data), calls.host.waits)
        except Exception as error:
            self.set_exception(error)
        finally:
            request_id.reset(token)
        if not self.response_complete:
            self._waits, self._connection.cycle = True, self
            self._weight = PARSED * len(data)
            calls.budget.flight += self._weight
            calls.edge.deadlines.watch(self)

    async def _run(self, headers: dict[bytes, bytes], data: bytes) -> None:
        try:
            request = read_round(data)
            if self._use is not None:
                keeps = request.get("remember") is not False
                await self._use.store(self._name, self._operation, len(data), remember=keeps)
            host, form = self._calls.host, BODY
            if self._operation == "predict":
                offered = host.predict.offer(self._name, request, self, form)
            else:
                key = headers.get(b"idempotency-key")
                named = None if key is None else key.decode("latin-1")
                offered = host.feedback.offer(self._name, request, self, form, named)
            del request
            await offered
        except Exception as error:
            self.set_exception(error)

    @property
    def path(self) -> str:
        return f"/v1/learners/{self._name}/{self._operation}"

    @property
    def message_event(self) -> SocketCall:
        """For uvicorn, which sets it where a connection is lost. No attribute: a cycle would keep every reply."""
        return self

    def set(self) -> None:
        """The connection was lost. Nothing waits for more of the request, and what was begun is finished."""

    def cancel(self) -> None:
        """Its time is over."""
        if self._task is not None:
            self._task.cancel()
        self.set_exception(TimeoutError())

    def done(self) -> bool:
        return self.response_complete

    def set_result(self, body: bytes) -> None:
        """It is durable."""
        if not self.response_complete:
            self._finish(200, OK, JSON_TYPE, body)

    def set_exception(self, error: Exception) -> None:
        """It was refused, or failed."""
        if self.response_complete:
            return
        token = request_id.set(self._identity)
        problem = respond(error)
        request_id.reset(token)
        status = problem.status_code
        headers = [header for header in problem.raw_headers if header[0] != b"content-length"]
        self._finish(status, STATUS_LINE[status], lines(headers), bytes(problem.body))

    def _finish(self, status: int, first: bytes, headers: bytes, body: bytes) -> None:
        """Send the reply and count it."""
        self.response_complete = True
        connection, calls = self._connection, self._calls
        if self._waits:
            calls.edge.deadlines.stop(self)
            calls.budget.flight -= self._weight
        if not self.disconnected:
            if calls.cors is not None:
                headers += lines(shared_headers(calls.cors, connection.headers, status))
            connection.transport.write(
                b"%b%b%bcontent-length: %d\r\nx-request-id: %b\r\n%b%b\r\n%b"
                % (
                    first,
                    calls.defaults(connection),
                    headers,
                    len(body),
                    self._identity.encode(),
                    MARKS,
                    b"" if self.keep_alive else b"connection: close\r\n",
                    body,
                )
            )
            if not self.keep_alive:
                connection.transport.close()
            connection.on_response_complete()
        self._task = None
        if self._use is not None:
            self._use.end(status)
        token = request_id.set(self._identity)
        calls.edge.note(self._operation, "POST", self.path, status, perf_counter() - self._begun)
        request_id.reset(token)
        if self.span is not None:
            self.span.end(status, self._operation)


def shared_headers(cors: CORSMiddleware, sent: RawHeaders, status: int) -> RawHeaders:
    """What lets pages of other origins read a reply."""
    headers = Headers(raw=sent)
    if "origin" not in headers:
        return []
    start: dict[str, Any] = {"type": "http.response.start", "status": status, "headers": []}

    async def keep(message: Any) -> None:
        start.update(message)

    begin(cors.send(start, keep, headers), {})
    return list(start["headers"])
