"""uvicorn's HTTP protocol with our changes.

Head and body of a reply leave in one system call: on a socket, a second one costs about as much as a prediction.

Who sends slowly is not waited for: a request's head must be whole within `head_timeout`, and its body must go on coming.
Nor is a head taken in that has no end: the parser would keep all of it.

Connections are bounded, and there is always room for a health check: when all are taken, the one that has been silent for
longest makes room; what comes while every other is at work is answered 503, but for /livez and /readyz.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from http import HTTPStatus
from typing import Any, cast

from httptools import HttpParserCallbackError
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from feedrank.service.contract.faults import ServiceError, TimedOut
from feedrank.service.contract.settings import Settings

from .calls import BODY_WAIT, TURN, SocketCalls
from .edge import App
from .problems import MEDIA_TYPE, describe, respond

CALL = re.compile(rb"/v1/learners/([A-Za-z0-9][A-Za-z0-9._-]{0,127})/(predict|feedback)")
HEALTH = ("/livez", "/readyz")
LONGEST = 2**16  # bytes of a head
# A stream is silent for as long as its client likes.
PATIENT = "/stream"


class SlowRequest(ServiceError):  # noqa: N818  (as in faults.py: a name says what happened)
    status, type, title = 408, "request-timeout", "The request did not arrive in time"


class LargeHead(ServiceError):  # noqa: N818
    status, type, title = 431, "head-too-large", "The head of the request is too large"


class MalformedRequest(ServiceError):  # noqa: N818
    status, type, title = 400, "malformed-request", "This is not HTTP"


class Outbox:
    """What is written at the end of a turn of the event loop: all replies of the turn, one after another.

    A reply written at once wakes its client, which then waits again for the next one: between two replies that costs more
    than either.
    """

    def __init__(self) -> None:
        self._full: list[JoinedWrites] = []

    def add(self, writes: JoinedWrites, loop: asyncio.AbstractEventLoop) -> None:
        if not self._full:
            loop.call_soon(self._flush)
        self._full.append(writes)

    def _flush(self) -> None:
        full, self._full = self._full, []
        for writes in full:
            writes.flush()


class JoinedWrites:
    """A transport that writes at the end of a turn of the event loop what was handed to it during the turn."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, outbox: Outbox) -> None:
        self._transport, self._loop, self._outbox = transport, loop, outbox
        self._waiting: list[bytes] = []
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if not self._waiting:
            self._outbox.add(self, self._loop)
        self._waiting.append(data)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    @property
    def pending(self) -> bool:
        """Whether something waits for the end of the turn."""
        return bool(self._waiting)

    def flush(self) -> None:
        """Write now."""
        if self._waiting:
            data, self._waiting = b"".join(self._waiting), []
            # uvloop raises it where the connection has ended; those of others in the same turn go on.
            with contextlib.suppress(RuntimeError):
                self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Patrol:
    """Which connections are waited for, and since when: one timer for all, since a timer each would cost too much."""

    def __init__(self, settings: Settings) -> None:
        self.most = settings.connections
        self._limits = {"head": settings.head_timeout, "body": settings.body_timeout}
        # Each in order of the time from which it is waited for.
        self._waits: dict[str, dict[Protocol, float]] = {"head": {}, "body": {}}
        self._timer: asyncio.TimerHandle | None = None

    def wait(self, part: str, protocol: Protocol) -> None:
        """Wait for the head, or for more of the body, from now on."""
        self.forget(protocol)
        self._waits[part][protocol] = protocol.loop.time()
        if self._timer is None:
            self._timer = protocol.loop.call_later(self._pause, self._look, protocol.loop)

    def forget(self, protocol: Protocol) -> None:
        """Nothing more is waited for."""
        for waits in self._waits.values():
            waits.pop(protocol, None)

    def make_room(self) -> bool:
        """Close the connection that has been waited for longest, if there is one."""
        for waits in self._waits.values():
            for protocol in waits:
                protocol.late()
                return True
        return False

    @property
    def _pause(self) -> float:
        return min(self._limits.values()) / 10

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for part, waits in self._waits.items():
            for protocol, since in list(waits.items()):
                if since + self._limits[part] > now:
                    break
                if protocol.flow.read_paused:  # we are the slow ones
                    self.wait(part, protocol)
                else:
                    protocol.late()
        waiting = any(self._waits.values())
        self._timer = loop.call_later(self._pause, self._look, loop) if waiting else None


class Protocol(HttpToolsProtocol):
    """One connection."""

    patrol: Patrol
    crowded = False
    in_head = True
    length = 0  # of the head so far, with all that came in the same piece
    part: str | None = "head"  # that is to come
    begun = False  # a message, with the piece of data that came last
    owner: App
    outbox: Outbox
    calls: SocketCalls | None = None
    call: re.Match[bytes] | None = None  # of a predict or feedback that is answered when it is whole
    body = b""  # of such a request

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        joined = JoinedWrites(transport, self.loop, self.outbox)
        super().connection_made(cast(asyncio.Transport, joined))
        self.calls = self.owner.calls
        if len(self.connections) > self.patrol.most:
            self.crowded = not self.patrol.make_room()
        self.patrol.wait("head", self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.call is not None:
            self._hand_over()
        self.patrol.forget(self)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        if self.call is not None:  # else it would be taken for idle
            self._hand_over()
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        if self.in_head:
            self.length += len(data)
        waiting, self.begun = self.part, False
        super().data_received(data)
        # Head and body may come one after the other; what comes in more pieces has the time that the app gives it.
        if self.call is not None and not (self.begun and self._is_worth_waiting_for(self.call)):
            self._hand_over()
        # Once for all that came: most requests come whole, and are never waited for.
        if self.part == "body" or (self.part and self.begun):
            self.patrol.wait(self.part, self)
        elif waiting and not self.part:
            self.patrol.forget(self)
        if self.in_head and self.length > LONGEST:
            self._refuse(LargeHead(f"the server takes at most {LONGEST} bytes of it"))

    def send_400_response(self, msg: str) -> None:
        error = sys.exc_info()[1]
        # What failed in one of our own methods, which the parser calls, is no fault of the request's.
        ours = error.__context__ if isinstance(error, HttpParserCallbackError) else None
        self._refuse(describe(ours) if isinstance(ours, Exception) else MalformedRequest(msg))

    def on_message_begin(self) -> None:
        self.in_head = self.begun = True
        self.part = "head"
        self._unset_keepalive_if_required()  # a reply to one before it, in the same piece of data, has set it
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self.in_head, self.length = False, 0
        if self._is_call():
            self.part = "body"
            return
        path = self.url.partition(b"?")[0].decode("latin-1")
        self.part = None if path.endswith(PATIENT) else "body"
        strange = self.url[:1] != b"/" and self._names_another_host()
        if not strange and (not self.crowded or path in HEALTH):
            super().on_headers_complete()
            return
        own, self.app = self.app, cast(Any, misdirected if strange else unavailable)
        try:
            super().on_headers_complete()
        finally:
            self.app = own
        self.cycle.keep_alive = False

    def _names_another_host(self) -> bool:
        """Whether a target in absolute form has not the one authority of Host: others may go by it (RFC 9112, 3.2.2)."""
        hosts = [value for name, value in self.headers if name == b"host"]
        authority = self.url.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
        return self.url != b"*" and [authority.lower()] != [host.lower() for host in hosts]

    def _is_call(self) -> bool:
        """Whether it is a predict or feedback that may be answered without the app, by its head."""
        if self.calls is None or (call := CALL.fullmatch(self.url)) is None or self.crowded:
            return False
        if not (self.cycle is None or self.cycle.response_complete):
            self.calls.leave(TURN)
            return False
        if (
            self.expect_100_continue
            or self.parser.get_method() != b"POST"
            or self.parser.get_http_version() != "1.1"
            or not self.parser.should_keep_alive()
            or self.parser.should_upgrade()
        ):
            return False
        self.call, self.body = call, b""
        return True

    def _is_worth_waiting_for(self, call: re.Match[bytes]) -> bool:
        """Whether the rest of such a request is: the app would refuse some by their head."""
        name, operation = call.groups()
        return self.calls is not None and self.calls.expects(self.headers, name.decode(), operation.decode())

    def _hand_over(self) -> None:
        """Let the app have a request of which the head, and perhaps some of the body, has come."""
        self.call = None
        if self.calls is not None and self.part == "body":
            self.calls.leave(BODY_WAIT)
        super().on_headers_complete()
        if self.body:
            super().on_body(self.body)
            self.body = b""

    def on_body(self, body: bytes) -> None:
        if self.call is None:
            super().on_body(body)
        else:
            self.body += body

    def on_message_complete(self) -> None:
        self.part = None
        if self.calls is not None and self.call is not None:
            name, operation = self.call.groups()
            body, self.body, call, self.call = self.body, b"", self.call, None
            if self.calls.answer(self, name.decode(), operation.decode(), body):
                return
            self.body, self.call = body, call
            self._hand_over()
        super().on_message_complete()

    def late(self) -> None:
        """It was waited for long enough: say so, and hang up."""
        if self.call is not None:
            self._hand_over()
        asked = bool(self.scope) and self.cycle is not None and not self.cycle.response_complete
        late = SlowRequest("send the whole request without a pause")
        self._refuse(late if asked or self.headers else None)

    def _refuse(self, error: ServiceError | None) -> None:
        """Hang up, and say why, unless that would stand in the middle of a reply."""
        self.part = self.call = None
        self.patrol.forget(self)
        begun = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if error is not None and not begun:
            self.transport.write(_reply(error))
        self.transport.close()


def protocol(settings: Settings, app: App) -> type[Protocol]:
    """The protocol of one server: its connections know of each other."""
    return type("Protocol", (Protocol,), {"patrol": Patrol(settings), "outbox": Outbox(), "owner": app})


async def unavailable(scope: Scope, receive: Receive, send: Send) -> None:
    """The reply while all connections are taken."""
    await respond(TimedOut("all connections are taken; send the same request again"))(scope, receive, send)


async def misdirected(scope: Scope, receive: Receive, send: Send) -> None:
    """The reply to a request that names two hosts."""
    error = MalformedRequest("the target names another host than the header Host")
    await respond(error)(scope, receive, send)


def _reply(error: ServiceError) -> bytes:
    body = respond(error).body
    head = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\ncontent-type: {MEDIA_TYPE}\r\n"
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + bytes(body)
