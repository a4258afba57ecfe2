"""Listening to what other processes write. Messages only point at the log; whatever is missed is read from there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from . import keys
from .redis_nodes import FAILURES

Change = tuple[str, str, int]
PAUSE = 0.25  # seconds between attempts to connect again
IDLE = 5.0  # seconds of silence after which the connection is tested


class Listener:
    """One subscription, kept up. `connect` gives a redis.asyncio client (in Cluster, of any one node)."""

    def __init__(self, connect: Callable[[], Awaitable[Any]]) -> None:
        self._connect = connect
        self._closed = False

    async def changes(self) -> AsyncIterator[Change]:
        """See `Store.changes`."""
        while not self._closed:
            client: Any = None
            try:
                client = await self._connect()
                async with client.pubsub() as channel:
                    await channel.subscribe(keys.CHANGES)
                    async for change in self._messages(channel):
                        yield change
            except FAILURES:
                await asyncio.sleep(PAUSE)
            finally:
                if client is not None:
                    await client.aclose()

    async def _messages(self, channel: Any) -> AsyncIterator[Change]:
        awaited = False
        while not self._closed:
            message = await channel.get_message(timeout=IDLE)
            if message is None:
                if awaited:
                    raise ConnectionError("no answer on the channel of changes")
                await channel.ping()
                awaited = True
                continue
            awaited = False
            if message["type"] == "subscribe":
                yield ("lost", "", 0)
            elif message["type"] == "message":
                kind, name, version = message["data"].decode().rsplit(" ", 2)
                yield (kind, name, int(version))

    async def close(self) -> None:
        self._closed = True
