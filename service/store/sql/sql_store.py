"""The Store on a SQL database: everything but how a statement gets to it and what is heard of it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, TypeVar

from ..interface import (
    Document,
    Draft,
    Due,
    Entry,
    Head,
    Placement,
    Position,
    Record,
    Snapshot,
    Waiting,
)
from . import row_documents as documents
from . import row_erasing as erasing
from . import row_records as kept
from . import rows, snapshots
from .examine import examine

T = TypeVar("T")
TRIAL = 256 * 1024, 16 * 2**20  # least and most bytes that a check writes
PURGE_EVERY = 60.0


class SqlStore(ABC):
    """See `interface.Store`: what SQLite and PostgreSQL share."""

    def __init__(self) -> None:
        self._purged = 0.0
        self._largest = 0  # bytes of the largest append so far

    @abstractmethod
    async def _write(
        self, operation: Callable[[Any], T], *, heavy: bool = False, size: int = 0, compacts: bool = False
    ) -> T:
        """Run an operation in a transaction that is committed by when this returns."""

    @abstractmethod
    async def _ask(self, query: Callable[[Any], T]) -> T:
        """The result of one statement that takes microseconds."""

    @abstractmethod
    async def _ask_one_moment(self, query: Callable[[Any], T]) -> T:
        """The same of several that see one moment."""

    @abstractmethod
    async def _ranged(self, query: Callable[[Any], T]) -> T:
        """The same of several that may take long."""

    async def check(self) -> None:
        least, most = TRIAL
        size = min(max(least, 2 * self._largest), most)
        await self._write(lambda db: snapshots.trial(db, size), heavy=True)

    # Logs

    async def append(
        self, log: str, drafts: Sequence[Draft], expected: Position | None = None
    ) -> list[Placement]:
        size = 0
        for draft in drafts:
            size += len(draft.body)
        self._largest = max(self._largest, size)
        return await self._write(
            lambda db: rows.append(db, log, drafts, expected, time.time()),
            heavy=size > snapshots.HEAVY or len(drafts) > 100,
            size=size,
        )

    async def read(self, log: str, after: int, limit: int, chain: str | None = None) -> list[Entry]:
        return await self._ranged(lambda db: rows.read(db, log, after, limit, chain))

    async def find(self, log: str, id: str) -> tuple[int, str] | None:
        return await self._ask(lambda db: rows.find(db, rows.load_log(db, log), id))

    async def search(self, log: str, id: str, text: bytes) -> tuple[list[int], list[str]]:
        return await self._ranged(lambda db: erasing.search(db, log, id, text))

    async def erase(
        self, log: str, versions: Sequence[int], records: Sequence[str] = (), ids: Sequence[str] = ()
    ) -> list[str]:
        sums = await self._write(lambda db: erasing.erase(db, log, versions, records, ids), heavy=True)
        await self._write(lambda db: None, compacts=True)
        return sums

    async def head(self, log: str) -> Head:
        return await self._ask_one_moment(lambda db: rows.head(db, log))

    async def positions(self, logs: Sequence[str]) -> list[Position]:
        return await self._ask(lambda db: rows.positions(db, logs))

    async def outcome(self, log: str, version: int) -> bytes | None:
        return await self._ask(lambda db: rows.outcome(db, log, version))

    async def keep_outcomes(self, log: str, outcomes: Mapping[int, bytes]) -> None:
        await self._write(lambda db: snapshots.keep_outcomes(db, log, outcomes), heavy=len(outcomes) > 100)

    # Snapshots

    async def save(
        self,
        log: str,
        snapshot: Snapshot,
        outcomes: Mapping[int, bytes],
        *,
        keep: int,
        floor: int,
        forget: int = 0,
    ) -> str:
        retention = snapshots.Retention(keep, floor, forget)
        return await snapshots.upload(self._write, log, snapshot, outcomes, retention)

    async def snapshot(self, log: str, version: int, out: BinaryIO | None = None) -> Snapshot | None:
        return await snapshots.whole(self._ranged, log, version, out)

    async def drop(self, log: str) -> None:
        await self._write(lambda db: snapshots.drop(db, log), heavy=True)

    async def discard(self, kind: str, name: str, revision: int, log: str) -> None:
        await self._write(lambda db: snapshots.discard(db, kind, name, revision, log), heavy=True)

    # Records

    async def remember(self, log: str, records: Mapping[str, bytes | Record], ttl: float) -> dict[str, bytes]:
        now, first = time.time(), await kept.remember(self._write, log, records, ttl)
        if now - self._purged > PURGE_EVERY:
            self._purged = now
            await self._write(
                lambda db: db.execute("DELETE FROM records WHERE expires < ?", (now,)) and None, heavy=True
            )
        return first

    async def recall(self, log: str, key: str) -> bytes | None:
        return await self._ask(lambda db: rows.load_record(db, log, key, time.time()))

    async def amend(
        self, log: str, key: str, value: bytes, expected: bytes, due: float | None = None
    ) -> None:
        await self._write(lambda db: kept.amend(db, log, key, value, expected, due, time.time()))

    async def due(self, now: float, limit: int) -> list[Due]:
        return await self._ranged(lambda db: kept.due_records(db, now, time.time(), limit))

    async def waiting(self, log: str, after: float, limit: int) -> list[Waiting]:
        return await self._ranged(lambda db: kept.waiting(db, log, after, limit, time.time()))

    async def lease(self, log: str, records: Sequence[str], seconds: float) -> list[str]:
        return await self._write(lambda db: kept.lease(db, log, records, seconds, time.time()))

    async def open(self, log: str, mark: float, most: int) -> int:
        return await self._ask(lambda db: kept.open_records(db, log, mark, most, time.time()))

    # Documents

    async def get(self, kind: str, name: str) -> Document | None:
        return await self._ask(lambda db: documents.get(db, kind, name))

    async def put(self, kind: str, name: str, value: bytes, revision: int) -> int:
        return await self._write(lambda db: documents.put(db, kind, name, value, revision), size=len(value))

    async def remove(self, kind: str, name: str, revision: int) -> None:
        await self._write(lambda db: documents.remove(db, kind, name, revision))

    async def page(self, kind: str, after: str, limit: int, prefix: str = "") -> list[tuple[str, Document]]:
        return await self._ranged(lambda db: documents.page(db, kind, after, limit, prefix))

    async def count(self, kind: str) -> int:
        return await self._ask(lambda db: documents.counter(db, f"documents:{kind}"))

    async def examine(self, log: str) -> list[str]:
        return await self._ranged(lambda db: examine(db, log))
