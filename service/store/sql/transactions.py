"""The writer of a SQL database: many operations, one transaction, one sync of the disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

from feedrank.service.contract.faults import Gone, StorageFull, StoreUnavailable

from ..outage import Outage
from ..shared import Batcher, WorkThread
from ..signals import StoreSignal
from .database import Database

T = TypeVar("T")
Connection = TypeVar("Connection", bound=Database)
DISK_FULL = "the disk is full"
MOST = 1024  # operations in one transaction
BYTES = 8 * 2**20  # written by one transaction, unless it is of a single operation


class Write(NamedTuple):
    """One operation, whether it leaves the loop, and how many bytes it writes, roughly."""

    operation: Callable[[Any], object]
    heavy: bool
    size: int
    compacts: bool


class GroupCommit(ABC, Generic[Connection]):
    """The one writer of a process: everything that waits goes into one transaction, and one sync of the disk serves it.

    Where statements take microseconds each (`aside` is False: on pages in memory), small operations run on the event loop
    itself and only COMMIT, which waits for the disk, runs in the writer's thread: a thread that shares the interpreter with
    a busy loop would wait for it at every statement. Operations marked heavy take the whole transaction into the thread. An
    operation checks first and writes then, so a refusal leaves nothing behind.
    """

    def __init__(self, name: str, connection: Connection, *, aside: bool) -> None:
        self._name, self._connection, self._aside = name, connection, aside
        self._thread = WorkThread("feedrank-writer")
        self._closing = self._wrote = False
        self.outage = Outage(f"{name} did not take a write", f"{name} takes writes again")
        self._batcher: Batcher[Write, Any] = Batcher(
            self._transact, MOST, weigh=lambda write: write.size, weight=BYTES, turns=0
        )

    async def run(
        self,
        operation: Callable[[Connection], T],
        *,
        heavy: bool = False,
        size: int = 0,
        compacts: bool = False,
    ) -> T:
        """The operation's result once it is on the disk. StoreSignal passes; what the database says is StoreUnavailable.

        With `compacts`, what was erased is then gone from the database: see row_erasing.py.
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
            if self._aside or any(write.heavy for write in batch):
                results = await self._thread.submit(self._whole, batch)
            else:
                results = self._stage(batch)
                await self._thread.submit(self._connection.execute, "COMMIT")
            self._verify()
        except Exception as error:
            await self._thread.submit(type(self)._recover, self)
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
        """Let nothing be left of what was erased; why that failed. What was committed with it stays."""
        try:
            await self._thread.submit(self._write_anew, self._connection)
        except Exception as error:
            return self._failed(error)
        return None

    def _whole(self, batch: Sequence[Write]) -> list[Any]:
        results = self._stage(batch)
        self._connection.execute("COMMIT")
        return results

    def _stage(self, batch: Sequence[Write]) -> list[Any]:
        self._begin()
        before = self._connection.total_changes
        results: list[Any] = []
        for write in batch:
            try:
                results.append(write.operation(self._connection))
            except (StoreSignal, StorageFull, Gone) as signal:
                results.append(signal)
        self._wrote = self._connection.total_changes != before
        return results

    def _failed(self, error: Exception) -> Exception:
        """What the database says, as what the caller can do; other exceptions are defects and pass as they are."""
        reason = error.detail if isinstance(error, StoreUnavailable) else self._reason(error)
        if reason and not isinstance(error, StoreUnavailable):
            error = StoreUnavailable(f"{self._name} did not take it ({reason}): try again later")
        if isinstance(error, StoreUnavailable):
            self.outage.failed(reason)
        return error

    @abstractmethod
    def _begin(self) -> None:
        """Begin a transaction; StoreUnavailable unless the database still has the store that was opened."""

    @abstractmethod
    def _verify(self) -> None:
        """StoreUnavailable if what was committed went nowhere."""

    @abstractmethod
    def _recover(self) -> None:
        """Leave a transaction that failed, with another connection if need be."""

    @abstractmethod
    def _reason(self, error: Exception) -> str:
        """In a few words, of an error of the database; nothing of others."""

    @abstractmethod
    def _write_anew(self, connection: Connection) -> None:
        """Write anew what still has bytes of what was erased, if anything has."""
