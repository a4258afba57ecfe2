"""Experiments on a Host, with two arms to compare."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from feedrank.service.contract.settings import Settings
from feedrank.service.experiments.manager import Experiments
from feedrank.service.runtime import Host

JSON = dict[str, Any]
CLASSES = {"task": "multiclass", "algorithm": "predtron", "labels": ["x", "y"]}
SLOW = {**CLASSES, "learning_rate": 0.5, "bias": True}
LISTS = {"task": "subset-ranking", "algorithm": "listnet"}


@asynccontextmanager
async def hosted(url: str, **settings: Any) -> AsyncIterator[tuple[Host, Experiments]]:
    async with Host.open(url, Settings(**settings)) as host:
        experiments = Experiments(host)
        try:
            yield host, experiments
        finally:
            await experiments.close()


def run(url: str, body: Callable[[Host, Experiments], Awaitable[Any]], **settings: Any) -> Any:
    async def main() -> Any:
        async with hosted(url, **settings) as (host, experiments):
            return await body(host, experiments)

    return asyncio.run(main())


async def two(host: Host, a: JSON = CLASSES, b: JSON = SLOW) -> None:
    await host.create("a", a)
    await host.create("b", b)


async def opposed(host: Host) -> None:
    """Two rankers of lists: "a" has learned that g is good, "b" that it is bad, and does not forget it soon."""
    await two(host, LISTS, LISTS)
    for name, relevance in (("a", {"d2": 2, "d1": 1}), ("b", {"d0": 2, "d1": 1})):
        await host.feedback(name, {"events": [{**items(0, 1, 2), "relevance": relevance}] * 200})


def items(*grades: float) -> JSON:
    return {"items": [{"id": f"d{i}", "features": {"g": grade, "one": 1}} for i, grade in enumerate(grades)]}
