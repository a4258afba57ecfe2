"""The service inside this process: `Client(transport=Embedded("sqlite:mail.db"))` needs no server and no socket.

The clients know the service by HTTP alone, so what is swapped is the transport: the ASGI app runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import httpx

from feedrank.service.app import create_app
from feedrank.service.settings import Settings

T = TypeVar("T")


class Embedded(httpx.BaseTransport):
    """An httpx transport into a service of our own; closing it (the client does) stops the service cleanly."""

    def __init__(self, store: str) -> None:
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
        except BaseException as error:  # told to the thread that waits for the start
            started.set_exception(error)
            return
        self._app = httpx.ASGITransport(app)
        started.set_result(None)
        await self._stop.wait()
        await life.__aexit__(None, None, None)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request to the app and wait for the whole reply."""
        return self._call(self._handle(request))

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        content = request.read()
        inner = httpx.Request(request.method, request.url, headers=request.headers, content=content)
        reply = await self._app.handle_async_request(inner)
        return httpx.Response(reply.status_code, headers=reply.headers, content=await reply.aread())

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Stop the service: snapshots are written, the store is closed."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
