"""Records and documents in SQLite, inside the writer's transaction: each function checks first and writes then."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from .base import Clash, Document, Due, Missing, Record, Stale
from .checksums import checksum, seal, unseal


def load_record(db: sqlite3.Connection, log: str, name: str, now: float) -> bytes | None:
    """A record that can be taken."""
    row = db.execute(
        "SELECT value FROM records WHERE log = ? AND key = ? AND expires > ? AND taken = 0", (log, name, now)
    ).fetchone()
    return None if row is None else unseal(row[0], f"the record {name!r}")


def take_record(db: sqlite3.Connection, log: str, name: str, version: int) -> None:
    """Remove what an entry has taken; of one with a digest, that it was there is kept for repeats."""
    db.execute("DELETE FROM records WHERE log = ? AND key = ? AND digest = ''", (log, name))
    db.execute(
        "UPDATE records SET taken = ?, due = NULL, value = ? WHERE log = ? AND key = ?",
        (version, seal(b""), log, name),
    )


def remember(
    db: sqlite3.Connection, log: str, records: Mapping[str, bytes | Record], now: float, ttl: float
) -> dict[str, bytes]:
    """Keep each record unless its key is there; return what was."""
    first: dict[str, bytes] = {}
    rows: list[tuple[object, ...]] = []
    for index, (name, one) in enumerate(records.items()):
        record = one if isinstance(one, Record) else Record(one)
        row = db.execute(
            "SELECT expires, value, digest, taken FROM records WHERE log = ? AND key = ?", (log, name)
        ).fetchone()
        if row is not None and row[0] > now:
            _, value, digest, taken = row
            if digest != record.digest:
                raise Clash(index)
            first[name] = taken_value(db, log, taken) if taken else unseal(value, f"the record {name!r}")
            continue
        rows.append((log, name, now + ttl, seal(record.value), record.digest, 0, record.due))
    db.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    return first


def taken_value(db: sqlite3.Connection, log: str, version: int) -> bytes:
    """The record that an entry took, empty if it is no longer kept."""
    row = db.execute(
        "SELECT taken FROM entries WHERE key = (SELECT (id << 32) + ? FROM logs WHERE name = ?)",
        (version, log),
    ).fetchone()
    return b"" if row is None or row[0] is None else bytes(row[0])


def amend(
    db: sqlite3.Connection,
    log: str,
    name: str,
    value: bytes,
    expected: bytes,
    due: float | None,
    now: float,
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


def expect(db: sqlite3.Connection, kind: str, name: str, revision: int) -> None:
    """A document is at this revision, or at none if that is 0."""
    row = db.execute("SELECT revision FROM documents WHERE kind = ? AND name = ?", (kind, name)).fetchone()
    if (row[0] if row else 0) != revision:
        raise Stale


def put(db: sqlite3.Connection, kind: str, name: str, value: bytes, revision: int) -> int:
    expect(db, kind, name, revision)
    fresh = count(db, "revision", 1)
    if revision == 0:
        count(db, f"documents:{kind}", 1)
    db.execute("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)", (kind, name, fresh, seal(value)))
    return fresh


def remove(db: sqlite3.Connection, kind: str, name: str, revision: int) -> None:
    expect(db, kind, name, revision)
    count(db, f"documents:{kind}", -1)
    db.execute("DELETE FROM documents WHERE kind = ? AND name = ?", (kind, name))


def document(kind: str, name: str, value: bytes, revision: int) -> Document:
    return Document(unseal(value, f"the document {kind}/{name}"), revision)


def count(db: sqlite3.Connection, name: str, by: int) -> int:
    """Move a counter and give its new value."""
    (value,) = db.execute(
        "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
        " RETURNING value",
        (name, by),
    ).fetchone()
    return int(value)
