"""The Store on one SQLite file: no set-up, one process, one writer with group commit, readers that never wait for it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from feedrank.service.contract.faults import StoreUnavailable

from ..outage import Outage
from . import sqlite_file
from .sql_store import SqlStore
from .sqlite_connection import SqliteConnection, consistent
from .sqlite_writer import SqliteWriter

T = TypeVar("T")


class SqliteStore(SqlStore):
    """See `interface.Store`. Point reads run on the loop (microseconds), long ones in a reader's thread."""

    notices: tuple[str, ...] = ()
    shared = False

    def __init__(self, path: str | Path, *, read_only: bool = False, arithmetic: int = 0) -> None:
        super().__init__()
        self.path = Path(path)
        self._lock = sqlite_file.share(self.path) if read_only else sqlite_file.lock(self.path)
        self._writer: SqliteWriter | None = None
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

    def _open_writer(self, connection: SqliteConnection) -> SqliteWriter:
        self._point, self._range = (sqlite_file.connect(self.path, write=False) for _ in range(2))
        return SqliteWriter(self.path, connection)

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

    # Reading and writing

    async def _write(
        self,
        operation: Callable[[SqliteConnection], T],
        *,
        heavy: bool = False,
        size: int = 0,
        compacts: bool = False,
    ) -> T:
        if self._writer is None:
            raise StoreUnavailable(f"{self.path} was opened for reading only")
        return await self._writer.run(operation, heavy=heavy, size=size, compacts=compacts)

    async def _ask(self, query: Callable[[SqliteConnection], T]) -> T:
        """On the loop."""
        try:
            result = query(self._point)
        except sqlite3.Error as error:
            raise self._unanswered(error) from None
        self._reads.worked()
        return result

    def _unanswered(self, error: sqlite3.Error) -> StoreUnavailable:
        self._reads.failed(error)
        return StoreUnavailable(f"SQLite did not answer ({error}): try again later")

    async def _ask_one_moment(self, query: Callable[[SqliteConnection], T]) -> T:
        return await self._ask(lambda db: consistent(db, query))

    async def _ranged(self, query: Callable[[SqliteConnection], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._reader, consistent, self._range, query
            )
        except sqlite3.Error as error:
            raise self._unanswered(error) from None
