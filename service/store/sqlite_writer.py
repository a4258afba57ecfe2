"""The one writer of a SQLite file: many operations, one transaction, one sync of the disk."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from feedrank.service.contract.faults import Gone, StorageFull, StoreUnavailable

from . import sqlite_erasing, sqlite_file
from .outage import Outage
from .shared import Batcher, WorkThread
from .signals import StoreSignal
from .sqlite_file import is_full

T = TypeVar("T")
Operation = Callable[[sqlite3.Connection], object]
MOST = 1024  # operations in one transaction
BYTES = 8 * 2**20  # written by one transaction, unless it is of a single operation


class Write(NamedTuple):
    """One operation, whether it leaves the loop, and how many bytes it writes, roughly."""

    operation: Operation
    heavy: bool
    size: int
    compacts: bool


class GroupCommit:
    """The one writer of a SQLite file: everything that waits goes into one transaction, and one sync of the disk serves it.

    Small operations run on the event loop itself (microseconds each, on pages in memory) and only COMMIT, which waits for
    the disk, runs in the writer's thread: a thread that shares the interpreter with a busy loop would wait for it at every
    statement. Operations marked heavy take the whole transaction into the thread. An operation checks first and writes
    then, so a refusal leaves nothing behind.

    What was committed to a file that is no longer the one at its path is not acknowledged.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._reconnect: Callable[[], sqlite3.Connection] = lambda: sqlite_file.connect(path, write=True)
        self._opened = sqlite_file.identities(path)
        self._identity = sqlite_file.identity(connection)
        self._thread = WorkThread("feedrank-writer")
        self._closing = self._wrote = False
        self.outage = Outage("SQLite did not take a write", "SQLite takes writes again")
        self._batcher: Batcher[Write, Any] = Batcher(
            self._transact, MOST, weigh=lambda write: write.size, weight=BYTES, turns=0
        )

    async def run(
        self,
        operation: Callable[[sqlite3.Connection], T],
        *,
        heavy: bool = False,
        size: int = 0,
        compacts: bool = False,
    ) -> T:
        """The operation's result once it is on the disk. StoreSignal passes; what SQLite says is StoreUnavailable.

        With `compacts`, what was erased is then gone from the file: see sqlite_erasing.py.
        """
        if self._closing:
            raise StoreUnavailable("the store is closing")
        return cast(T, await self._batcher.run("", Write(operation, heavy, size, compacts)))

    async def close(self) -> None:
        """Finish what waits, then close the connection."""
        self._closing = True
        await self._batcher.close()
        self._thread.close()
        self._connection.close()

    async def _transact(self, _: str, batch: Sequence[Write]) -> list[Any]:
        """All in one transaction; if that fails, each in its own, so that one cannot take the others with it."""
        try:
            if any(write.heavy for write in batch):
                results = await self._thread.submit(self._whole, batch)
            else:
                results = self._stage(batch)
                await self._thread.submit(self._connection.execute, "COMMIT")
            self._verify()
        except Exception as error:
            await self._thread.submit(GroupCommit._recover, self)
            if len(batch) == 1 or isinstance(error, StoreUnavailable):
                return [self._failed(error)] * len(batch)
        else:
            if self._wrote:
                self.outage.worked()
            for place, write in enumerate(batch):
                if write.compacts:
                    results[place] = await self._compact()
            return results
        return [(await self._transact("", [one]))[0] for one in batch]

    async def _compact(self) -> Exception | None:
        """Write the file anew if it is due; why that failed. What was committed with it stays."""
        try:
            await self._thread.submit(sqlite_erasing.compact, self._connection)
        except Exception as error:
            return self._failed(error)
        return None

    def _whole(self, batch: Sequence[Write]) -> list[Any]:
        results = self._stage(batch)
        self._connection.execute("COMMIT")
        return results

    def _verify(self) -> None:
        """Raise StoreUnavailable unless the paths still lead to the files that are open."""
        for path, opened in self._opened.items():
            with contextlib.suppress(OSError):
                status = path.stat()
                if (status.st_dev, status.st_ino) == opened:
                    continue
            raise sqlite_file.replaced(path)

    def _stage(self, batch: Sequence[Write]) -> list[Any]:
        self._connection.execute("BEGIN IMMEDIATE")
        if sqlite_file.identity(self._connection) != self._identity:
            raise StoreUnavailable(
                "the file holds another store, or another process writes to it: stop one of them, and start again"
            )
        before = self._connection.total_changes
        results: list[Any] = []
        for write in batch:
            try:
                results.append(write.operation(self._connection))
            except (StoreSignal, StorageFull, Gone) as signal:
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
        reason = error.detail if isinstance(error, StoreUnavailable) else str(error)
        if isinstance(error, sqlite3.Error):
            reason = "the disk is full" if is_full(error) else reason
            error = StoreUnavailable(f"SQLite did not take it ({reason}): try again later")
        if isinstance(error, StoreUnavailable):
            self.outage.failed(reason)
        return error
