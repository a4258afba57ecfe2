"""Replies leave together, at the end of a turn of the event loop."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any


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
