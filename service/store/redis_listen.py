"""Listening to what other processes write. Messages only point at the log; whatever is missed is read from there.

Every log has a channel of its own, so that a process hears of the logs that it has loaded and of no others, however many
processes there are. Messages that come within a moment are taken together: the newest of each log says it all.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import islice
from typing import Any

from . import keys
from .redis_nodes import FAILURES

Change = tuple[str, str, int]
PAUSE = 0.25  # seconds between attempts to connect again
IDLE = 5.0  # seconds between two tests of the connection
MOMENT = 0.02  # seconds that messages are left to come together
CHANNELS = 1_000  # in one command


class Listener:
    """One subscription, kept up. `connect` gives a redis.asyncio client (in Cluster, of any one node)."""

    def __init__(self, connect: Callable[[], Awaitable[Any]]) -> None:
        self._connect = connect
        self._closed = False
        self._channel: Any = None  # from when on each wish is sent by itself
        self._watched: set[str] = set()
        self._asked: dict[str, bool] = {}  # since the last command: to be heard of, or no more
        self._asking: asyncio.Task[None] | None = None
        self._answered = time.monotonic()  # the last ping

    def silence(self) -> float:
        """See `Store.silence`."""
        return time.monotonic() - self._answered

    def watch(self, log: str) -> None:
        """See `Store.watch`."""
        self._watched.add(log)
        self._ask(log, True)

    def unwatch(self, log: str) -> None:
        """See `Store.unwatch`."""
        self._watched.discard(log)
        self._ask(log, False)

    def _ask(self, log: str, heard: bool) -> None:
        if self._channel is None:
            return
        self._asked[log] = heard
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._send())

    async def _send(self) -> None:
        """Tell the server what was asked for meanwhile. If that fails, reading fails too and subscribes anew."""
        while self._asked and self._channel is not None:
            asked, self._asked = self._asked, {}
            joining = [keys.changes(log) for log, heard in asked.items() if heard]
            leaving = [keys.changes(log) for log, heard in asked.items() if not heard]
            try:
                if joining:
                    await self._channel.subscribe(*joining)
                if leaving:
                    await self._channel.unsubscribe(*leaving)
            except (*FAILURES, AttributeError):  # the latter of redis-py, if it was closed meanwhile
                return

    async def changes(self) -> AsyncIterator[Change]:
        """See `Store.changes`."""
        while not self._closed:
            client: Any = None
            try:
                client = await self._connect()
                async with client.pubsub() as channel:
                    await channel.connect()
                    sent: set[str] = set()
                    while some := list(islice(self._watched - sent, CHANNELS)):
                        await channel.subscribe(*map(keys.changes, some))
                        sent.update(some)
                    self._asked, self._channel = {}, channel
                    await channel.subscribe(keys.CHANGES)  # the last one: its reply says that all are heard
                    async for change in self._messages(channel):
                        yield change
            except FAILURES:
                await asyncio.sleep(PAUSE)
            finally:
                self._channel = None
                if client is not None:
                    with contextlib.suppress(*FAILURES):
                        await client.aclose()

    async def _messages(self, channel: Any) -> AsyncIterator[Change]:
        """Whatever comes, the connection is tested every `IDLE` seconds: messages prove only that they came."""
        complete, pinged = False, 0.0
        answered = True
        while not self._closed:
            now = time.monotonic()
            if now - pinged >= IDLE:
                if not answered:
                    raise ConnectionError("no answer on the channel of changes")
                await channel.ping()
                pinged, answered = now, False
            message = await channel.get_message(timeout=max(0.01, pinged + IDLE - now))
            if message is None:
                continue
            newest: dict[tuple[str, str], int] = {}
            while message is not None:
                if message["type"] == "message":
                    kind, name, version = message["data"].decode().rsplit(" ", 2)
                    newest[kind, name] = int(version)
                elif message["type"] == "pong":
                    self._answered, answered = time.monotonic(), True
                elif message["type"] == "subscribe":
                    name = message["channel"].decode()
                    if name == keys.CHANGES:
                        complete = True
                        yield ("lost", "", 0)
                    elif complete:
                        newest["watched", keys.name_of(name)] = 0
                message = await channel.get_message(timeout=0)
            for (kind, name), version in newest.items():
                yield (kind, name, version)
            await asyncio.sleep(MOMENT)

    async def close(self) -> None:
        self._closed = True
        if self._asking is not None:
            await self._asking
