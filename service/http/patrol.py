"""Which connections are waited for: who sends nothing more, and who reads nothing, is not waited for in vain."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from feedrank.service.contract.settings import Settings

if TYPE_CHECKING:
    from .wire import Protocol

REQUEST, READING = (
    ("head", "body"),
    "reading",
)  # what is waited for: a part of a request, or that a reply is read


class Patrol:
    """Which connections are waited for, and since when: one timer for all, since a timer each would cost too much."""

    def __init__(self, settings: Settings) -> None:
        self.most = settings.connections
        self.idle = settings.idle_timeout
        self._limits = {"head": settings.head_timeout, "body": settings.body_timeout, READING: self.idle}
        # Each in order of the time from which it is waited for.
        self._waits: dict[str, dict[Protocol, float]] = {part: {} for part in self._limits}
        self._timer: asyncio.TimerHandle | None = None

    def wait(self, part: str, protocol: Protocol) -> None:
        """Wait for the head, for more of the body, or for the reading of a reply, from now on."""
        if part == READING:
            self._waits[part].pop(protocol, None)
        else:
            self.forget(protocol)
        self._waits[part][protocol] = protocol.loop.time()
        if self._timer is None:
            self._timer = protocol.loop.call_later(self._pause, self._look, protocol.loop)

    def forget(self, protocol: Protocol) -> None:
        """Nothing more of a request is waited for."""
        for part in REQUEST:
            self._waits[part].pop(protocol, None)

    def forget_reading(self, protocol: Protocol) -> None:
        """Its replies are read."""
        self._waits[READING].pop(protocol, None)

    def make_room(self) -> bool:
        """Close the connection that has been waited for longest, if there is one."""
        for part in REQUEST:
            for protocol in self._waits[part]:
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
                if part == READING:
                    protocol.check_reading()
                elif protocol.flow.read_paused:  # we are the slow ones
                    self.wait(part, protocol)
                else:
                    protocol.late()
        waiting = any(self._waits.values())
        self._timer = loop.call_later(self._pause, self._look, loop) if waiting else None
