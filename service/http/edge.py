"""Between the socket and the routes: request id, checks of host, origin and key, timeout, metrics, log, headers."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import count
from time import monotonic, perf_counter
from typing import Any, Protocol

from fastapi import FastAPI
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from feedrank.service.contract.faults import Forbidden, Unauthorized
from feedrank.service.contract.settings import Settings, is_loopback

from .bodies import authorize
from .keyring import Key, Keyring
from .logs import request_id
from .metrics import BUCKETS, Metrics
from .problems import respond
from .shares import Shares

log = logging.getLogger("feedrank.requests")

GONE = 499  # what the metrics show for a client that left before its reply
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:\[\]@/?#\\]+))(?::[0-9]*)?")
# A stream lasts as long as its client likes (each chunk of it has the time limit), a large file as long as its way.
UNTIMED = ("/stream", "/snapshot")
HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
PAGE_HEADERS = [
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
PAGE_POLICY = (
    b"default-src 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; form-action 'self'"
)


class Bounded(Protocol):
    """What has a time limit: a task, or a call without one."""

    def cancel(self) -> object: ...


class App(FastAPI):
    """FastAPI with the edge around all of it, so that what the edge answers itself costs nothing more."""

    edge: ASGIApp
    calls: Any = None  # answers predict and feedback from their sockets (calls.py), once there is a host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["app"] = self
            await self.edge(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


class Edge:
    """The ASGI app around the app with the routes."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        metrics: Metrics,
        keyring: Keyring | None,
    ) -> None:
        self.app = app
        self.shares = Shares()
        self.metrics = metrics
        self.keyring = keyring
        self._door = Door(settings)
        self.deadlines = Deadlines(settings.request_timeout)
        self._ids = count(1)
        self._process = secrets.token_hex(4)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status, ended = perf_counter(), 0, False
        headers, identity = self.identify(scope["headers"])
        request_id.set(identity)
        marks = [(b"x-request-id", identity.encode()), *HEADERS]

        async def reply(message: Message) -> None:
            nonlocal status, ended
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *marks, *_page(message)]
            elif not message.get("more_body", False):
                ended = True
            await send(message)

        task = None if scope["path"].endswith(UNTIMED) else self.deadlines.start()
        try:
            try:
                await self._answer(scope, receive, reply, headers)
            except asyncio.CancelledError:
                if task is None or not self.deadlines.was_late(task):
                    raise
                raise TimeoutError from None
        except ClientDisconnect:
            pass  # Nobody is left to answer.
        except Exception as error:
            if not status:
                await respond(error)(scope, receive, reply)
            elif not ended:
                # The reply has begun, so it cannot become another one: the server cuts the connection.
                raise
        finally:
            if task is not None:
                self.deadlines.stop(task)
            if (use := scope.get("feedrank.use")) is not None:
                use.end(status or 200)  # who left is not known to have been refused
            operation = str(getattr(scope.get("endpoint"), "__name__", "unmatched"))
            self.note(operation, scope["method"], scope["path"], status or GONE, perf_counter() - begun)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, headers: dict[bytes, bytes]) -> None:
        """Check where it comes from and the key, and pass it on."""
        scope["feedrank.headers"] = headers
        self._door.check(headers)
        if self.keyring is not None and scope["path"].startswith("/v1/"):
            scope["feedrank.key"] = key = self._key(self.keyring, headers)
            scope["feedrank.use"] = self.shares.begin(key)
        await self.app(scope, receive, send)

    def admit(self, headers: Mapping[bytes, bytes], name: str, scope: str) -> Key | None:
        """The key of a call to a learner, if there are keys; refuses what may not come in, as the app would."""
        self._door.check(headers)
        if self.keyring is None:
            return None
        key = self._key(self.keyring, headers)
        authorize(key, scope, name)
        return key

    def _key(self, keyring: Keyring, headers: Mapping[bytes, bytes]) -> Key:
        sent = headers.get(b"authorization", b"")
        bearer = sent[7:].strip().decode("latin-1") if sent[:7].lower() == b"bearer " else ""
        key = keyring.find(bearer)
        if key is None:
            raise Unauthorized
        return key

    def identify(self, sent: Sequence[tuple[bytes, bytes]]) -> tuple[dict[bytes, bytes], str]:
        """The headers, the last of each name, and the request's id: the caller's if it has a sound one, else a new one."""
        headers = by_name(sent)
        own = headers.get(b"x-request-id")
        if own is None or REQUEST_ID.fullmatch(identity := own.decode("latin-1")) is None:
            identity = f"{self._process}-{next(self._ids):x}"
        return headers, identity

    def note(self, operation: str, method: str, path: str, status: int, seconds: float) -> None:
        """Count a reply, and log it."""
        self.metrics.replies[operation, method, status] += 1
        times = self.metrics.times[operation]
        times.counts[bisect_left(BUCKETS, seconds)] += 1
        times.total += seconds
        # 503 refuses as 4xx does: what is wrong is said once, by whoever knows when it began and ended.
        fault = status >= 500 and status != 503
        level = logging.ERROR if fault else logging.INFO if status >= 400 else logging.DEBUG
        if log.isEnabledFor(level):
            fields = {
                "operation": operation,
                "method": method,
                "path": path,
                "status": status,
                "milliseconds": round(seconds * 1000, 3),
            }
            log.log(level, "request", extra=fields)


def _page(message: Message) -> list[tuple[bytes, bytes]]:
    """Headers that a page needs in a browser; a page may bring a policy of its own."""
    for name, value in message.get("headers", ()):
        if name == b"content-type":
            if not value.startswith(b"text/html"):
                return []
            break
    else:
        return []
    if any(name == b"content-security-policy" for name, _ in message["headers"]):
        return PAGE_HEADERS
    return [*PAGE_HEADERS, (b"content-security-policy", PAGE_POLICY)]


class Deadlines:
    """Cancels tasks that run longer than `seconds`, to within a tenth of it.

    One timer for all: a timer for each request would cost more than the edge's other work.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # All have the same limit, so the order of starting is the order of ending.
        self._ends: dict[Bounded, float] = {}
        self._late: set[Bounded] = set()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> asyncio.Task[Any]:
        """Watch the current task."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("only a task has a time limit")
        self.watch(task)
        return task

    def watch(self, bounded: Bounded) -> None:
        """Cancel it when its time is over."""
        self._ends[bounded] = monotonic() + self._seconds
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds / 10, self._look)

    def was_late(self, task: asyncio.Task[Any]) -> bool:
        """Whether the cancellation that a task has just met was ours; it is then taken back."""
        if task not in self._late:
            return False
        task.uncancel()
        return True

    def stop(self, bounded: Bounded) -> None:
        """Watch it no longer."""
        self._ends.pop(bounded, None)
        self._late.discard(bounded)

    def _look(self) -> None:
        now = monotonic()
        for bounded, end in list(self._ends.items()):
            if end > now:
                break
            if bounded not in self._late:
                self._late.add(bounded)
                try:
                    bounded.cancel()
                except Exception:  # one that fails leaves the others their limit
                    log.exception("a request that was late could not be ended")
        later = asyncio.get_running_loop().call_later
        self._timer = later(self._seconds / 10, self._look) if self._ends else None


class ForeignRequest(Forbidden):
    """A request that another site may have made a browser send."""

    title = "Not from here"


class Door:
    """Who may speak to the service at all, by the headers of a request, before any key is looked at.

    Without keys, whatever runs on this machine may, but no web page: a page of another origin can make the user's browser
    send requests to loopback, and a name that an attacker owns can be made to resolve to 127.0.0.1 (DNS rebinding).

        Host                      a loopback name or address
        Origin                    our own, or one of `cors_origins`
        Sec-Fetch-Site            not `cross-site` and not `same-site`, unless the origin is one of `cors_origins`

    With keys, a page has no key to send, so that only `allowed_hosts` is compared, where it is set.
    """

    def __init__(self, settings: Settings) -> None:
        self._keys = bool(settings.keys_file)
        self._hosts = frozenset(settings.hosts)
        self._origins = frozenset(settings.origins)
        self._seen: dict[bytes, bool] = {}

    def check(self, headers: Mapping[bytes, bytes]) -> None:
        """ForeignRequest, with what to do, if the request may not come in."""
        host = headers.get(b"host", b"")
        origin, site = headers.get(b"origin", b""), headers.get(b"sec-fetch-site", b"")
        if not self._is_ours(host):
            raise ForeignRequest(
                f"the host {host.decode('latin-1')[:200]!r} is not a host name of this service: "
                + (
                    "see FEEDRANK_ALLOWED_HOSTS"
                    if self._keys
                    else "without keys it answers to loopback names only"
                )
            )
        if self._keys or (not origin and not site):
            return
        allowed = bool(origin) and ("*" in self._origins or origin.decode("latin-1") in self._origins)
        if not allowed and (_foreign(origin, host) or site in (b"cross-site", b"same-site")):
            raise ForeignRequest(
                "a browser sent this from another site; name its origin in FEEDRANK_CORS_ORIGINS, or use keys"
            )

    def _is_ours(self, host: bytes) -> bool:
        ours = self._seen.get(host)
        if ours is None:
            name = host_name(host.decode("latin-1"))
            ours = (not self._hosts or name in self._hosts) if self._keys else is_loopback(name)
            if len(self._seen) < 1024:
                self._seen[host] = ours
        return ours


def by_name(sent: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The headers, the last of each name; of two hosts it is not certain which one others go by, so that neither counts."""
    headers = dict(sent)
    if len(headers) < len(sent) and sum(name == b"host" for name, _ in sent) > 1:
        headers[b"host"] = b"two hosts"
    return headers


def host_name(host: str) -> str:
    """The name in a Host header, without the port, and without brackets around an address; "" if it is no host."""
    shape = HOST.fullmatch(host)
    return (shape[1] or shape[2]).lower().rstrip(".") if shape else ""


def _foreign(origin: bytes, host: bytes) -> bool:
    """Whether an Origin names another host or port than the request was sent to; `null` is foreign."""
    return bool(origin) and origin.partition(b"://")[2].lower() != host.lower()
