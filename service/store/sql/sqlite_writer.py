"""The writer of a SQLite file."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

from feedrank.service.contract.faults import StoreUnavailable

from . import sqlite_compact, sqlite_file
from .sqlite_connection import SqliteConnection
from .transactions import DISK_FULL, GroupCommit


class SqliteWriter(GroupCommit[SqliteConnection]):
    """What was committed to a file that is no longer the one at its path is not acknowledged."""

    def __init__(self, path: Path, connection: SqliteConnection) -> None:
        super().__init__("SQLite", connection, aside=False)
        self._reconnect: Callable[[], SqliteConnection] = lambda: sqlite_file.connect(path, write=True)
        self._opened = sqlite_file.identities(path)
        self._identity = sqlite_file.identity(connection)

    def _begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        if self._connection.execute(sqlite_file.IDENTITY).fetchone() != self._identity:
            raise StoreUnavailable(
                "the file holds another store, or another process writes to it: stop one of them, and start again"
            )

    def _verify(self) -> None:
        """Raise StoreUnavailable unless the paths still lead to the files that are open."""
        for path, opened in self._opened.items():
            with contextlib.suppress(OSError):
                status = path.stat()
                if (status.st_dev, status.st_ino) == opened:
                    continue
            raise sqlite_file.replaced(path)

    def _recover(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._connection.close()
            with contextlib.suppress(sqlite3.Error):  # the next write comes here again
                self._connection = self._reconnect()

    def _reason(self, error: Exception) -> str:
        if not isinstance(error, sqlite3.Error):
            return ""
        return DISK_FULL if sqlite_file.is_full(error) else str(error)

    def _write_anew(self, connection: SqliteConnection) -> None:
        sqlite_compact.compact(connection)
