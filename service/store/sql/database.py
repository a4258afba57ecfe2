"""What the statements of this folder are given to: a connection of SQLite or of PostgreSQL, behind one form.

Statements have `?` for what is filled in, and are written so that both databases read them: ON CONFLICT for INSERT OR
REPLACE, RETURNING for the id of a new row, no scalar max. What they spell differently is a method of the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]


class ResultRows(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """A connection with explicit transactions. A statement that writes has run when its cursor is asked, or at COMMIT."""

    shared: bool  # whether others write too, and are told of what is written

    @property
    def total_changes(self) -> int:
        """Grows with what is written."""
        ...

    def close(self) -> None: ...

    def execute(self, sql: str, values: Sequence[object] = (), /) -> ResultRows: ...

    def executemany(self, sql: str, rows: Iterable[Sequence[object]], /) -> ResultRows: ...

    def among(self, column: str, values: Sequence[str]) -> tuple[str, object]:
        """A condition that the column has one of many values, and what fills it in."""
        ...

    def contains(self, column: str) -> str:
        """A condition that a column of bytes contains what is filled in."""
        ...

    def unzeroed(self) -> AbstractContextManager[None]:
        """What is deleted meanwhile need not be overwritten."""
        ...

    def tell(self, kind: str, name: str, version: int) -> None:
        """Tell other processes of it once it is committed, as `Store.changes` says; asked where it is `shared`."""
        ...


class RunWrite(Protocol):
    """Runs an operation in the writer's transaction."""

    async def __call__(
        self, operation: Callable[[Database], T], *, heavy: bool = False, size: int = 0
    ) -> T: ...


class RunQuery(Protocol):
    """Runs a query of several statements at one moment, away from the loop."""

    async def __call__(self, query: Callable[[Database], T]) -> T: ...
