"""Erasing rows: checksums take the place of bodies, and then what holds the rows is written anew, as each database does.

What is deleted stays in pages and logs of the database. Until these are written anew, a counter says so: whoever opens the
store after a kill does it first.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from ..shared import id_check, sums_of, tomb
from ..signals import Closed, Trimmed
from .database import Database
from .row_documents import count, counter
from .rows import Log, create_log, key, load_log

BURY = (
    "INSERT INTO ids (log, id, version, digest, guard) VALUES (?, ?, ?, ?, ?) ON CONFLICT (log, id)"
    " DO UPDATE SET version = excluded.version, digest = excluded.digest, guard = excluded.guard"
)


def search(db: Database, name: str, id: str, text: bytes) -> tuple[list[int], list[str]]:
    """See `Store.search`."""
    log = load_log(db, name)
    versions = db.execute(
        "SELECT DISTINCT version FROM ids WHERE log = ? AND id >= ? AND id < ? ORDER BY version",
        (log.id, id, f"{id}\U0010ffff"),
    )
    contains = db.contains("value")
    records = db.execute(f"SELECT key FROM records WHERE log = ? AND {contains}", (name, text))  # noqa: S608
    return [version for (version,) in versions], [key for (key,) in records]


def erase(
    db: Database, name: str, versions: Sequence[int], records: Sequence[str], ids: Sequence[str]
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


def empty(db: Database, log: Log, version: int) -> str:
    """Put checksums in the place of the body of an entry, and of the record that it took; that of the body."""
    at = key(log.id, version)
    body, taken, erased = db.execute(
        "SELECT body, taken, erased FROM entries WHERE key = ?", (at,)
    ).fetchone()
    sums: str = erased or sums_of(body, taken)
    db.execute("UPDATE entries SET body = ?, taken = NULL, erased = ? WHERE key = ?", (b"", sums, at))
    return sums.partition(" ")[0]


def bury(db: Database, log: Log, ids: Sequence[str], version: int) -> None:
    """Keep of ids only that they were there."""
    for id in ids:
        stone = tomb(log.salt, id)
        db.execute("DELETE FROM ids WHERE log = ? AND id = ?", (log.id, id))
        row = (log.id, stone, version, "", id_check(stone, version, ""))
        db.execute(BURY, row)


def is_due(db: Database) -> int:
    """How often something was erased whose bytes may still be there."""
    return counter(db, "erased")


def compacted(db: Database, done: int) -> None:
    """So many times they are not."""
    db.execute("UPDATE counters SET value = value - ? WHERE name = 'erased'", (done,))
