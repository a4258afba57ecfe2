"""Records in SQLite, inside the writer's transaction. A function checks first and writes then."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Mapping, Sequence

from .interface import Due, Record, Waiting
from .shared import checksum, seal, unseal
from .signals import Clash, Missing, Stale
from .sqlite_rows import find, load_log, load_record
from .sqlite_snapshots import RunWrite


class Occupied(Exception):  # noqa: N818  (as in signals.py: a name says what happened)
    """A key of records that were taken to be new is there."""


async def remember(
    write: RunWrite, log: str, records: Mapping[str, bytes | Record], ttl: float
) -> dict[str, bytes]:
    """See `interface.Store`. Under keys of the caller's own, repeats are to be expected, under others looked for later."""
    now, heavy = time.time(), len(records) > 100
    if not any(isinstance(one, Record) and one.digest for one in records.values()):
        with contextlib.suppress(Occupied):
            return await write(lambda db: keep_new(db, log, records, now, ttl), heavy=heavy)
    return await write(lambda db: keep(db, log, records, now, ttl), heavy=heavy)


def keep_new(
    db: sqlite3.Connection, log: str, records: Mapping[str, bytes | Record], now: float, ttl: float
) -> dict[str, bytes]:
    """Keep records under new keys, without a look for each; Occupied, and the transaction must end, if one is there."""
    if write_records(db, "IGNORE", log, records, now + ttl) < len(records):
        raise Occupied
    return {}


def keep(
    db: sqlite3.Connection, log: str, records: Mapping[str, bytes | Record], now: float, ttl: float
) -> dict[str, bytes]:
    """Keep each record unless its key is there; return what was."""
    there = {
        name: rest
        for name, *rest in db.execute(
            "SELECT key, value, digest, taken FROM records WHERE log = ? AND expires > ?"
            " AND key IN (SELECT value FROM json_each(?))",
            (log, now, json.dumps(list(records))),
        )
    }
    first: dict[str, bytes] = {}
    written = load_log(db, log)
    for index, (name, one) in enumerate(records.items()):
        if name not in there and written.salt:
            find(db, written, name)  # Gone, if it was erased
        if name in there:
            value, digest, taken = there[name]
            if digest != (one.digest if isinstance(one, Record) else ""):
                raise Clash(index)
            first[name] = taken_value(db, log, taken) if taken else unseal(value, f"the record {name!r}")
    new = {name: one for name, one in records.items() if name not in first}
    write_records(db, "REPLACE", log, new, now + ttl)
    return first


def write_records(
    db: sqlite3.Connection, conflict: str, log: str, records: Mapping[str, bytes | Record], expires: float
) -> int:
    """Rows of records; how many were written."""
    rows = [
        (log, name, expires, seal(one.value), one.digest, one.due, one.rank, one.mark)
        if isinstance(one, Record)
        else (log, name, expires, seal(one), "", None, None, None)
        for name, one in records.items()
    ]
    return db.executemany(
        f"INSERT OR {conflict} INTO records (log, key, expires, value, digest, due, rank, mark)"  # noqa: S608
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    ).rowcount


def taken_value(db: sqlite3.Connection, log: str, version: int) -> bytes:
    """The record that an entry took, empty if it is no longer kept."""
    row = db.execute(
        "SELECT taken FROM entries WHERE key = (SELECT (id << 32) + ? FROM logs WHERE name = ?)",
        (version, log),
    ).fetchone()
    return b"" if row is None or row[0] is None else bytes(row[0])


def amend(
    db: sqlite3.Connection, log: str, name: str, value: bytes, expected: bytes, due: float | None, now: float
) -> None:
    current = load_record(db, log, name, now)
    if current is None:
        raise Missing(0)
    if checksum(current) != checksum(expected):
        raise Stale
    db.execute(
        "UPDATE records SET value = ?, due = coalesce(?, due) WHERE log = ? AND key = ?",
        (seal(value), due, log, name),
    )


def due_records(db: sqlite3.Connection, now: float, clock: float, limit: int) -> list[Due]:
    rows = db.execute(
        "SELECT log, key, due FROM records WHERE due <= ? AND expires > ? ORDER BY due LIMIT ?",
        (now, clock, limit),
    )
    return [Due(*row) for row in rows]


def waiting(db: sqlite3.Connection, log: str, after: float, limit: int, now: float) -> list[Waiting]:
    rows = db.execute(
        "SELECT key, rank, value FROM records WHERE log = ? AND rank > ? AND expires > ? AND leased <= ?"
        " ORDER BY rank LIMIT ?",
        (log, after, now, now, limit),
    )
    return [Waiting(key, rank, unseal(value, f"the record {key!r}")) for key, rank, value in rows]


def lease(db: sqlite3.Connection, log: str, records: Sequence[str], seconds: float, now: float) -> list[str]:
    return [
        key
        for key in records
        if db.execute(
            "UPDATE records SET leased = ? WHERE log = ? AND key = ? AND expires > ? AND leased <= ?"
            " AND rank IS NOT NULL",
            (now + seconds, log, key, now, now),
        ).rowcount
    ]


def open_records(db: sqlite3.Connection, log: str, mark: float, most: int, now: float) -> int:
    (count,) = db.execute(
        "SELECT count(*) FROM (SELECT 1 FROM records WHERE log = ? AND mark = ? AND expires > ? LIMIT ?)",
        (log, mark, now, most),
    ).fetchone()
    return int(count)
