"""The Store on PostgreSQL: any number of processes, each with one writer, some readers and one listener."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

import psycopg

from feedrank.service.contract.faults import StoreUnavailable

from ..outage import Outage
from .postgres_connection import PATIENCE, PostgresConnection, consistent
from .postgres_listen import PostgresListener
from .postgres_writer import Identity, PostgresWriter, reason_of
from .sql_store import SqlStore

T = TypeVar("T")
Query = Callable[[PostgresConnection], T]
SEARCHED = 60.0  # seconds that one statement may take of a query that looks at a whole log
CALM = 1.0  # seconds without a failure after which an outage is over


class PostgresStore(SqlStore):
    """See `interface.Store`."""

    shared = True

    def __init__(
        self,
        connect: Callable[[], PostgresConnection],
        listener: PostgresListener,
        identity: Identity,
        notices: tuple[str, ...],
        *,
        read_only: bool,
    ) -> None:
        super().__init__()
        self.notices = notices
        self._listener = listener
        self._reads = Outage("PostgreSQL did not answer", "PostgreSQL answers again", CALM)
        self._writer = None if read_only else PostgresWriter(connect, identity)
        self._points = Readers(connect, "points", PATIENCE)
        self._ranges = Readers(connect, "ranges", SEARCHED)

    @property
    def failures(self) -> int:
        return self._reads.failures + (self._writer.outage.failures if self._writer is not None else 0)

    async def close(self) -> None:
        self._listener.close()
        if self._writer is not None:
            await self._writer.close()
        await asyncio.to_thread(self._points.close)
        await asyncio.to_thread(self._ranges.close)

    def watch(self, log: str) -> None:
        self._listener.watch(log)

    def unwatch(self, log: str) -> None:
        self._listener.unwatch(log)

    def changes(self) -> AsyncIterator[tuple[str, str, int]]:
        return self._listener.changes()

    def silence(self) -> float:
        return self._listener.silence()

    def sizes(self) -> Mapping[str, float]:
        return {}

    async def _write(
        self, operation: Query[T], *, heavy: bool = False, size: int = 0, compacts: bool = False
    ) -> T:
        if self._writer is None:
            raise StoreUnavailable("the PostgreSQL store was opened for reading only")
        return await self._writer.run(operation, heavy=heavy, size=size, compacts=compacts)

    async def _ask(self, query: Query[T]) -> T:
        return await self._answer(self._points, query)

    async def _ask_one_moment(self, query: Query[T]) -> T:
        return await self._answer(self._points, lambda db: consistent(db, query))

    async def _ranged(self, query: Query[T]) -> T:
        return await self._answer(self._ranges, lambda db: consistent(db, query))

    async def _answer(self, readers: Readers, query: Query[T]) -> T:
        try:
            result = await readers.run(query)
        except psycopg.Error as error:
            self._reads.failed(reason_of(error))
            raise StoreUnavailable(
                f"PostgreSQL did not answer ({reason_of(error)}): try again later"
            ) from None
        self._reads.worked()
        return result


class Readers:
    """Two connections that only read, each opened when it is first needed, and again when it was lost."""

    SIZE = 2

    def __init__(self, connect: Callable[[], PostgresConnection], name: str, patience: float) -> None:
        self._connect, self._patience = connect, patience
        self._threads = ThreadPoolExecutor(self.SIZE, f"feedrank-{name}")
        self._idle: SimpleQueue[PostgresConnection | None] = SimpleQueue()
        for _ in range(self.SIZE):
            self._idle.put(None)

    async def run(self, query: Query[T]) -> T:
        """In a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, query)

    def _run(self, query: Query[T]) -> T:
        db = self._idle.get()
        try:
            for again in (False, True):
                if db is None or db.lost:
                    db = None
                    db = self._open()
                    again = True  # noqa: PLW2901  (one that is new is not tried twice)
                try:
                    return query(db)
                except BaseException as error:
                    if not db.abandon(error) or again:
                        raise
            raise AssertionError
        finally:
            self._idle.put(db)

    def _open(self) -> PostgresConnection:
        db = self._connect()
        db.execute("SET default_transaction_read_only = on")
        db.raw.patience = self._patience
        return db

    def close(self) -> None:
        """Finish what was asked."""
        self._threads.shutdown()
        while not self._idle.empty():
            db = self._idle.get()
            if db is not None:
                db.close()
