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
import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from hashlib import blake2b, sha1
from queue import SimpleQueue
from threading import Lock, Thread
from typing import BinaryIO, Generic, Protocol, TypeVar, cast

from feedrank.service.contract.faults import Gone, StorageFull

from .interface import LAST, Entry
from .signals import Damaged

log = logging.getLogger(__name__)
Item = TypeVar("Item")
Result = TypeVar("Result")
Given_contra = TypeVar("Given_contra", contravariant=True)

ITEMS = 64  # in one call
WEIGHT = 4 * 2**20  # of one call, where items have a weight (bytes, say)
TURNS = 2  # of the loop, before a call is made: requests that are ready now share it
MOMENT = 2e-4  # seconds
LENGTH = 32  # of a checksum in hex
SPOOLED = 4 * 2**20  # bytes of a snapshot from which it is kept in a file, not in memory


class Waiter(Protocol[Given_contra]):
    """Who waits for a result: a future, or who does without the turn of the loop in which a future wakes its task."""

    def done(self) -> bool: ...
    def set_result(self, result: Given_contra, /) -> None: ...
    def set_exception(self, error: Exception, /) -> None: ...


Batch = list[tuple[Item, Waiter[Result]]]


class Batcher(Generic[Item, Result]):
    """While one call is on its way, what else is asked for the same key waits and then goes in one call.

    `call(key, items)` gives a result or an exception for each item, in order; what it raises itself, all get. What waits
    by then is on its way before the results are handed out: who gets them has more to ask, and neither waits for the other.

    `ahead(key, items)` is a part of the call, before the rest of it, that is done while the call before is finished. It
    says whether it was done; if not, the call does all, and nothing goes ahead of it.

    A batch has at most `items` items and, unless it is a single one, at most `weight` by `weigh`. The first waits for
    `turns` of the loop.
    """

    def __init__(
        self,
        call: Callable[[str, Sequence[Item]], Awaitable[Sequence[Result | Exception]]],
        items: int = ITEMS,
        *,
        ahead: Callable[[str, Sequence[Item]], Coroutine[object, object, bool]] | None = None,
        weigh: Callable[[Item], int] | None = None,
        weight: int = WEIGHT,
        turns: int = TURNS,
    ) -> None:
        self._call, self._ahead, self._turns = call, ahead, turns
        self._items, self._weigh, self._weight = items, weigh, weight
        self._waiting: dict[str, Batch[Item, Result]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self, key: str, item: Item) -> Result:
        """The result of one item."""
        return await self.submit(key, item)

    def submit(self, key: str, item: Item) -> asyncio.Future[Result]:
        """The same, to be waited for later; what is submitted first goes first."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.add(key, item, future)
        return future

    def add(self, key: str, item: Item, waiter: Waiter[Result]) -> None:
        """The same for who is not a future."""
        waiting = self._waiting.get(key)
        if waiting is None:
            self._waiting[key] = [(item, waiter)]
        else:
            waiting.append((item, waiter))
        if key not in self._tasks:
            self._tasks[key] = asyncio.get_running_loop().create_task(self._drain(key))

    async def close(self) -> None:
        """Finish what was asked."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def _take(self, key: str) -> Batch[Item, Result]:
        """What goes into the next call."""
        waiting = self._waiting.pop(key, [])
        count = min(len(waiting), self._items)
        if self._weigh is not None:
            total = 0
            for place, (item, _) in enumerate(waiting[:count]):
                total += self._weigh(item)
                if place and total > self._weight:
                    count = place
                    break
        if count < len(waiting):
            self._waiting[key] = waiting[count:]
        return waiting[:count]

    async def _drain(self, key: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            for _ in range(self._turns):
                await asyncio.sleep(0)
            batch, ahead = self._take(key), None
            while batch:
                items = [item for item, _ in batch]
                following: Batch[Item, Result] = []
                early: asyncio.Task[bool] | None = None
                results: Sequence[Result | Exception]
                try:
                    if self._ahead is not None:
                        done = await (ahead or self._ahead(key, items))
                        if done and (following := self._take(key)):
                            begun = self._ahead(key, [item for item, _ in following])
                            early = loop.create_task(begun)
                            for _ in range(TURNS):  # then it has reached the store
                                await asyncio.sleep(0)
                    results = await self._call(key, items)
                except Exception as error:
                    results = [error] * len(batch)
                if following or key in self._waiting:
                    loop.call_soon(hand_out, batch, results)
                else:
                    hand_out(batch, results)
                batch, ahead = (following, early) if following else (self._take(key), None)
        finally:
            del self._tasks[key]


def hand_out(batch: Batch[Item, Result], results: Sequence[Result | Exception]) -> None:
    """Give each who waits its result."""
    for (_, waiter), result in zip(batch, results, strict=True):
        if waiter.done():  # the request was given up
            continue
        try:
            if isinstance(result, Exception):
                waiter.set_exception(result)
            else:
                waiter.set_result(result)
        except Exception:  # a future has none of its own; whoever has leaves the others theirs
            log.exception("a result could not be handed out")


class WorkThread:
    """One thread that does what it is given, in order: a third of what an executor takes of the loop's time.

    Who gives it something waits until it has begun, for a moment at most: else it would wait for the interpreter, and each
    pause of a busy loop would wake it in vain.
    """

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._begun = Lock()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Item], Result], argument: Item) -> asyncio.Future[Result]:
        """What `work` gives."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        waiting: Batch[Item, Result] = [(argument, future)]

        def done() -> None:
            results: list[Result | Exception]
            try:
                results = [work(argument)]
            except Exception as error:
                results = [error]
            loop.call_soon_threadsafe(hand_out, waiting, results)

        self._begun.acquire(blocking=False)
        self._queue.put(done)
        self._begun.acquire(timeout=MOMENT)
        return future

    def close(self) -> None:
        """Finish what was given."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            if self._begun.locked():
                self._begun.release()
            work()


def spool(most: int = SPOOLED) -> BinaryIO:
    """Room for a snapshot on its way: memory for one of `most` bytes, a file without a name for others (in TMPDIR)."""
    return cast(BinaryIO, tempfile.SpooledTemporaryFile(most, prefix="feedrank-"))


async def portions(data: bytes | BinaryIO, size: int) -> AsyncIterator[bytes | memoryview]:
    """Bytes, or those of a file from its start, so many at a time."""
    if isinstance(data, bytes):
        for start in range(0, len(data), size):
            yield memoryview(data)[start : start + size]
        return
    data.seek(0)
    while part := await asyncio.to_thread(data.read, size):
        yield part


async def collect(
    parts: AsyncIterator[bytes | memoryview], count: int, out: BinaryIO | None
) -> bytes | BinaryIO | None:
    """The data of a snapshot, joined or written to `out`; None if it is not so many parts."""
    joined: list[bytes | memoryview] = []
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
        raise changed(what, version)
    return value


def unseal_large(sealed: bytes, what: str, version: int = 0) -> memoryview:
    """The same without a copy: the value keeps what was sealed."""
    value = memoryview(sealed)[LENGTH:]
    if checksum(value).encode() != sealed[:LENGTH]:
        raise changed(what, version)
    return value


def changed(what: str, version: int) -> Damaged:
    return Damaged(version, f"{what} has changed since it was written")


def ended(log: str) -> StorageFull:
    """The log has its last entry."""
    return StorageFull(f"the log {log} has its last version, {LAST}: go on with a new learner")


def genesis(log: str, version: int = 0, digest: str = "") -> str:
    """The chain before the first entry of a log that starts after `version`."""
    return sha1(f"{log} {version} {digest}".encode(), usedforsecurity=False).hexdigest()


def link(previous: str, version: int, at: float, body: str, taken: str | None, retracts: int) -> str:
    """The chain at an entry, from the one before it; `body` and `taken` are checksums."""
    return link_at(previous, version, repr(at), body, taken, retracts)


def link_at(previous: str, version: int, at: str, body: str, taken: str | None, retracts: int) -> str:
    """The same with the time written out, which entries that were written together share."""
    text = f"{previous} {version} {at} {body} {taken or '-'} {retracts}"
    return sha1(text.encode(), usedforsecurity=False).hexdigest()


def erased(id: str) -> Gone:
    """Nothing can be written under an id whose entry or record was erased."""
    return Gone(f"what had the id {id.partition(':')[2] or id!r} was erased")


def tomb(salt: str, id: str) -> str:
    """What stays of an id that was erased: itself an id, which tells nothing. Redis computes it in its scripts."""
    return f"e:{sha1(f'{salt} {id}'.encode(), usedforsecurity=False).hexdigest()}"


def sums_of(body: bytes, taken: bytes | None) -> str:
    """What stays of an entry that is erased: see `Entry.erased`."""
    return f"{checksum(body)} {'-' if taken is None else checksum(taken)}"


def id_check(id: str, version: int, digest: str) -> str:
    """What an id's row carries against changes in it."""
    return sha1(f"{id} {version} {digest}".encode(), usedforsecurity=False).hexdigest()[:8]


def check_entries(rows: Sequence[Entry], after: int, previous: str | None) -> list[Entry]:
    """The entries, each with the chain before it, if they follow one another and nothing in them has changed."""
    moment, written = 0.0, ""
    for row in rows:
        if row.version != after + 1:
            raise Damaged(after + 1, f"entry {after + 1} is missing from the log")
        if row.at != moment or not moment:  # 0.0 and -0.0 are equal and written differently
            moment, written = row.at, repr(row.at)
        body, _, taken = (row.erased or sums_of(row.body, row.taken)).partition(" ")
        if previous is None or row.chain != link_at(
            previous, row.version, written, body, taken, row.retracts
        ):
            raise Damaged(row.version, f"entry {row.version} has changed since it was written")
        row.previous = previous
        after, previous = row.version, row.chain
    return list(rows)
