"""Erasing in SQLite: checksums take the place of bodies, and then the file is written anew.

What is deleted stays in free pages, in gaps of pages that were split, and in the write-ahead log. Overwriting each of them
with zeros (`PRAGMA secure_delete`) does not reach the gaps; VACUUM copies what is there and nothing else. Until it is done,
a counter says so: whoever opens the file after a kill does it first.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Sequence

from feedrank.service.contract.faults import StoreUnavailable

from .shared import id_check, sums_of, tomb
from .signals import Closed, Trimmed
from .sqlite_rows import Log, count, create_log, key, load_log

ATTEMPTS, PAUSE = (
    100,
    0.1,
)  # to empty the write-ahead log, which waits for those who read it, and seconds between two


def search(db: sqlite3.Connection, name: str, id: str, text: bytes) -> tuple[list[int], list[str]]:
    """See `Store.search`."""
    log = load_log(db, name)
    versions = db.execute(
        "SELECT DISTINCT version FROM ids WHERE log = ? AND id >= ? AND id < ? ORDER BY version",
        (log.id, id, f"{id}\U0010ffff"),
    )
    records = db.execute("SELECT key FROM records WHERE log = ? AND instr(value, ?) > 0", (name, text))
    return [version for (version,) in versions], [key for (key,) in records]


def erase(
    db: sqlite3.Connection, name: str, versions: Sequence[int], records: Sequence[str], ids: Sequence[str]
) -> list[str]:
    """See `Store.erase`; the file has still to be written anew."""
    log = load_log(db, name)
    if log.closed:
        raise Closed
    if any(version < log.floor for version in versions):
        raise Trimmed
    if not log.id:
        log = log._replace(id=create_log(db, name))
    if not log.salt:
        log = log._replace(salt=secrets.token_hex(16))
        db.execute("UPDATE logs SET salt = ? WHERE id = ?", (log.salt, log.id))
    sums = []
    for version in versions:
        sums.append(empty(db, log, version))
        (by,) = db.execute("SELECT retracted FROM entries WHERE key = ?", (key(log.id, version),)).fetchone()
        empty(db, log, by)
        db.execute("DELETE FROM outcomes WHERE key = ?", (key(log.id, version),))
        rows = db.execute(
            "SELECT id FROM ids WHERE log = ? AND version = ? AND substr(id, 1, 2) != 'e:'", (log.id, version)
        ).fetchall()
        bury(db, log, [id for (id,) in rows], version)
    for record in records:
        db.execute("DELETE FROM records WHERE log = ? AND key = ?", (name, record))
    bury(db, log, [*records, *ids], log.version)
    count(db, "erased", 1)
    return sums


def empty(db: sqlite3.Connection, log: Log, version: int) -> str:
    """Put checksums in the place of the body of an entry, and of the record that it took; that of the body."""
    at = key(log.id, version)
    body, taken, erased = db.execute(
        "SELECT body, taken, erased FROM entries WHERE key = ?", (at,)
    ).fetchone()
    sums: str = erased or sums_of(body, taken)
    db.execute("UPDATE entries SET body = x'', taken = NULL, erased = ? WHERE key = ?", (sums, at))
    return sums.partition(" ")[0]


def bury(db: sqlite3.Connection, log: Log, ids: Sequence[str], version: int) -> None:
    """Keep of ids only that they were there."""
    for id in ids:
        stone = tomb(log.salt, id)
        db.execute("DELETE FROM ids WHERE log = ? AND id = ?", (log.id, id))
        row = (log.id, stone, version, "", id_check(stone, version, ""))
        db.execute("INSERT OR REPLACE INTO ids VALUES (?, ?, ?, ?, ?)", row)


def is_due(db: sqlite3.Connection) -> bool:
    """Whether bytes of what was erased may still be in the file."""
    row = db.execute("SELECT value FROM counters WHERE name = 'erased'").fetchone()
    return bool(row and row[0])


def compact(db: sqlite3.Connection) -> None:
    """Write the file anew, and empty the write-ahead log."""
    if not is_due(db):
        return
    db.execute("VACUUM")
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE)
        busy, *_ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            db.execute("UPDATE counters SET value = 0 WHERE name = 'erased'")
            return
    raise StoreUnavailable("what was erased is still in the write-ahead log, which another process reads")
