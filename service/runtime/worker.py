"""Where CPU work runs: on the event loop if it is short, since a thread costs more, else in a thread.

How long it will take is learned from the time it took, in proportion to the size of the instance; the first of its kind,
and what the core expects to be long whatever was measured before, by the estimate of the core. What is short by the
clock is short; what is not may have waited for other threads and processes: then the processor's time decides, which can
cost more to ask for than a short piece of work takes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

T = TypeVar("T")
log = logging.getLogger(__name__)
SHORT = 0.002  # seconds that the loop may be held
FIRST = 2e-7  # seconds for each feature, before anything was measured
SURE = 5  # an estimate of so many times `SHORT` is believed against what smaller pieces took
DOUBTS = 8  # pieces of work timed by the processor after one that took long by the clock
AGAIN = 0.5  # seconds after which a task that goes on is cancelled once more
TURN = 0.002  # seconds of short work after which others get their turn


class Worker:
    """Runs the work of one learner, one piece at a time, so that nobody reads weights while they change."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._lock = asyncio.Lock()
        self._rates: dict[str, float] = {}
        self._held = 0.0
        self._doubts = 0

    async def run(self, kind: str, size: int, work: Callable[[], T], expected: float = 0.0) -> T:
        """The result of `work`; `kind` names what is alike in cost, `size` what it grows with.

        `expected` is an estimate of its seconds, on the safe side: it decides alone until something was measured.
        """
        rate = self._rates.get(kind, FIRST)
        if rate * size > SHORT or expected > (SURE if kind in self._rates else 1) * SHORT:
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
        if self._doubts:
            self._doubts -= 1
            result, took = timed(work)
        else:
            start = time.perf_counter()
            result = work()
            took = time.perf_counter() - start
            if took > SHORT:  # long, or the machine was busy: the next ones are timed by the processor
                self._doubts = DOUBTS
                self._held += took
                return result
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


async def stopped(task: asyncio.Task[None]) -> None:
    """Cancel a task until it has ended: code that waits for a socket may lose one cancellation (redis-py does, seldom)."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=AGAIN)
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("something in the background failed", exc_info=error)
