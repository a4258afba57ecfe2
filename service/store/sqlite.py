"""The Store on one SQLite file: no set-up, one process, one writer with group commit, readers that never wait for it."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from feedrank.service.contract.faults import StoreUnavailable

from . import damage, sqlite_file
from . import sqlite_erasing as erasing
from . import sqlite_records as kept
from . import sqlite_rows as rows
from . import sqlite_snapshots as snapshots
from .interface import (
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
from .outage import Outage
from .shared import unseal
from .sqlite_examine import examine
from .sqlite_file import consistent
from .sqlite_writer import GroupCommit

log = logging.getLogger(__name__)
T = TypeVar("T")
Row = tuple[Any, ...]
TRIAL = 256 * 1024, 16 * 2**20  # least and most bytes that a check writes
PURGE_EVERY = 60.0


class SqliteStore:
    """See `interface.Store`. Point reads run on the loop (microseconds), long ones in a reader's thread."""

    notices: tuple[str, ...] = ()
    shared = False

    def __init__(self, path: str | Path, *, read_only: bool = False, arithmetic: int = 0) -> None:
        self.path = Path(path)
        self._lock = sqlite_file.share(self.path) if read_only else sqlite_file.lock(self.path)
        self._writer: GroupCommit | None = None
        try:
            if read_only:
                self._point = sqlite_file.connect_read_only(self.path)
                self._range = sqlite_file.connect_read_only(self.path)
            else:
                connection, self.notices = sqlite_file.prepare(self.path, arithmetic)
                self._writer = self._open_writer(connection)
        except BaseException:
            if self._lock is not None:
                os.close(self._lock)
            raise
        self._reader = ThreadPoolExecutor(1, "feedrank-reader")
        self._reads = Outage("SQLite did not answer", "SQLite answers again")
        self._purged = 0.0
        self._largest = 0  # bytes of the largest append so far

    def _open_writer(self, connection: sqlite3.Connection) -> GroupCommit:
        self._point, self._range = (sqlite_file.connect(self.path, write=False) for _ in range(2))
        return GroupCommit(self.path, connection)

    @property
    def failures(self) -> int:
        return self._reads.failures + (self._writer.outage.failures if self._writer is not None else 0)

    async def close(self) -> None:
        if self._writer is not None:
            await self._writer.close()
        self._reader.shutdown()
        self._point.close()
        self._range.close()
        if self._lock is not None:
            os.close(self._lock)

    async def check(self) -> None:
        least, most = TRIAL
        size = min(max(least, 2 * self._largest), most)
        await self._write(lambda db: snapshots.trial(db, size), heavy=True)

    def watch(self, log: str) -> None:
        """Only this process writes: there is nothing to hear."""

    def unwatch(self, log: str) -> None:
        """As `watch`."""

    async def changes(self) -> AsyncIterator[tuple[str, str, int]]:
        return
        yield

    def silence(self) -> float:
        return 0.0

    def sizes(self) -> Mapping[str, float]:
        return sqlite_file.sizes(self.path)

    # Logs

    async def append(
        self, log: str, drafts: Sequence[Draft], expected: Position | None = None
    ) -> list[Placement]:
        size = sum(len(draft.body) for draft in drafts)
        self._largest = max(self._largest, size)
        return await self._write(
            lambda db: rows.append(db, log, drafts, expected, time.time()),
            heavy=size > snapshots.HEAVY or len(drafts) > 100,
            size=size,
        )

    async def read(self, log: str, after: int, limit: int, chain: str | None = None) -> list[Entry]:
        return await self._ranged(lambda db: rows.read(db, log, after, limit, chain))

    async def find(self, log: str, id: str) -> tuple[int, str] | None:
        return self._at_once(lambda db: rows.find(db, rows.load_log(db, log), id))

    async def search(self, log: str, id: str, text: bytes) -> tuple[list[int], list[str]]:
        return await self._ranged(lambda db: erasing.search(db, log, id, text))

    async def erase(
        self, log: str, versions: Sequence[int], records: Sequence[str] = (), ids: Sequence[str] = ()
    ) -> list[str]:
        sums = await self._write(lambda db: erasing.erase(db, log, versions, records, ids), heavy=True)
        await self._write(lambda db: None, compacts=True)
        return sums

    async def head(self, log: str) -> Head:
        return self._at_once(lambda db: consistent(db, lambda db: rows.head(db, log)))

    async def positions(self, logs: Sequence[str]) -> list[Position]:
        heads = [self._pointed("SELECT version, chain FROM logs WHERE name = ?", log) for log in logs]
        return [Position(*row) if row and row[0] else Position(0, "") for row in heads]

    async def outcome(self, log: str, version: int) -> bytes | None:
        row = self._pointed(
            "SELECT value FROM outcomes WHERE key = (SELECT (id << 32) + ? FROM logs WHERE name = ?)",
            version,
            log,
        )
        return None if row is None else unseal(row[0], damage.outcome(version), version)

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
        return self._at_once(lambda db: rows.load_record(db, log, key, time.time()))

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
        return self._at_once(lambda db: kept.open_records(db, log, mark, most, time.time()))

    # Documents

    async def get(self, kind: str, name: str) -> Document | None:
        row = self._pointed("SELECT value, revision FROM documents WHERE kind = ? AND name = ?", kind, name)
        return None if row is None else rows.document(kind, name, *row)

    async def put(self, kind: str, name: str, value: bytes, revision: int) -> int:
        return await self._write(lambda db: rows.put(db, kind, name, value, revision), size=len(value))

    async def remove(self, kind: str, name: str, revision: int) -> None:
        await self._write(lambda db: rows.remove(db, kind, name, revision))

    async def page(self, kind: str, after: str, limit: int, prefix: str = "") -> list[tuple[str, Document]]:
        return await self._ranged(lambda db: rows.documents(db, kind, after, limit, prefix))

    async def count(self, kind: str) -> int:
        row = self._pointed("SELECT value FROM counters WHERE name = ?", f"documents:{kind}")
        return row[0] if row else 0

    async def examine(self, log: str) -> list[str]:
        return await self._ranged(lambda db: examine(db, log))

    # Reading and writing

    async def _write(
        self,
        operation: Callable[[sqlite3.Connection], T],
        *,
        heavy: bool = False,
        size: int = 0,
        compacts: bool = False,
    ) -> T:
        if self._writer is None:
            raise StoreUnavailable(f"{self.path} was opened for reading only")
        return await self._writer.run(operation, heavy=heavy, size=size, compacts=compacts)

    def _pointed(self, sql: str, *values: object) -> Row | None:
        return self._at_once(lambda db: cast(Row | None, db.execute(sql, values).fetchone()))

    def _at_once(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """A query that takes microseconds, on the loop."""
        try:
            result = query(self._point)
        except sqlite3.Error as error:
            raise self._unanswered(error) from None
        self._reads.worked()
        return result

    def _unanswered(self, error: sqlite3.Error) -> StoreUnavailable:
        self._reads.failed(error)
        return StoreUnavailable(f"SQLite did not answer ({error}): try again later")

    async def _ranged(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._reader, consistent, self._range, query
            )
        except sqlite3.Error as error:
            raise self._unanswered(error) from None
