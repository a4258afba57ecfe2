"""Looking at every byte of a log in SQLite."""

from __future__ import annotations

import sqlite3

from .shared import id_check, unseal
from .signals import Damaged, Trimmed
from .sqlite_rows import chain_at, key, load_log, read
from .sqlite_snapshots import find_snapshot, read_part

PAGE = 500


def examine(db: sqlite3.Connection, name: str) -> list[str]:
    """One line for each thing that has changed since it was written."""
    log = load_log(db, name)
    low, high = key(log.id, 0), key(log.id + 1, 0)
    problems: list[str] = []
    if not log.id:
        return problems
    after = log.floor - 1
    try:
        while page := read(db, name, after, PAGE, None):
            after = page[-1].version
        if after != log.version:
            problems.append(f"the log ends at version {after} and should at {log.version}")
        elif chain_at(db, log, after) != (page_chain(db, log.id, after) or log.root):
            problems.append(f"the chain at version {after} has changed since it was written")
    except (Damaged, Trimmed) as damage:
        problems.append(str(damage))
    for (version,) in db.execute(
        "SELECT key - ? FROM snapshots WHERE key >= ? AND key < ?", (low, low, high)
    ):
        problems += examine_snapshot(db, name, version, chain_at(db, log, version))
    for sql, what in (
        (
            "SELECT 'the outcome of entry ' || (key - :low), value FROM outcomes WHERE key >= :low AND key < :high",
            "",
        ),
        ("SELECT 'the record ' || key, value FROM records WHERE log = :name", ""),
    ):
        for label, value in db.execute(sql, {"low": low, "high": high, "name": name}):
            problems += sealed(value, what + label)
    for id, version, digest, guard in db.execute(
        "SELECT id, version, digest, guard FROM ids WHERE log = ?", (log.id,)
    ):
        if id_check(id, version, digest) != guard:
            problems.append(f"the row of the id {id!r} has changed since it was written")
    return problems


def page_chain(db: sqlite3.Connection, log: int, version: int) -> str | None:
    row = db.execute("SELECT chain FROM entries WHERE key = ?", (key(log, version),)).fetchone()
    return None if row is None else str(row[0])


def examine_snapshot(db: sqlite3.Connection, name: str, version: int, chain: str | None) -> list[str]:
    _, at, upload, parts, _ = find_snapshot(db, name, version) or ("", "", 0, 0, 0)
    problems = [] if chain in (None, at) else [f"the snapshot at version {version} is of another history"]
    try:
        for number in range(parts):
            if read_part(db, upload, number, version) is None:
                problems.append(f"part {number} of the snapshot at version {version} is missing")
    except Damaged as damage:
        problems.append(str(damage))
    return problems


def sealed(value: bytes, what: str) -> list[str]:
    try:
        unseal(value, what)
    except Damaged as damage:
        return [str(damage)]
    return []
