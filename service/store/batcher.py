"""Batching: while one call is on its way, what else is asked for the same key waits and then goes in one call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

ITEMS = 64  # in one call
WEIGHT = 4 * 2**20  # of one call, where items have a weight (bytes, say)
TURNS = 2  # of the loop, before a call is made: requests that are ready now share it


class Batcher(Generic[Item, Result]):
    """`call(key, items)` gives a result or an exception for each item, in order; what it raises itself, all get.

    A batch has at most `items` items and, unless it is a single one, at most `weight` by `weigh`.
    """

    def __init__(
        self,
        call: Callable[[str, Sequence[Item]], Awaitable[Sequence[Result | Exception]]],
        items: int = ITEMS,
        *,
        weigh: Callable[[Item], int] = lambda _: 0,
        weight: int = WEIGHT,
    ) -> None:
        self._call, self._items, self._weigh, self._weight = call, items, weigh, weight
        self._waiting: dict[str, list[tuple[Item, asyncio.Future[Result]]]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self, key: str, item: Item) -> Result:
        """The result of one item."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append((item, future))
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._drain(key))
        return await future

    async def close(self) -> None:
        """Finish what was asked."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def _fitting(self, waiting: Sequence[tuple[Item, asyncio.Future[Result]]]) -> int:
        """How many of those that wait go into the next call."""
        total = 0
        for count, (item, _) in enumerate(waiting[: self._items]):
            total += self._weigh(item)
            if count and total > self._weight:
                return count
        return min(len(waiting), self._items)

    async def _drain(self, key: str) -> None:
        try:
            while True:
                for _ in range(TURNS):
                    await asyncio.sleep(0)
                waiting = self._waiting.pop(key)
                count = self._fitting(waiting)
                batch, rest = waiting[:count], waiting[count:]
                if rest:
                    self._waiting[key] = rest
                results: Sequence[Result | Exception]
                try:
                    results = await self._call(key, [item for item, _ in batch])
                except Exception as error:
                    results = [error] * len(batch)
                for (_, future), result in zip(batch, results, strict=True):
                    if future.done():  # the request was given up
                        continue
                    if isinstance(result, Exception):
                        future.set_exception(result)
                    else:
                        future.set_result(result)
                if key not in self._waiting:
                    return
        finally:
            del self._tasks[key]
