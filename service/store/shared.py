"""What both stores are built with: calls that go together, and checksums that show any changed byte when it is read.

    checksum(v)  BLAKE2b-128 of a value, in hex
    seal(v)      checksum(v) v: how records, outcomes, documents and parts of snapshots are kept
    chain_n      SHA-1("chain_(n-1) n at checksum(body) checksum(taken) retracts"), of entry n and of all before it
    chain_0      SHA-1("log version digest"): of the log's name and, for a restored log, of the snapshot that it starts with

Two logs with equal chains at a version have the same entries up to it. Redis computes the chain in its append script, where
SHA-1 is what there is; it guards against accidents and mix-ups, not against someone who writes to the store on purpose.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from hashlib import blake2b, sha1
from typing import BinaryIO, Generic, TypeVar, cast

from .interface import Entry
from .signals import Damaged

Item = TypeVar("Item")
Result = TypeVar("Result")

ITEMS = 64  # in one call
WEIGHT = 4 * 2**20  # of one call, where items have a weight (bytes, say)
TURNS = 2  # of the loop, before a call is made: requests that are ready now share it
LENGTH = 32  # of a checksum in hex
SPOOLED = 4 * 2**20  # bytes of a snapshot from which it is kept in a file, not in memory


class Batcher(Generic[Item, Result]):
    """While one call is on its way, what else is asked for the same key waits and then goes in one call.

    `call(key, items)` gives a result or an exception for each item, in order; what it raises itself, all get.

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
        return await self.submit(key, item)

    def submit(self, key: str, item: Item) -> asyncio.Future[Result]:
        """The same, to be waited for later; what is submitted first goes first."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append((item, future))
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._drain(key))
        return future

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


def spool() -> BinaryIO:
    """Room for a snapshot on its way: memory for a small one, a file without a name for others (in TMPDIR)."""
    return cast(BinaryIO, tempfile.SpooledTemporaryFile(SPOOLED, prefix="feedrank-"))


async def portions(data: bytes | BinaryIO, size: int) -> AsyncIterator[bytes | memoryview]:
    """Bytes, or those of a file from its start, so many at a time."""
    if isinstance(data, bytes):
        for start in range(0, len(data), size):
            yield memoryview(data)[start : start + size]
        return
    data.seek(0)
    while part := await asyncio.to_thread(data.read, size):
        yield part


async def collect(parts: AsyncIterator[bytes], count: int, out: BinaryIO | None) -> bytes | BinaryIO | None:
    """The data of a snapshot, joined or written to `out`; None if it is not so many parts."""
    joined: list[bytes] = []
    async for part in parts:
        count -= 1
        if out is None:
            joined.append(part)
        else:
            await asyncio.to_thread(out.write, part)
    return None if count else b"".join(joined) if out is None else out


def checksum(value: bytes | memoryview) -> str:
    """Of one value."""
    return blake2b(value, digest_size=LENGTH // 2).hexdigest()


def seal(value: bytes | memoryview) -> bytes:
    """A value with its checksum before it."""
    return b"".join((checksum(value).encode(), value))


def unseal(sealed: bytes, what: str, version: int = 0) -> bytes:
    """The value, or Damaged if it is not what was sealed; `what` says what it is."""
    value = sealed[LENGTH:]
    if checksum(value).encode() != sealed[:LENGTH]:
        raise Damaged(version, f"{what} has changed since it was written")
    return value


def genesis(log: str, version: int = 0, digest: str = "") -> str:
    """The chain before the first entry of a log that starts after `version`."""
    return sha1(f"{log} {version} {digest}".encode(), usedforsecurity=False).hexdigest()


def link(previous: str, version: int, at: float, body: str, taken: str | None, retracts: int) -> str:
    """The chain at an entry, from the one before it; `body` and `taken` are checksums."""
    text = f"{previous} {version} {at!r} {body} {taken or '-'} {retracts}"
    return sha1(text.encode(), usedforsecurity=False).hexdigest()


def id_check(id: str, version: int, digest: str) -> str:
    """What an id's row carries against changes in it."""
    return sha1(f"{id} {version} {digest}".encode(), usedforsecurity=False).hexdigest()[:8]


def check_entries(rows: Sequence[Entry], after: int, previous: str | None) -> list[Entry]:
    """The entries, each with the chain before it, if they follow one another and nothing in them has changed."""
    for row in rows:
        if row.version != after + 1:
            raise Damaged(after + 1, f"entry {after + 1} is missing from the log")
        taken = None if row.taken is None else checksum(row.taken)
        if previous is None or row.chain != link(
            previous, row.version, row.at, checksum(row.body), taken, row.retracts
        ):
            raise Damaged(row.version, f"entry {row.version} has changed since it was written")
        row.previous = previous
        after, previous = row.version, row.chain
    return list(rows)
