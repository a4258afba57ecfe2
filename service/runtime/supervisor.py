"""Keeps running what must keep running, and says by name what does not.

A task that ends by an exception, or is cancelled by anyone but us, is started again after a pause that grows with each
failure in a row. The log has one line when it fails and one when it runs again. Each name is a check of `/readyz` and of
the gauge `feedrank_ready{check}`: a task that has failed is no longer named once it has run for `SETTLED` seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

from .folding import stopped

log = logging.getLogger(__name__)
FIRST, LONGEST = 0.25, 5.0  # seconds before a task is started again
SETTLED = 1.0  # seconds after which it counts as running

Kept = Callable[[], Coroutine[object, object, None]]
Check = Callable[[], str]


class Supervisor:
    """Tasks and checks by name. A check gives the reason why the process is not ready, or nothing."""

    def __init__(self) -> None:
        self.restarts = 0
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: set[str] = set()
        self._failing: dict[str, str] = {}
        self._checks: dict[str, list[Check]] = {}

    def keep(self, name: str, work: Kept) -> None:
        """Run `work` until it returns or is stopped."""
        self.check(name, lambda: self._failing.get(name, ""))
        self._tasks[name] = asyncio.create_task(self._run(name, work))

    def check(self, name: str, check: Check) -> None:
        """Ask this too, whenever the checks are asked for; several may share a name."""
        self._checks.setdefault(name, []).append(check)

    def checks(self) -> dict[str, str]:
        """Why each is not ready; an empty reason is none."""
        return {
            name: next((reason for check in checks if (reason := check())), "")
            for name, checks in self._checks.items()
        }

    async def stop(self, *names: str) -> None:
        """End these tasks for good."""
        for name in names:
            self._ending.add(name)
            await stopped(self._tasks[name])

    async def _run(self, name: str, work: Kept) -> None:
        loop, pause = asyncio.get_running_loop(), FIRST
        while True:
            settled = loop.call_later(SETTLED, self._settle, name) if name in self._failing else None
            begun = loop.time()
            try:
                await work()
                self._failing.pop(name, None)
                return
            except asyncio.CancelledError:
                if name in self._ending:
                    raise
                self._failed(name, RuntimeError("it was cancelled"))
            except Exception as error:
                self._failed(name, error)
            finally:
                if settled is not None:
                    settled.cancel()
            if loop.time() - begun > LONGEST:
                pause = FIRST
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST)

    def _failed(self, name: str, error: Exception) -> None:
        self.restarts += 1
        if name not in self._failing:
            log.error("the %s ended and is started again", name, exc_info=error)
        self._failing[name] = f"it ended ({type(error).__name__}: {error}) and is started again"

    def _settle(self, name: str) -> None:
        if self._failing.pop(name, None) is not None:
            log.warning("the %s runs again", name)
