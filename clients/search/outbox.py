"""A bounded queue of calls that one thread sends in the background, so that showing a page never waits.

A call that does not get through (no reply, overloaded) is put behind the others and sent again, up to `tries` times; one
that is refused is not. What is dropped is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any

from ..calls import Call
from ..exceptions import ClientError, NoReply, TimedOut, Unavailable

__all__ = ["Outbox", "OutboxCounts"]

_AGAIN = (NoReply, TimedOut, Unavailable)


@dataclass(slots=True)
class OutboxCounts:
    """What became of the calls."""

    sent: int = 0
    retried: int = 0
    refused: int = 0
    lost: int = 0
    """Dropped: the queue was full, or every try failed."""


class Outbox:
    """`put` never blocks; `flush` waits until all is sent or dropped."""

    def __init__(
        self,
        send: Callable[[Call[Any]], Any],
        report: Callable[[str], None],
        *,
        size: int = 1000,
        tries: int = 5,
        pause: float = 1.0,
    ) -> None:
        self.counts: OutboxCounts = OutboxCounts()
        self._send, self._report = send, report
        self._size, self._tries, self._pause = size, tries, pause
        self._queue: deque[tuple[int, Call[Any]]] = deque()
        self._changed = Condition()
        self._busy = self._closed = False
        self._thread: Thread | None = None

    def put(self, call: Call[Any]) -> bool:
        """Queue a call; False if there is no room."""
        with self._changed:
            if self._closed or len(self._queue) >= self._size:
                self.counts.lost += 1
                return False
            self._queue.append((1, call))
            if self._thread is None:
                self._thread = Thread(target=self._run, name="feedrank-search-outbox", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return True

    def flush(self, timeout: float | None = None) -> bool:
        """Whether everything was sent or dropped within `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._queue and not self._busy, timeout)

    def close(self, timeout: float = 1.0) -> None:
        """Send what is left, for at most `timeout` seconds; the rest is lost, and counted."""
        self.flush(timeout)
        with self._changed:
            self._closed = True
            self.counts.lost += len(self._queue)
            self._queue.clear()
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._queue or self._closed)
                if self._closed:
                    return
                attempt, call = self._queue.popleft()
                self._busy = True
            self._deliver(attempt, call)

    def _deliver(self, attempt: int, call: Call[Any]) -> None:
        try:
            self._send(call)
        except _AGAIN as error:
            self._report(str(error))
            with self._changed:
                again = attempt < self._tries and not self._closed and len(self._queue) < self._size
                self.counts.retried += again
                self.counts.lost += not again
                if again:
                    self._queue.append((attempt + 1, call))
                    self._changed.wait_for(lambda: self._closed, self._pause)
        except ClientError as error:
            self._report(str(error))
            with self._changed:
                self.counts.refused += 1
        else:
            with self._changed:
                self.counts.sent += 1
