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
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from feedrank.service.contract.faults import StoreUnavailable

from .base import StoreSignal
from .batcher import Batcher
from .sqlite_file import is_full

log = logging.getLogger(__name__)
T = TypeVar("T")
Operation = Callable[[sqlite3.Connection], Any]

MOST = 1024  # operations in one transaction
BYTES = 8 * 2**20  # written by one transaction, unless it is of a single operation


class Write(NamedTuple):
    """One operation, whether it leaves the loop, and how many bytes it writes, roughly."""

    operation: Operation
    heavy: bool
    size: int


class GroupCommit:
    """The one writer of a SQLite file. An operation checks first and writes then, so a refusal leaves nothing behind.

    `verify` raises StoreUnavailable if the file is no longer the one that is open: what was committed is then not
    acknowledged.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        reconnect: Callable[[], sqlite3.Connection],
        verify: Callable[[], None],
    ) -> None:
        self._connection, self._reconnect, self._verify = connection, reconnect, verify
        self._thread = ThreadPoolExecutor(1, "feedrank-writer")
        self._closing = False
        self._failing = self._wrote = False
        self._batcher: Batcher[Write, Any] = Batcher(
            self._transact, MOST, weigh=lambda write: write.size, weight=BYTES
        )

    async def run(
        self, operation: Callable[[sqlite3.Connection], T], *, heavy: bool = False, size: int = 0
    ) -> T:
        """The operation's result once it is on the disk. StoreSignal passes; what SQLite says is StoreUnavailable."""
        if self._closing:
            raise StoreUnavailable("the store is closing")
        result: T = await self._batcher.run("", Write(operation, heavy, size))
        return result

    async def close(self) -> None:
        """Finish what waits, then close the connection."""
        self._closing = True
        await self._batcher.close()
        self._thread.shutdown()
        self._connection.close()

    async def _transact(self, _: str, batch: Sequence[Write]) -> list[Any]:
        """All in one transaction; if that fails, each in its own, so that one cannot take the others with it."""
        loop = asyncio.get_running_loop()
        try:
            if any(write.heavy for write in batch):
                results = await loop.run_in_executor(self._thread, self._whole, batch)
            else:
                results = self._stage(batch)
                await loop.run_in_executor(self._thread, self._commit)
        except Exception as error:
            await loop.run_in_executor(self._thread, self._recover)
            if len(batch) == 1 or isinstance(error, StoreUnavailable):
                return [self._failed(error)] * len(batch)
        else:
            if self._failing and self._wrote:
                self._failing = False
                log.warning("SQLite takes writes again")
            return results
        return [(await self._transact("", [one]))[0] for one in batch]

    def _whole(self, batch: Sequence[Write]) -> list[Any]:
        results = self._stage(batch)
        self._commit()
        return results

    def _commit(self) -> None:
        self._connection.execute("COMMIT")
        self._verify()

    def _stage(self, batch: Sequence[Write]) -> list[Any]:
        self._connection.execute("BEGIN IMMEDIATE")
        before = self._connection.total_changes
        results: list[Any] = []
        for write in batch:
            try:
                results.append(write.operation(self._connection))
            except StoreSignal as signal:
                results.append(signal)
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
        if isinstance(error, StoreUnavailable):
            reason, reply = error.detail, error
        elif isinstance(error, sqlite3.Error):
            reason = "the disk is full" if is_full(error) else str(error)
            reply = StoreUnavailable(f"SQLite did not take it ({reason}): try again later")
        else:
            return error
        if not self._failing:  # said once, and not for every request until it works again
            self._failing = True
            log.error("SQLite did not take a write: %s", reason)
        return reply
