"""The time limit of every request by one timer; a timer for each request would cost more than the edge's other work."""

from __future__ import annotations

import asyncio
from typing import Any

Task = asyncio.Task[Any]


class Deadlines:
    """Cancels tasks that run longer than `seconds`, to within a tenth of it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # All have the same limit, so the order of starting is the order of ending.
        self._ends: dict[Task, float] = {}
        self._late: set[Task] = set()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> Task:
        """Watch the current task."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("only a task has a time limit")
        loop = task.get_loop()
        self._ends[task] = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_later(self._seconds / 10, self._look, loop)
        return task

    def was_late(self, task: Task) -> bool:
        """Whether the cancellation that a task has just met was ours; it is then taken back."""
        if task not in self._late:
            return False
        task.uncancel()
        return True

    def stop(self, task: Task) -> None:
        """Watch it no longer."""
        self._ends.pop(task, None)
        self._late.discard(task)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for task, end in self._ends.items():
            if end > now:
                break
            if task not in self._late:
                self._late.add(task)
                task.cancel()
        self._timer = loop.call_later(self._seconds / 10, self._look, loop) if self._ends else None
