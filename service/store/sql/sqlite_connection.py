"""The dialect of SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


class SqliteConnection(sqlite3.Connection):
    """See `Database`."""

    shared = False

    def among(self, column: str, values: Sequence[str]) -> tuple[str, object]:
        return f"{column} IN (SELECT value FROM json_each(?))", json.dumps(values)  # noqa: S608

    def contains(self, column: str) -> str:
        return f"instr({column}, ?) > 0"

    @contextmanager
    def unzeroed(self) -> Iterator[None]:
        """Many builds write zeros over what is deleted, which of a snapshot costs as much as the one in its place."""
        before = self.execute("PRAGMA secure_delete").fetchone()[0]
        self.execute("PRAGMA secure_delete = OFF")
        try:
            yield
        finally:
            self.execute(f"PRAGMA secure_delete = {before}")

    def tell(self, kind: str, name: str, version: int) -> None:
        """Nobody else has the file."""


def connect(path: Path | str, *, wait: float = 5.0, uri: bool = False) -> SqliteConnection:
    """A connection with explicit transactions, for any one thread at a time; it waits so long for locks of others."""
    return sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=wait, uri=uri, factory=SqliteConnection
    )


def consistent(db: SqliteConnection, query: Callable[[SqliteConnection], T]) -> T:
    """A query of several statements that all see one moment: else what is committed between them looks like damage."""
    db.execute("BEGIN")
    try:
        return query(db)
    finally:
        db.execute("ROLLBACK")
