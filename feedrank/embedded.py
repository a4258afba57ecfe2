"""The service inside this process: `Client(transport=Embedded("sqlite:mail.db"))` needs no server and no socket.

The clients know the service by HTTP alone, so what is swapped is the transport: the ASGI app runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import httpx
import uvicorn
from fastapi import FastAPI

from feedrank.service.contract.settings import Settings
from feedrank.service.http.app import create_app

T = TypeVar("T")


class Embedded(httpx.BaseTransport):
    """An httpx transport into a service of our own; closing it (the client does) stops the service cleanly."""

    def __init__(self, store: str, shared: Path | None = None) -> None:
        """`shared` is where other processes of this user may use the same store: a socket, made here."""
        self._shared = shared
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(store, started), name="feedrank", daemon=True)
        self._thread.start()
        started.result()

    def _run(self, store: str, started: Future[None]) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(store, started))

    async def _serve(self, store: str, started: Future[None]) -> None:
        try:
            app = create_app(Settings(store=store))
            life = app.router.lifespan_context(app)
            await life.__aenter__()
        except BaseException as error:  # the thread that waits for the start raises it
            started.set_exception(error)
            return
        self._app = httpx.ASGITransport(app)
        async with _sharing(app, self._shared):
            started.set_result(None)
            await self._stop.wait()
        await life.__aexit__(None, None, None)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request to the app and wait for the whole reply."""
        return self._call(self._handle(request))

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        content = request.read()
        # Whatever name the client gave this service: a caller in the same process is at home.
        headers = {**request.headers, "host": "localhost"}
        inner = httpx.Request(request.method, request.url, headers=headers, content=content)
        reply = await self._app.handle_async_request(inner)
        return httpx.Response(reply.status_code, headers=reply.headers, content=await reply.aread())

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Stop the service: snapshots are written, the store is closed."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()


@contextlib.asynccontextmanager
async def _sharing(app: FastAPI, place: Path | None) -> AsyncIterator[None]:
    """Listen on a socket that only this user can open. The store's lock is ours, so a socket that is left there is dead."""
    if place is None:
        yield
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        place.unlink(missing_ok=True)
        # Bound under another name, closed to others, and only then put where it is looked for.
        early = place.with_name(f"{place.name}.{os.getpid()}")
        early.unlink(missing_ok=True)
        listener.bind(str(early))
        early.chmod(0o600)
        listener.listen()
        early.rename(place)
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, access_log=False))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield
        finally:
            place.unlink(missing_ok=True)
            server.should_exit = True
            await serving
