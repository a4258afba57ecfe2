"""Group commit: everything that waits goes into one transaction, and one sync of the disk serves it all.

Small operations run on the event loop itself (microseconds each, on pages in memory) and only COMMIT, which waits for
the disk, runs in the writer's thread: a thread that shares the interpreter with a busy loop would wait for it at every
statement. Operations marked heavy take the whole transaction into the thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ..errors import StoreUnavailable
from .base import StoreSignal
from .sqlite_file import is_full

log = logging.getLogger(__name__)
T = TypeVar("T")
Operation = Callable[[sqlite3.Connection], Any]
Waiting = tuple[Operation, bool, "asyncio.Future[Any]"]
Result = tuple[Any, Exception | None]

MOST = 1024  # operations in one transaction
TURNS = 2  # of the loop, before a batch is closed: requests that are ready now share its sync


class GroupCommit:
    """The one writer of a SQLite file. An operation checks first and writes then, so a refusal leaves nothing behind."""

    def __init__(self, connection: sqlite3.Connection, reconnect: Callable[[], sqlite3.Connection]) -> None:
        self._connection = connection
        self._reconnect = reconnect
        self._waiting: list[Waiting] = []
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "feedrank-writer")
        self._closing = False
        self._failing = self._wrote = False
        self._task = asyncio.create_task(self._work())

    async def run(self, operation: Callable[[sqlite3.Connection], T], *, heavy: bool = False) -> T:
        """The operation's result once it is on the disk. StoreSignal passes; what SQLite says is StoreUnavailable."""
        if self._closing:
            raise StoreUnavailable("the store is closing")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((operation, heavy, future))
        self._wake.set()
        return await future

    async def close(self) -> None:
        """Finish what waits, then close the connection."""
        self._closing = True
        self._wake.set()
        await self._task
        self._thread.shutdown()
        self._connection.close()

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                for _ in range(TURNS):
                    await asyncio.sleep(0)
                batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                results = await self._transact(batch)
                for (_, _, future), (value, error) in zip(batch, results, strict=True):
                    if future.done():  # the request was given up; what it wrote stays written
                        continue
                    if error is None:
                        future.set_result(value)
                    else:
                        future.set_exception(error)
            if self._closing:
                return

    async def _transact(self, batch: list[Waiting]) -> list[Result]:
        """All in one transaction; if that fails, each in its own, so that one cannot take the others with it."""
        loop = asyncio.get_running_loop()
        try:
            if any(heavy for _, heavy, _ in batch):
                results = await loop.run_in_executor(self._thread, self._whole, batch)
            else:
                results = self._stage(batch)
                await loop.run_in_executor(self._thread, self._connection.execute, "COMMIT")
            if self._failing and self._wrote:
                self._failing = False
                log.warning("SQLite takes writes again")
            return results
        except Exception as error:
            await loop.run_in_executor(self._thread, self._recover)
            if len(batch) == 1:
                return [(None, self._failed(error))]
        return [(await self._transact([one]))[0] for one in batch]

    def _whole(self, batch: list[Waiting]) -> list[Result]:
        results = self._stage(batch)
        self._connection.execute("COMMIT")
        return results

    def _stage(self, batch: list[Waiting]) -> list[Result]:
        self._connection.execute("BEGIN IMMEDIATE")
        before = self._connection.total_changes
        results: list[Result] = []
        for operation, _, _ in batch:
            try:
                results.append((operation(self._connection), None))
            except StoreSignal as signal:
                results.append((None, signal))
        self._wrote = self._connection.total_changes != before
        return results

    def _recover(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._connection.close()
            with contextlib.suppress(sqlite3.Error):  # the next write comes here again
                self._connection = self._reconnect()

    def _failed(self, error: Exception) -> Exception:
        """What SQLite says, as what the caller can do; other exceptions are defects and pass as they are."""
        if not isinstance(error, sqlite3.Error):
            return error
        why = "the disk is full" if is_full(error) else str(error)
        if not self._failing:  # said once, and not for every request until it works again
            self._failing = True
            log.error("SQLite did not take a write: %s", why)
        return StoreUnavailable(f"SQLite did not take it ({why}): try again later")
