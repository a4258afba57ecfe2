"""Records as rows, inside the writer's transaction. A function checks first and writes then."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence

from ..interface import Due, Record, Waiting
from ..shared import checksum, seal, unseal
from ..signals import Clash, Missing, Stale
from .database import Database, RunWrite
from .rows import find, load_log, load_record

INSERT = (
    "INSERT INTO records (log, key, expires, value, digest, due, rank, mark) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
NEW = f"{INSERT} ON CONFLICT DO NOTHING"
OVER = (
    f"{INSERT} ON CONFLICT (log, key) DO UPDATE SET expires = excluded.expires, value = excluded.value,"
    " digest = excluded.digest, due = excluded.due, rank = excluded.rank, mark = excluded.mark, taken = 0, leased = 0"
)


class Occupied(Exception):  # noqa: N818  (as in signals.py: a name says what happened)
    """A key of records that were taken to be new is there."""


async def remember(
    write: RunWrite, log: str, records: Mapping[str, bytes | Record], ttl: float
) -> dict[str, bytes]:
    """See `interface.Store`. Under keys of the caller's own, repeats are to be expected, under others looked for later."""
    now, heavy = time.time(), len(records) > 100
    for one in records.values():
        if isinstance(one, Record) and one.digest:
            break
    else:
        with contextlib.suppress(Occupied):
            return await write(lambda db: keep_new(db, log, records, now, ttl), heavy=heavy)
    return await write(lambda db: keep(db, log, records, now, ttl), heavy=heavy)


def keep_new(
    db: Database, log: str, records: Mapping[str, bytes | Record], now: float, ttl: float
) -> dict[str, bytes]:
    """Keep records under new keys, without a look for each; Occupied, and the transaction must end, if one is there."""
    if write_records(db, NEW, log, records, now + ttl) < len(records):
        raise Occupied
    return {}


def keep(
    db: Database, log: str, records: Mapping[str, bytes | Record], now: float, ttl: float
) -> dict[str, bytes]:
    """Keep each record unless its key is there; return what was."""
    one_of, names = db.among("key", list(records))
    there = {
        name: rest
        for name, *rest in db.execute(
            f"SELECT key, value, digest, taken FROM records WHERE log = ? AND expires > ? AND {one_of}",  # noqa: S608
            (log, now, names),
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
    write_records(db, OVER, log, new, now + ttl)
    return first


def write_records(
    db: Database, statement: str, log: str, records: Mapping[str, bytes | Record], expires: float
) -> int:
    """Rows of records; how many were written."""
    rows = [
        (log, name, expires, seal(one.value), one.digest, one.due, one.rank, one.mark)
        if isinstance(one, Record)
        else (log, name, expires, seal(one), "", None, None, None)
        for name, one in records.items()
    ]
    return db.executemany(
        statement,
        rows,
    ).rowcount


def taken_value(db: Database, log: str, version: int) -> bytes:
    """The record that an entry took, empty if it is no longer kept."""
    row = db.execute(
        "SELECT taken FROM entries WHERE key = (SELECT (id << 32) + ? FROM logs WHERE name = ?)",
        (version, log),
    ).fetchone()
    return b"" if row is None or row[0] is None else bytes(row[0])


def amend(
    db: Database, log: str, name: str, value: bytes, expected: bytes, due: float | None, now: float
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


def due_records(db: Database, now: float, clock: float, limit: int) -> list[Due]:
    rows = db.execute(
        "SELECT log, key, due FROM records WHERE due <= ? AND expires > ? ORDER BY due LIMIT ?",
        (now, clock, limit),
    )
    return [Due(*row) for row in rows]


def waiting(db: Database, log: str, after: float, limit: int, now: float) -> list[Waiting]:
    rows = db.execute(
        "SELECT key, rank, value FROM records WHERE log = ? AND rank > ? AND expires > ? AND leased <= ?"
        " ORDER BY rank LIMIT ?",
        (log, after, now, now, limit),
    )
    return [Waiting(key, rank, unseal(value, f"the record {key!r}")) for key, rank, value in rows]


def lease(db: Database, log: str, records: Sequence[str], seconds: float, now: float) -> list[str]:
    return [
        key
        for key in records
        if db.execute(
            "UPDATE records SET leased = ? WHERE log = ? AND key = ? AND expires > ? AND leased <= ?"
            " AND rank IS NOT NULL",
            (now + seconds, log, key, now, now),
        ).rowcount
    ]


def open_records(db: Database, log: str, mark: float, most: int, now: float) -> int:
    (count,) = db.execute(
        "SELECT count(*) FROM (SELECT 1 FROM records WHERE log = ? AND mark = ? AND expires > ? LIMIT ?) AS open",
        (log, mark, now, most),
    ).fetchone()
    return int(count)
