"""Where CPU work runs: on the event loop if it is short, since a thread costs more, else in a thread.

How long it will take is learned from the processor time it took, in proportion to the size of the instance. Time by the
clock would count waiting for other threads and processes, and a busy machine would send short work to threads.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

T = TypeVar("T")
SHORT = 0.002  # seconds that the loop may be held
FIRST = 2e-7  # seconds for each feature, before anything was measured
TURN = 0.002  # seconds of short work after which others get their turn


class Worker:
    """Runs the work of one learner, one piece at a time, so that nobody reads weights while they change."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._lock = asyncio.Lock()
        self._rates: dict[str, float] = {}
        self._held = 0.0

    async def run(self, kind: str, size: int, work: Callable[[], T]) -> T:
        """The result of `work`; `kind` names what is alike in cost, `size` what it grows with."""
        rate = self._rates.get(kind, FIRST)
        if rate * size > SHORT:
            async with self._lock:
                running = asyncio.get_running_loop().run_in_executor(self._executor, timed, work)
                result, took = await finished(running)
                self._learn(kind, size, rate, took)
                return result
        if self._held > TURN:
            self._held = 0.0
            await asyncio.sleep(0)
        if self._lock.locked():
            async with self._lock:
                return self._now(kind, size, rate, work)
        return self._now(kind, size, rate, work)

    def _now(self, kind: str, size: int, rate: float, work: Callable[[], T]) -> T:
        result, took = timed(work)
        self._held += took
        self._learn(kind, size, rate, took)
        return result

    def _learn(self, kind: str, size: int, rate: float, took: float) -> None:
        # One that took unusually long (arrays that grew) must not send the next ones to threads;
        # work that is always long gets there after three.
        self._rates[kind] = 0.8 * rate + 0.2 * min(took / max(size, 1), 30 * rate)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """The result, and the seconds of processor time of this thread that it took."""
    start = time.thread_time()
    result = work()
    return result, time.thread_time() - start


async def finished(running: asyncio.Future[T]) -> T:
    """The result; who is cancelled meanwhile still waits: a thread cannot be stopped, and the lock must outlive it."""
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return running.result()
