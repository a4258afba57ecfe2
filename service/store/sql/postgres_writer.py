"""The writer of one process to PostgreSQL, one of many.

All of them take the row of `store` before they write: one at a time, each with all that waits in its process, and each
sees that it is still the store that was opened, by the layout and the arithmetic that this process knows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from feedrank.service.contract.faults import StoreUnavailable

from . import row_erasing
from .postgres_connection import LONG, PATIENCE, PostgresConnection
from .postgres_schema import BODIES
from .transactions import DISK_FULL, GroupCommit, Write

FENCE = "SELECT id, layout, arithmetic FROM store FOR UPDATE"
ATTEMPTS, PAUSE = (
    100,
    0.1,
)  # to write a table anew while others still see what was in it, and seconds between two
Identity = tuple[str, int, int]


class PostgresWriter(GroupCommit[PostgresConnection]):
    """A connection that is lost is opened again with the next write; what may have been committed is not sent again."""

    def __init__(self, connect: Callable[[], PostgresConnection], identity: Identity) -> None:
        super().__init__("PostgreSQL", connect(), aside=True)
        self._connect, self._identity = connect, identity
        self._begun = False

    def _whole(self, batch: Sequence[Write]) -> list[Any]:
        patience = LONG if any(write.heavy for write in batch) else PATIENCE
        for again in (False, True):
            if self._connection.lost:
                self._connection = self._connect()
            self._connection.raw.patience = patience
            self._begun = False
            try:
                with self._connection.flow():
                    results = self._stage(batch)
                    self._connection.announce()
                    self._connection.execute("COMMIT")
            except psycopg.Error as error:
                if not self._connection.abandon(error):
                    raise  # it answers: nothing was committed
                if self._begun or again:
                    raise StoreUnavailable(
                        f"the connection to PostgreSQL was lost ({reason_of(error)}): send it again, under the same id"
                    ) from None
            else:
                return results
        raise AssertionError

    def _begin(self) -> None:
        self._connection.execute("BEGIN")
        if self._connection.execute(FENCE).fetchone() != self._identity:
            raise StoreUnavailable(
                "the database has another store than at the start: it was restored, replaced, or upgraded by a newer "
                "release. Put it back, or start again to accept it"
            )
        self._begun = True

    def _verify(self) -> None:
        """A commit that PostgreSQL answers is in its log."""

    def _recover(self) -> None:
        self._connection.abandon(RuntimeError())

    def _reason(self, error: Exception) -> str:
        return reason_of(error) if isinstance(error, psycopg.Error) else ""

    def _write_anew(self, connection: PostgresConnection) -> None:
        compact(connection)


def reason_of(error: psycopg.Error) -> str:
    """What the server says, in its first line."""
    if isinstance(error, psycopg.errors.DiskFull):
        return DISK_FULL
    return str(error).strip().partition("\n")[0] or type(error).__name__


def tidy(db: PostgresConnection) -> None:
    """Remove parts of snapshots that a save has left behind which was killed."""
    db.execute(
        "DELETE FROM parts WHERE key >> 20 NOT IN (SELECT upload FROM snapshots)"
        " AND writer NOT IN (SELECT pid FROM pg_stat_activity)"
    )


def compact(db: PostgresConnection) -> None:
    """Write the tables anew; others wait for each, and no session may still see what was in it before."""
    due = row_erasing.is_due(db)
    if not due:
        return
    db.raw.patience = LONG
    tidy(db)
    left: list[str] = []
    db.raw.add_notice_handler(handler := lambda said: left.append(said.message_detail or ""))
    try:
        for table in BODIES:
            for attempt in range(ATTEMPTS):
                if attempt:
                    time.sleep(PAUSE)
                left.clear()
                db.execute(f"VACUUM (FULL, VERBOSE) {table}")
                # "3 dead row versions cannot be removed yet", in the server's language
                if not any(
                    detail.lstrip()[:1] not in {"", "0"} for detail in left if detail.lstrip()[:1].isdigit()
                ):
                    break
            else:
                raise StoreUnavailable("what was erased is still seen by another session of the database")
    finally:
        db.raw.remove_notice_handler(handler)
    row_erasing.compacted(db, due)
