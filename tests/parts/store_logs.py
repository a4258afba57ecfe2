"""Stores that are opened and closed around a test, and logs in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from feedrank.service.store import Draft, Record, Snapshot, Store, open_store

T = TypeVar("T")


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[Store]:
    store = await open_store(url, **options)
    try:
        yield store
    finally:
        await store.close()


def run(url: str, body: Callable[[Store], Awaitable[T]], **options: Any) -> T:
    """`body(store)` on the store at `url`."""

    async def main() -> T:
        async with opened(url, **options) as store:
            return await body(store)

    return asyncio.run(main())


def draft(text: str, *ids: str, digest: str = "same", **more: Any) -> Draft:
    return Draft(text.encode(), ids=ids, digest=digest, **more)


async def fill(store: Store, log: str, count: int) -> None:
    for i in range(count):
        await store.append(log, [draft(f"e{i + 1}", f"id{i + 1}")])


async def fill_every_kind(store: Store) -> None:
    """A log with something of every kind."""
    await store.remember("a", {"p": b"record-p", "q": Record(b"record-q", "digest", due=1.0)}, 6000)
    drafts = [Draft(b"body-%d" % i, ids=(f"id{i}",), digest="same") for i in range(1, 6)]
    await store.append("a", [*drafts, Draft(b"body-6", take="p")])
    await store.append("a", [Draft(b"body-7", retracts=2)])
    await store.save("a", Snapshot(7, "digest", b"data" * 100), {3: b"outcome-3"}, keep=1, floor=1)
    await store.put("kind", "name", b"document", 0)


def emptied(kind: str, request: pytest.FixtureRequest) -> str:
    """The URL of a server of this kind, without what earlier tests have left there."""
    server = request.getfixturevalue(f"{kind}_server")
    if kind == "redis":
        server.ask(b"FLUSHALL")
    else:
        server.clear()
    return str(server.url)
