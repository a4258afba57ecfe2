"""uvicorn's HTTP protocol with our changes.

Head and body of a reply leave in one system call: on a socket, a second one costs about as much as a prediction.

Who sends slowly is not waited for: a request's head must be whole within `head_timeout`, and its body must go on coming.
Nor is a head taken in that has no end, since the parser would keep all of it, nor is a reply kept that nobody reads.

A request that offers another protocol (h2c, a websocket) is answered as if the offer was not there (RFC 9110, 7.8): the
parser would take what follows its head for the other protocol, so it gets the head again, without the offer.

Connections are bounded, and there is always room for a health check: when all are taken, the one that has been silent for
longest makes room; what comes while every other is at work is answered 503, but for /livez and /readyz.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, cast

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from feedrank.service.contract.faults import ServiceError, TimedOut
from feedrank.service.contract.settings import Settings

from .calls import BODY_WAIT, TURN, SocketCalls, lines
from .edge import App
from .outbox import JoinedWrites, Outbox
from .patrol import READING, Patrol
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


class Protocol(HttpToolsProtocol):
    """One connection."""

    patrol: Patrol
    crowded = False
    in_head = True
    length = 0  # of the head so far, with all that came in the same piece
    offers = False  # another protocol, in the head that has just come
    unread = 0  # bytes of replies, when it was last seen whether they are read
    part: str | None = "head"  # that is to come
    begun = False  # a message, with the piece of data that came last
    whole = False  # is the message that came last
    owner: App
    outbox: Outbox
    calls: SocketCalls | None = None
    call: re.Match[bytes] | None = None  # of a predict or feedback that is answered when it is whole
    body = b""  # of such a request

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        joined = JoinedWrites(transport, self.loop, self.outbox)
        super().connection_made(cast(asyncio.Transport, joined))
        self.calls = self.owner.calls
        self.timeout_keep_alive = cast(int, self.patrol.idle)  # a timer takes any number
        if len(self.connections) > self.patrol.most:
            self.crowded = not self.patrol.make_room()
        self.patrol.wait("head", self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.call is not None:
            self._hand_over()
        self.patrol.forget(self)
        self.patrol.forget_reading(self)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        if self.call is not None:  # else it would be taken for idle
            self._hand_over()
        super().shutdown()

    def eof_received(self) -> bool:  # type: ignore[override]
        """It sends no more, and may still read: what has come whole is answered, then the connection closes."""
        if self.whole and self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
        else:
            self.transport.close()  # after what waits for the end of the turn
        return True

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread = self.transport.get_write_buffer_size()
        self.patrol.wait(READING, self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.patrol.forget_reading(self)

    def check_reading(self) -> None:
        """End the connection if nothing of its replies was read for a while."""
        before, self.unread = self.unread, self.transport.get_write_buffer_size()
        if self.unread < before:
            self.patrol.wait(READING, self)
        else:
            self.patrol.forget_reading(self)
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.in_head:
            self.length += len(data)
        waiting, self.begun = self.part, False
        self._feed(data)
        # Head and body may come one after the other; what comes in more pieces is timed, and counted, by the app.
        if self.call is not None and not (
            self.begun and not self.body and self._is_worth_waiting_for(self.call)
        ):
            self._hand_over()
        # Once for all that came: most requests come whole, and are never waited for.
        if self.part == "body" or (self.part and self.begun):
            self.patrol.wait(self.part, self)
        elif waiting and not self.part:
            self.patrol.forget(self)
        if self.in_head and self.length > LONGEST:
            self._refuse(LargeHead(f"the server takes at most {LONGEST} bytes of it"))

    def _feed(self, data: bytes) -> None:
        """Parse what has come; where a head offers another protocol, that head again without the offer, and the rest."""
        self._unset_keepalive_if_required()
        while data:
            try:
                self.parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                data = self._without_offer() + data[upgrade.args[0] :]
            except HttpParserError:
                self.send_400_response("Invalid HTTP request received.")
                return
            else:
                return

    def _without_offer(self) -> bytes:
        """The head that has just come, as it would be if it offered nothing."""
        method, version = self.parser.get_method(), self.parser.get_http_version()
        # The parser is done: with the message, and after `Connection: close` with the connection.
        self.offers, self.parser = False, HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        first = b"%b %b HTTP/%b\r\n" % (
            method,
            self.url,
            version.encode(),
        )
        return first + lines([header for header in self.headers if header[0] != b"upgrade"]) + b"\r\n"

    def send_400_response(self, msg: str) -> None:
        error = sys.exc_info()[1]
        # What failed in one of our own methods, which the parser calls, is no fault of the request's.
        ours = error.__context__ if isinstance(error, HttpParserCallbackError) else None
        self._refuse(describe(ours) if isinstance(ours, Exception) else MalformedRequest(msg))

    def on_message_begin(self) -> None:
        self.in_head, self.begun, self.whole = True, True, False
        self.part = "head"
        self._unset_keepalive_if_required()  # a reply to one before it, in the same piece of data, has set it
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        long, self.in_head, self.length = self.length > LONGEST, False, 0
        if long and size_of_head(self.url, self.headers) > LONGEST:
            raise LargeHead(f"the server takes at most {LONGEST} bytes of it")
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise MalformedRequest("this is no proxy: CONNECT leads nowhere")
            self.offers = True
            return
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
        if self.offers:
            return
        self.part, self.whole = None, True
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


def size_of_head(url: bytes, headers: Sequence[tuple[bytes, bytes]]) -> int:
    """Bytes of a head, without the blanks that may stand in it."""
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)


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
