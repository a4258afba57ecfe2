"""The calls that are made all day, from the bytes of a request to the bytes of its reply, without a task for each.

A plain prediction or feedback (`plain` in predictor.py and writer.py says what that is) is read and decided in the
callback of its socket. What must be durable first is answered by the batch that it was written with: one loop over all who
wait, not a task to wake for each. Everything else is left to the app, before anything was done: what is refused, what is
not loaded, what has to wait for its turn. To a plain call the app gives the same reply.
"""

from __future__ import annotations

import logging
import re
from time import perf_counter
from typing import Any, Protocol

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from feedrank.learners import kernel
from feedrank.service.contract.faults import ServiceError
from feedrank.service.contract.messages import Event
from feedrank.service.runtime import Host
from feedrank.service.runtime.learner_state import LoadedLearner
from feedrank.service.runtime.predictor import Records, as_json
from feedrank.service.store import Draft

from .bodies import LARGE
from .edge import HEADERS, Edge, by_name
from .logs import request_id
from .problems import respond

log = logging.getLogger("feedrank.direct")

CALL = re.compile(rb"/v1/learners/([A-Za-z0-9][A-Za-z0-9._-]{0,127})/(predict|feedback)")
JSON_TYPE = b"content-type: application/json\r\n"
NEWLINE = orjson.OPT_APPEND_NEWLINE
Headers = list[tuple[bytes, bytes]]


def lines(headers: Headers) -> bytes:
    """Headers as they are sent."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


OK, MARKS = STATUS_LINE[200], lines(HEADERS)


class Connection(Protocol):
    """What is needed of wire.py's protocol."""

    headers: Headers
    transport: Any
    flow: Any
    cycle: Any
    server_state: Any

    def on_response_complete(self) -> None: ...


class Direct:
    """Plain calls to the learners of a host."""

    def __init__(self, edge: Edge, host: Host) -> None:
        self.edge, self.host = edge, host
        self._limit = min(LARGE, host.settings.max_body)
        self._defaults: tuple[Headers | None, bytes] = None, b""

    def expects(self, sent: Headers, name: str, operation: str) -> bool:
        """Whether a request with this head may be plain: the app refuses some without their body."""
        try:
            headers = by_name(sent)
            self.edge.admit(headers, name, operation)
            return 0 < int(headers.get(b"content-length", 0)) <= self._limit
        except ServiceError:
            return False

    def answer(self, connection: Connection, name: str, operation: str, data: bytes) -> bool:
        """Answer a request that has come whole, at once or when it is durable; False leaves all of it to the app."""
        begun, host = perf_counter(), self.host
        # One in a turn of the loop, as the app does: replies that wait for its end hold nobody back.
        if len(data) > self._limit or connection.flow.write_paused or connection.transport.pending:
            return False
        learner, identity = None, ""
        plain: tuple[Event, Draft] | bytes | None = None  # what to write, or the reply
        records: Records = {}
        try:
            headers, identity = self.edge.identify(connection.headers)
            self.edge.admit(headers, name, operation)
            learner = None if b"idempotency-key" in headers else host.at_hand(name)
            if learner is not None:
                learner.worker.turned()
                request = kernel.loads(data)
                if operation == "feedback":
                    plain = host.feedback.plain(learner, request)
                elif (reply := host.predict.plain(learner, request, records, as_json)) is not None:
                    plain = orjson.dumps(reply, option=NEWLINE)
        except Exception:
            log.debug("left to the app", exc_info=True)  # which meets it too, and answers it
        if learner is None or plain is None:
            if learner is not None:
                host.leave(learner)
            return False
        # From here on it is ours alone, whatever happens: the app would do it a second time.
        call = DirectCall(self, connection, learner, identity, operation, begun)
        if isinstance(plain, tuple):
            call.wait()
            host.feedback.offer(learner, *plain, call)
        elif records:
            call.body = plain
            call.wait()
            host.predict.offer(learner, records, call)
        else:
            call.finish(200, OK, JSON_TYPE, plain)
        return True

    def defaults(self, connection: Connection) -> bytes:
        """The server's own headers, which it makes anew every second."""
        headers = connection.server_state.default_headers
        if headers is not self._defaults[0]:
            self._defaults = headers, lines(headers)
        return self._defaults[1]


class DirectCall:
    """One call. For the batch that it waits for it is a future, for uvicorn the cycle of a request."""

    response_started = disconnected = response_complete = False
    keep_alive = True
    body = b""  # of a prediction, made before it is durable

    def __init__(
        self,
        direct: Direct,
        connection: Connection,
        learner: LoadedLearner,
        identity: str,
        operation: str,
        begun: float,
    ) -> None:
        self._direct, self._connection, self._learner = direct, connection, learner
        self._identity, self._operation, self._begun = identity, operation, begun

    @property
    def message_event(self) -> DirectCall:
        """For uvicorn, which sets it where a connection is lost. No attribute: a cycle would keep every reply."""
        return self

    def set(self) -> None:
        """The connection was lost. Nothing waits for more of the request, and what was begun is finished."""

    def wait(self) -> None:
        """It is answered later, or when its time is over."""
        self._connection.cycle = self
        self._direct.edge.deadlines.watch(self)

    def cancel(self) -> None:
        """Its time is over."""
        self.set_exception(TimeoutError())

    def done(self) -> bool:
        return self.response_complete

    def set_result(self, result: Any) -> None:
        """It is durable; for feedback, what its one step gave."""
        if self.body:
            self.finish(200, OK, JSON_TYPE, self.body)
        elif isinstance(done := result[0], ServiceError):
            self.set_exception(done)
        else:
            self.finish(200, OK, JSON_TYPE, orjson.dumps(done[0], option=NEWLINE))

    def set_exception(self, error: Exception) -> None:
        """It was refused after all, or failed."""
        token = request_id.set(self._identity)
        problem = respond(error)
        request_id.reset(token)
        headers = [header for header in problem.raw_headers if header[0] != b"content-length"]
        self.finish(
            problem.status_code, STATUS_LINE[problem.status_code], lines(headers), bytes(problem.body)
        )

    def finish(self, status: int, first: bytes, headers: bytes, body: bytes) -> None:
        """Send the reply and count it."""
        self.response_complete = True
        connection, edge = self._connection, self._direct.edge
        edge.deadlines.stop(self)
        self._direct.host.leave(self._learner)
        if not self.disconnected:
            connection.transport.write(
                b"%b%b%bcontent-length: %d\r\nx-request-id: %b\r\n%b%b\r\n%b"
                % (
                    first,
                    self._direct.defaults(connection),
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
        self.body = b""  # the connection keeps its last call
        path = f"/v1/learners/{self._learner.entry.name}/{self._operation}"
        token = request_id.set(self._identity)
        edge.note(self._operation, "POST", path, status, perf_counter() - self._begun)
        request_id.reset(token)
