"""Listening to what other processes write to a PostgreSQL: one channel for a store, on a connection of its own.

Messages only point at the log; whatever is missed is read from there. Those that come within a moment are taken together:
the newest of each log says it all, and of a log that nobody here has loaded nothing is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import psycopg
from psycopg import sql as composing

from .postgres_connection import channel

News = tuple[str, str, int]
PAUSE = 0.25  # seconds between attempts to connect again
IDLE = 5.0  # seconds between two tests of the connection, and for the answer to each
MOMENT = 0.02  # seconds that messages are left to come together
FAILURES = (psycopg.Error, OSError, TimeoutError)


class PostgresListener:
    """One LISTEN, kept up."""

    def __init__(self, parameters: dict[str, Any], schema: str) -> None:
        self._parameters, self._channel = parameters, channel(schema)
        self._closed = self._listening = False
        self._watched: set[str] = set()
        self._news: asyncio.Queue[News | None] = asyncio.Queue()  # None: whoever reads has ended
        self._answered = time.monotonic()  # the last test of the connection

    def silence(self) -> float:
        """See `Store.silence`."""
        return time.monotonic() - self._answered

    def watch(self, log: str) -> None:
        """See `Store.watch`."""
        self._watched.add(log)
        if self._listening:
            self._news.put_nowait(("watched", log, 0))

    def unwatch(self, log: str) -> None:
        """See `Store.unwatch`."""
        self._watched.discard(log)

    def close(self) -> None:
        self._closed = True
        self._news.put_nowait(None)

    async def changes(self) -> AsyncIterator[News]:
        """See `Store.changes`."""
        reader = asyncio.create_task(self._read())
        reader.add_done_callback(lambda _: self._news.put_nowait(None))
        try:
            while (change := await self._news.get()) is not None:
                newest = {change[:2]: change}
                while not self._news.empty() and (change := self._news.get_nowait()) is not None:
                    newest[change[:2]] = change
                for one in newest.values():
                    yield one
                await asyncio.sleep(MOMENT)
        finally:
            self._listening = False
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader

    async def _read(self) -> None:
        """Put what is heard into the queue, on one connection after another."""
        while not self._closed:
            connection: psycopg.AsyncConnection[Any] | None = None
            try:
                connection = await psycopg.AsyncConnection.connect(autocommit=True, **self._parameters)
                await asyncio.wait_for(
                    connection.execute(
                        composing.SQL("LISTEN {}").format(composing.Identifier(self._channel))
                    ),
                    IDLE,
                )
                self._listening = True
                self._news.put_nowait(("lost", "", 0))
                while not self._closed:
                    self._answered, tested = time.monotonic(), time.monotonic()
                    while (left := tested + IDLE - time.monotonic()) > 0:
                        async for message in connection.notifies(timeout=left, stop_after=1):
                            self._heard(message.payload)
                    await asyncio.wait_for(connection.execute("SELECT 1"), IDLE)
            except FAILURES:
                await asyncio.sleep(PAUSE)
            finally:
                self._listening = False
                if connection is not None:
                    await connection.close()

    def _heard(self, payload: str) -> None:
        kind, name, version = payload.rsplit(" ", 2)
        if name in self._watched or kind in {"document", "lost"}:
            self._news.put_nowait((kind, name, int(version)))
