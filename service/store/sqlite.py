"""The Store on one SQLite file: no set-up, one process, one writer with group commit, readers that never wait for it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from ..errors import StoreUnavailable
from . import sqlite_file
from .base import Document, Draft, Entry, Head, Placed, Snapshot, Trimmed
from .group_commit import GroupCommit
from .sqlite_log import append, count, drop, key, put, remove, save

T = TypeVar("T")
HEAVY = 256 * 1024  # bytes from which a write leaves the event loop
PURGE_EVERY = 60.0


class SqliteStore:
    """See `base.Store`. Point reads run on the loop (microseconds), long ones in a reader's thread."""

    notices: tuple[str, ...] = ()

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = sqlite_file.lock(self.path)
        try:
            writer = sqlite_file.prepare(self.path)
        except BaseException:
            os.close(self._lock)
            raise
        self._point = sqlite_file.connect(self.path, write=False)
        self._range = sqlite_file.connect(self.path, write=False)
        self._reader = ThreadPoolExecutor(1, "feedrank-reader")
        self._writer = GroupCommit(writer, lambda: sqlite_file.connect(self.path, write=True))
        self._purged = 0.0

    async def close(self) -> None:
        await self._writer.close()
        self._reader.shutdown()
        self._point.close()
        self._range.close()
        os.close(self._lock)

    async def check(self) -> None:
        await self._writer.run(lambda db: count(db, "check", 1))

    async def changes(self) -> AsyncIterator[tuple[str, str, int]]:
        return
        yield

    # Logs

    async def append(self, log: str, drafts: Sequence[Draft]) -> list[Placed]:
        size = sum(len(draft.body) for draft in drafts)
        return await self._writer.run(
            lambda db: append(db, log, drafts, time.time()), heavy=size > HEAVY or len(drafts) > 100
        )

    async def read(self, log: str, after: int, limit: int) -> list[Entry]:
        def entries(db: sqlite3.Connection) -> list[Entry]:
            row = db.execute("SELECT id, floor FROM logs WHERE name = ? AND NOT closed", (log,)).fetchone()
            if row is None:
                return []
            number, floor = row
            if after + 1 < floor:
                raise Trimmed
            rows = db.execute(
                "SELECT key - ?, at, body, taken, mark FROM entries WHERE key > ? AND key < ? ORDER BY key LIMIT ?",
                (key(number, 0), key(number, after), key(number + 1, 0), limit),
            )
            return [Entry(*row) for row in rows]

        return await self._ranged(entries)

    async def find(self, log: str, id: str) -> tuple[int, str] | None:
        row = self._pointed(
            "SELECT ids.version, digest FROM ids JOIN logs ON logs.id = ids.log WHERE name = ? AND ids.id = ?",
            log,
            id,
        )
        return None if row is None else (int(row[0]), str(row[1]))

    async def head(self, log: str) -> Head:
        row = self._pointed("SELECT id, version, floor, closed FROM logs WHERE name = ?", log)
        if row is None:
            return Head()
        number, version, floor, closed = row
        found = self._point.execute(
            "SELECT key - ? FROM snapshots WHERE key > ? AND key < ? ORDER BY key",
            (key(number, 0), key(number, 0), key(number + 1, 0)),
        )
        return Head(version, floor, tuple(version for (version,) in found), bool(closed))

    async def versions(self, logs: Sequence[str]) -> list[int]:
        rows = [self._pointed("SELECT version FROM logs WHERE name = ?", log) for log in logs]
        return [row[0] if row else 0 for row in rows]

    async def outcome(self, log: str, version: int) -> bytes | None:
        row = self._pointed(
            "SELECT value FROM outcomes WHERE key = (SELECT (id << 32) + ? FROM logs WHERE name = ?)",
            version,
            log,
        )
        return None if row is None else bytes(row[0])

    # Snapshots

    async def save(
        self, log: str, snapshot: Snapshot, outcomes: Mapping[int, bytes], *, keep: int, floor: int
    ) -> str:
        return await self._writer.run(
            lambda db: save(db, log, snapshot, outcomes, keep, floor), heavy=len(snapshot.data) > HEAVY
        )

    async def snapshot(self, log: str, version: int) -> Snapshot | None:
        def load(db: sqlite3.Connection) -> Snapshot | None:
            row = db.execute(
                "SELECT digest, data FROM snapshots WHERE key = (SELECT (id << 32) + ? FROM logs WHERE name = ?)",
                (version, log),
            ).fetchone()
            return None if row is None else Snapshot(version, row[0], row[1])

        return await self._ranged(load)

    async def drop(self, log: str) -> None:
        await self._writer.run(lambda db: drop(db, log), heavy=True)

    # Records

    async def remember(self, log: str, records: Mapping[str, bytes], ttl: float) -> None:
        now = time.time()
        rows = [(log, name, now + ttl, value) for name, value in records.items()]

        def write(db: sqlite3.Connection) -> None:
            db.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)", rows)

        await self._writer.run(write, heavy=len(rows) > 100)
        if now - self._purged > PURGE_EVERY:
            self._purged = now
            await self._writer.run(
                lambda db: db.execute("DELETE FROM records WHERE expires < ?", (now,)) and None, heavy=True
            )

    async def recall(self, log: str, key: str) -> bytes | None:
        row = self._pointed(
            "SELECT value FROM records WHERE log = ? AND key = ? AND expires > ?", log, key, time.time()
        )
        return None if row is None else bytes(row[0])

    # Documents

    async def get(self, kind: str, name: str) -> Document | None:
        row = self._pointed("SELECT value, revision FROM documents WHERE kind = ? AND name = ?", kind, name)
        return None if row is None else Document(*row)

    async def put(self, kind: str, name: str, value: bytes, revision: int) -> int:
        return await self._writer.run(lambda db: put(db, kind, name, value, revision))

    async def remove(self, kind: str, name: str, revision: int) -> None:
        await self._writer.run(lambda db: remove(db, kind, name, revision))

    async def page(self, kind: str, after: str, limit: int) -> list[tuple[str, Document]]:
        def rows(db: sqlite3.Connection) -> list[tuple[str, Document]]:
            found = db.execute(
                "SELECT name, value, revision FROM documents WHERE kind = ? AND name > ? ORDER BY name LIMIT ?",
                (kind, after, limit),
            )
            return [(name, Document(value, revision)) for name, value, revision in found]

        return await self._ranged(rows)

    async def count(self, kind: str) -> int:
        row = self._pointed("SELECT value FROM counters WHERE name = ?", f"documents:{kind}")
        return row[0] if row else 0

    # Reading

    def _pointed(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        try:
            row: tuple[Any, ...] | None = self._point.execute(sql, values).fetchone()
        except sqlite3.Error as error:
            raise StoreUnavailable(f"SQLite did not answer ({error}): try again later") from None
        return row

    async def _ranged(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._reader, query, self._range)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"SQLite did not answer ({error}): try again later") from None
