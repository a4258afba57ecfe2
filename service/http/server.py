"""Run the service: one line when it is ready, one line when it cannot start, a clean stop on SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import uvicorn

from feedrank.learners import kernel
from feedrank.service.contract.faults import ServiceError
from feedrank.service.contract.headroom import protect
from feedrank.service.contract.settings import Settings, SettingsError
from feedrank.service.contract.store_url import shown
from feedrank.service.runtime import catalogue
from feedrank.service.store import Store

from . import logs
from .app import create_app
from .edge import App
from .keyring import KeysError
from .wire import protocol

log = logging.getLogger("feedrank.server")

SIGNALS = (signal.SIGTERM, signal.SIGINT)
BACKLOG = 2048
SWITCH = 1e-4  # seconds after which a thread that waits for the interpreter gets it


class StartError(Exception):
    """Why the service cannot start, in one line."""


class Server(uvicorn.Server):
    """uvicorn that tells the app about the stop first, so that streams end by themselves."""

    def __init__(self, config: uvicorn.Config, app: App, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            settle()
            self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn does, but a signal ends here: raised again, it would kill before the store is closed."""
        before = {number: signal.signal(number, self.handle_exit) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.stopping.set()
        await super().shutdown(sockets)


def run(settings: Settings) -> int:
    """Serve until told to stop; the exit status of the process."""
    logs.configure(settings.log_level)
    faulthandler.enable()  # a crash says where it was
    protect()
    try:
        app = create_app(settings)
        with listen(settings.host, settings.port) as listener:
            _run(serve(app, settings, listener))
    except (SettingsError, KeysError, StartError, ServiceError) as error:
        print(f"feedrank: {error}", file=sys.stderr)
        return 1
    return 0


def listen(host: str, port: int) -> socket.socket:
    """A bound socket, or StartError."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, proto)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise StartError(f"cannot listen on {host} port {port}: {reason}; try another --port") from None
    return listener


async def serve(app: App, settings: Settings, listener: socket.socket) -> None:
    """Open the store, serve, and on a stop finish what is under way, then write snapshots, within the bound."""
    half = settings.stop_timeout / 2
    config = uvicorn.Config(
        app,
        http=protocol(settings, app),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(half)),
        backlog=BACKLOG,
    )
    server = Server(config, app, lambda: announce(settings, listener, empty=empty))
    try:
        # The server enters the lifespan itself, so that a store that refuses is an exception and no log entry.
        async with asyncio.timeout(None) as bound, app.router.lifespan_context(app):
            empty = await is_empty(app.state.host.store)
            await server.serve(sockets=[listener])
            bound.reschedule(asyncio.get_running_loop().time() + half)
    except TimeoutError:
        log.error(
            "stopped before every snapshot was written; the log has all events, the next start is slower"
        )


async def is_empty(store: Store) -> bool:
    """Whether it has no learner yet; one that does not say so now has some."""
    try:
        return await store.count(catalogue.KIND) == 0
    except ServiceError:
        return False


def settle() -> None:
    """Collect garbage again, but seldom, and never look through what the start has made.

    Requests leave no cycles behind but those of an exception here and there; what lives long is plain data in large
    numbers (names, requests that wait), and every look through all of it holds up whoever is being served.

    A thread that has written to the disk asks for the interpreter, and until it has it, each of the loop's many short
    pauses wakes it in vain, which costs the loop more than the pause: it gets its turn after a tenth of a millisecond.
    """
    sys.setswitchinterval(SWITCH)
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


def announce(settings: Settings, listener: socket.socket, *, empty: bool) -> None:
    """The line that says it is ready, one to try, and where a beginner finds something to look at."""
    host, port = listener.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    key = " -H 'Authorization: Bearer KEY'" if settings.keys_file else ""
    spec = '{"task": "multiclass"}'
    print(
        f"feedrank is ready on {address} (store {shown(settings.store)}, {kernel.NAME} kernel); "
        f"try: curl -X PUT {address}/v1/learners/folders{key} -d '{spec}'",
        flush=True,
    )
    if empty:
        key = " --key KEY" if settings.keys_file else ""
        print(
            f"  no learner yet: `feedrank start FILE --server {address}{key}` learns from a table of your own, and"
            " `feedrank demo` shows three learners at work",
            flush=True,
        )


def _run(main: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop  # noqa: PLC0415  (not on Windows)
    except ModuleNotFoundError:
        asyncio.run(main)
    else:
        uvloop.run(main)
