"""What the one writer of a SQLite file does inside its transaction: each function checks first and writes then."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from .base import Clash, Closed, Draft, Missing, Placed, Snapshot, Stale, Trimmed


def key(log: int, version: int) -> int:
    """Where an entry stands in the one tree of all logs."""
    return (log << 32) + version


def append(db: sqlite3.Connection, log: str, drafts: Sequence[Draft], now: float) -> list[Placed]:
    """All drafts, each once, or none."""
    row = db.execute("SELECT id, version, floor, closed FROM logs WHERE name = ?", (log,)).fetchone()
    number, version, floor, closed = row or (None, 0, 1, 0)
    if closed:
        raise Closed
    last = version
    met: dict[str, tuple[int, str]] = {}
    placed: list[Placed] = []
    taken: dict[int, bytes] = {}
    for index, draft in enumerate(drafts):
        known = None
        for id in draft.ids:
            held = met.get(id) or (find(db, number, id) if number is not None else None)
            if held is not None and (held[1] != draft.digest or (known or held)[0] != held[0]):
                raise Clash(index)
            known = known or held
        if known is not None:
            placed.append(Placed(known[0], False))
            continue
        if draft.take is not None:
            taken[index] = record(db, log, draft.take, now, index)
        if draft.marks and (number is None or not reaches(db, number, floor, draft.base)):
            raise Trimmed
        last += 1
        placed.append(Placed(last, True))
        met.update(dict.fromkeys(draft.ids, (last, draft.digest)))
    if last == version:
        return placed
    if number is None:
        number = db.execute("INSERT INTO logs (name) VALUES (?)", (log,)).lastrowid or 0
    marked = 0
    for index, (draft, place) in enumerate(zip(drafts, placed, strict=True)):
        if not place.fresh:
            continue
        db.execute(
            "INSERT INTO entries (key, at, body, taken) VALUES (?, ?, ?, ?)",
            (key(number, place.version), now, draft.body, taken.get(index)),
        )
        for id in draft.ids:
            db.execute("INSERT INTO ids VALUES (?, ?, ?, ?)", (number, id, place.version, draft.digest))
        if draft.take is not None:
            db.execute("DELETE FROM records WHERE log = ? AND key = ?", (log, draft.take))
        if draft.marks:
            marked = place.version
            withdrawn = key(number, draft.marks)
            db.execute("UPDATE entries SET mark = ? WHERE key = ?", (marked, withdrawn))
            db.execute("DELETE FROM snapshots WHERE key >= ? AND key < ?", (withdrawn, key(number + 1, 0)))
    db.execute("UPDATE logs SET version = ?, marked = max(marked, ?) WHERE id = ?", (last, marked, number))
    return placed


def find(db: sqlite3.Connection, log: int, id: str) -> tuple[int, str] | None:
    row: tuple[int, str] | None = db.execute(
        "SELECT version, digest FROM ids WHERE log = ? AND id = ?", (log, id)
    ).fetchone()
    return row


def record(db: sqlite3.Connection, log: str, name: str, now: float, index: int) -> bytes:
    row = db.execute(
        "SELECT value FROM records WHERE log = ? AND key = ? AND expires > ?", (log, name, now)
    ).fetchone()
    if row is None:
        raise Missing(index)
    return bytes(row[0])


def reaches(db: sqlite3.Connection, log: int, floor: int, base: int) -> bool:
    """Whether the log can be folded again from `base` on."""
    held = db.execute("SELECT 1 FROM snapshots WHERE key = ?", (key(log, base),)).fetchone()
    return floor <= base + 1 and (base == 0 or held is not None)


def save(
    db: sqlite3.Connection, log: str, snapshot: Snapshot, outcomes: Mapping[int, bytes], keep: int, floor: int
) -> str:
    """Outcomes and snapshot in one transaction, then what retention lets go."""
    row = db.execute("SELECT id, version, floor, marked, closed FROM logs WHERE name = ?", (log,)).fetchone()
    number, version, first, marked, closed = row or (None, 0, 1, 0, 0)
    if closed:
        raise Closed
    if number is None:
        number = db.execute("INSERT INTO logs (name) VALUES (?)", (log,)).lastrowid or 0
    place = key(number, snapshot.version)
    held = db.execute("SELECT digest FROM snapshots WHERE key = ?", (place,)).fetchone()
    if held is not None and held[0] != snapshot.digest:
        return str(held[0])
    db.executemany(
        "INSERT OR IGNORE INTO outcomes VALUES (?, ?)",
        [(key(number, v), data) for v, data in outcomes.items()],
    )
    if snapshot.version < marked:
        return snapshot.digest
    if held is None:
        db.execute("INSERT INTO snapshots VALUES (?, ?, ?)", (place, snapshot.digest, snapshot.data))
    if version == 0 and snapshot.version > 0:
        version, first = snapshot.version, snapshot.version + 1
        db.execute("UPDATE logs SET version = ?, floor = ? WHERE id = ?", (version, first, number))
    prune(db, number, first, keep, floor)
    return snapshot.digest


def prune(db: sqlite3.Connection, log: int, first: int, keep: int, floor: int) -> None:
    """Keep the newest snapshots, and the entries from `floor` or from the oldest kept snapshot on."""
    low, high = key(log, 0), key(log + 1, 0)
    kept = db.execute(
        "SELECT key FROM snapshots WHERE key > ? AND key < ? ORDER BY key DESC LIMIT ?", (low, high, keep)
    ).fetchall()
    oldest = kept[-1][0]
    db.execute("DELETE FROM snapshots WHERE key > ? AND key < ?", (low, oldest))
    floor = min(floor, oldest - low + 1)
    if floor > first:
        db.execute("DELETE FROM entries WHERE key > ? AND key < ?", (low, key(log, floor)))
        db.execute("UPDATE logs SET floor = ? WHERE id = ?", (floor, log))


def drop(db: sqlite3.Connection, log: str) -> None:
    """Remove everything of a log and leave it closed for good."""
    db.execute("INSERT OR IGNORE INTO logs (name) VALUES (?)", (log,))
    (number,) = db.execute("SELECT id FROM logs WHERE name = ?", (log,)).fetchone()
    low, high = key(number, 0), key(number + 1, 0)
    for table in ("entries", "outcomes", "snapshots"):
        db.execute(f"DELETE FROM {table} WHERE key >= ? AND key < ?", (low, high))  # noqa: S608
    db.execute("DELETE FROM ids WHERE log = ?", (number,))
    db.execute("DELETE FROM records WHERE log = ?", (log,))
    db.execute("UPDATE logs SET closed = 1, version = 0, floor = 1, marked = 0 WHERE id = ?", (number,))


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
    db.execute("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)", (kind, name, fresh, value))
    return fresh


def remove(db: sqlite3.Connection, kind: str, name: str, revision: int) -> None:
    expect(db, kind, name, revision)
    count(db, f"documents:{kind}", -1)
    db.execute("DELETE FROM documents WHERE kind = ? AND name = ?", (kind, name))


def count(db: sqlite3.Connection, name: str, by: int) -> int:
    """Move a counter and give its new value."""
    (value,) = db.execute(
        "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
        " RETURNING value",
        (name, by),
    ).fetchone()
    return int(value)
