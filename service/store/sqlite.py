"""The Store on one SQLite file: no set-up, one process, one writer with group commit, readers that never wait for it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from feedrank.service.contract.faults import StoreUnavailable

from . import sqlite_file
from . import sqlite_snapshots as snapshots
from .base import Document, Draft, Due, Entry, Head, Placed, Position, Record, Snapshot
from .checksums import unseal
from .group_commit import GroupCommit
from .sqlite_examine import examine
from .sqlite_log import append, find, head, read
from .sqlite_values import amend, count, document, due_records, load_record, put, remember, remove

T = TypeVar("T")
HEAVY = 256 * 1024  # bytes from which a write leaves the event loop
TRIAL = 256 * 1024, 16 * 2**20  # least and most bytes that a check writes
PURGE_EVERY = 60.0


class SqliteStore:
    """See `base.Store`. Point reads run on the loop (microseconds), long ones in a reader's thread."""

    notices: tuple[str, ...] = ()

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._lock = sqlite_file.share(self.path) if read_only else sqlite_file.lock(self.path)
        self._writer: GroupCommit | None = None
        try:
            if read_only:
                self._point = sqlite_file.connect_read_only(self.path)
                self._range = sqlite_file.connect_read_only(self.path)
            else:
                self._writer = self._open_writer(sqlite_file.prepare(self.path))
        except BaseException:
            if self._lock is not None:
                os.close(self._lock)
            raise
        self._reader = ThreadPoolExecutor(1, "feedrank-reader")
        self._purged = 0.0
        self._largest = 0  # bytes of the largest append so far

    def _open_writer(self, connection: sqlite3.Connection) -> GroupCommit:
        self._point = sqlite_file.connect(self.path, write=False)
        self._range = sqlite_file.connect(self.path, write=False)
        identity = sqlite_file.Identity(self.path)
        return GroupCommit(connection, lambda: sqlite_file.connect(self.path, write=True), identity.verify)

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
        await self._write(lambda db: trial(db, size), heavy=True)

    def watch(self, log: str) -> None:
        """Only this process writes: there is nothing to hear."""

    def unwatch(self, log: str) -> None:
        """As `watch`."""

    async def changes(self) -> AsyncIterator[tuple[str, str, int]]:
        return
        yield

    # Logs

    async def append(
        self, log: str, drafts: Sequence[Draft], expected: Position | None = None
    ) -> list[Placed]:
        size = sum(len(draft.body) for draft in drafts)
        self._largest = max(self._largest, size)
        return await self._write(
            lambda db: append(db, log, drafts, expected, time.time()),
            heavy=size > HEAVY or len(drafts) > 100,
            size=size,
        )

    async def read(self, log: str, after: int, limit: int, chain: str | None = None) -> list[Entry]:
        return await self._ranged(lambda db: read(db, log, after, limit, chain))

    async def find(self, log: str, id: str) -> tuple[int, str] | None:
        row = self._pointed("SELECT id FROM logs WHERE name = ?", log)
        return None if row is None else find(self._point, row[0], id)

    async def head(self, log: str) -> Head:
        try:
            return consistent(self._point, lambda db: head(db, log))
        except sqlite3.Error as error:
            raise unanswered(error) from None

    async def positions(self, logs: Sequence[str]) -> list[Position]:
        rows = [self._pointed("SELECT version, chain FROM logs WHERE name = ?", log) for log in logs]
        return [Position(*row) if row and row[0] else Position(0, "") for row in rows]

    async def outcome(self, log: str, version: int) -> bytes | None:
        row = self._pointed(
            "SELECT value FROM outcomes WHERE key = (SELECT (id << 32) + ? FROM logs WHERE name = ?)",
            version,
            log,
        )
        return None if row is None else unseal(row[0], f"the outcome of entry {version}", version)

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
        upload, digest = await self._write(lambda db: snapshots.begin(db, log, snapshot))
        if digest not in ("", snapshot.digest):
            return digest
        data, number = memoryview(snapshot.data), 0
        try:
            if upload:
                for start in range(0, len(data), snapshots.PART):
                    part = data[start : start + snapshots.PART]
                    await self._write(
                        partial(snapshots.write_part, upload=upload, number=number, data=part),
                        heavy=len(part) > HEAVY,
                        size=len(part),
                    )
                    number += 1
            return await self._write(
                lambda db: snapshots.save(db, log, snapshot, outcomes, (upload, number), keep, floor, forget),
                heavy=len(outcomes) > 100,
            )
        except BaseException:
            if number:
                await self._write(lambda db: snapshots.abandon(db, upload))
            raise

    async def snapshot(self, log: str, version: int) -> Snapshot | None:
        row = await self._ranged(lambda db: snapshots.find_snapshot(db, log, version))
        if row is None:
            return None
        digest, chain, _, count_ = row
        parts = [part async for part in self.parts(log, version)]
        return Snapshot(version, digest, b"".join(parts), chain) if len(parts) == count_ else None

    async def parts(self, log: str, version: int) -> AsyncIterator[bytes]:
        row = await self._ranged(lambda db: snapshots.find_snapshot(db, log, version))
        _, _, upload, count_ = row or ("", "", 0, 0)
        for number in range(count_):
            part = await self._ranged(
                partial(snapshots.read_part, upload=upload, number=number, version=version)
            )
            if part is None:
                return
            yield part

    async def drop(self, log: str) -> None:
        await self._write(lambda db: snapshots.drop(db, log), heavy=True)

    async def discard(self, kind: str, name: str, revision: int, log: str) -> None:
        def both(db: sqlite3.Connection) -> None:
            remove(db, kind, name, revision)
            snapshots.drop(db, log)

        await self._write(both, heavy=True)

    # Records

    async def remember(self, log: str, records: Mapping[str, bytes | Record], ttl: float) -> dict[str, bytes]:
        now = time.time()
        first = await self._write(lambda db: remember(db, log, records, now, ttl), heavy=len(records) > 100)
        if now - self._purged > PURGE_EVERY:
            self._purged = now
            await self._write(
                lambda db: db.execute("DELETE FROM records WHERE expires < ?", (now,)) and None, heavy=True
            )
        return first

    async def recall(self, log: str, key: str) -> bytes | None:
        try:
            return load_record(self._point, log, key, time.time())
        except sqlite3.Error as error:
            raise unanswered(error) from None

    async def amend(
        self, log: str, key: str, value: bytes, expected: bytes, due: float | None = None
    ) -> None:
        await self._write(lambda db: amend(db, log, key, value, expected, due, time.time()))

    async def due(self, now: float, limit: int) -> list[Due]:
        return await self._ranged(lambda db: due_records(db, now, time.time(), limit))

    # Documents

    async def get(self, kind: str, name: str) -> Document | None:
        row = self._pointed("SELECT value, revision FROM documents WHERE kind = ? AND name = ?", kind, name)
        return None if row is None else document(kind, name, *row)

    async def put(self, kind: str, name: str, value: bytes, revision: int) -> int:
        return await self._write(lambda db: put(db, kind, name, value, revision), size=len(value))

    async def remove(self, kind: str, name: str, revision: int) -> None:
        await self._write(lambda db: remove(db, kind, name, revision))

    async def page(self, kind: str, after: str, limit: int, prefix: str = "") -> list[tuple[str, Document]]:
        def rows(db: sqlite3.Connection) -> list[tuple[str, Document]]:
            page = db.execute(
                "SELECT name, value, revision FROM documents WHERE kind = ? AND name > ? AND name >= ? AND name < ?"
                " ORDER BY name LIMIT ?",
                (kind, after, prefix, prefix + "\U0010ffff", limit),
            )
            return [(name, document(kind, name, value, revision)) for name, value, revision in page]

        return await self._ranged(rows)

    async def count(self, kind: str) -> int:
        row = self._pointed("SELECT value FROM counters WHERE name = ?", f"documents:{kind}")
        return row[0] if row else 0

    async def examine(self, log: str) -> list[str]:
        return await self._ranged(lambda db: examine(db, log))

    # Reading and writing

    async def _write(
        self, operation: Callable[[sqlite3.Connection], T], *, heavy: bool = False, size: int = 0
    ) -> T:
        if self._writer is None:
            raise StoreUnavailable(f"{self.path} was opened for reading only")
        return await self._writer.run(operation, heavy=heavy, size=size)

    def _pointed(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        try:
            row: tuple[Any, ...] | None = self._point.execute(sql, values).fetchone()
        except sqlite3.Error as error:
            raise unanswered(error) from None
        return row

    async def _ranged(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._reader, consistent, self._range, query
            )
        except sqlite3.Error as error:
            raise unanswered(error) from None


def consistent(db: sqlite3.Connection, query: Callable[[sqlite3.Connection], T]) -> T:
    """A query of several statements that all see one moment: else what is committed between them looks like damage."""
    db.execute("BEGIN")
    try:
        return query(db)
    finally:
        db.execute("ROLLBACK")


def unanswered(error: sqlite3.Error) -> StoreUnavailable:
    return StoreUnavailable(f"SQLite did not answer ({error}): try again later")


def trial(db: sqlite3.Connection, size: int) -> None:
    """Write so many bytes for good, in the place of those of the trial before: what is rolled back meets no full disk."""
    row = db.execute("SELECT max(id) FROM trial").fetchone()
    db.execute("INSERT INTO trial (data) VALUES (randomblob(?))", (size,))
    db.execute("DELETE FROM trial WHERE id = ?", (row[0],))
    count(db, "check", 1)
