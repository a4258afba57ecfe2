"""Looking at every byte of a log in rows."""

from __future__ import annotations

from ..damage import chain_changed, checked_id, ends_early, outcome, part_missing, snapshot
from ..shared import unseal
from ..signals import Damaged, Trimmed
from .database import Database
from .rows import chain_at, key, load_log, read, written_chain
from .snapshots import find_snapshot, read_part

PAGE = 500


def examine(db: Database, name: str) -> list[str]:
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
            problems.append(ends_early(after, log.version))
        elif chain_at(db, log, after) != (written_chain(db, log, after) or log.root):
            problems.append(chain_changed(after))
    except (Damaged, Trimmed) as damage:
        problems.append(str(damage))
    for (version,) in db.execute(
        "SELECT key - ? FROM snapshots WHERE key >= ? AND key < ?", (low, low, high)
    ):
        problems += examine_snapshot(db, name, version, chain_at(db, log, version))
    for version, value in db.execute(
        "SELECT key - ?, value FROM outcomes WHERE key >= ? AND key < ?", (low, low, high)
    ):
        problems += sealed(value, outcome(version))
    for record, value in db.execute("SELECT key, value FROM records WHERE log = ?", (name,)):
        problems += sealed(value, f"the record {record}")
    for id, version, digest, guard in db.execute(
        "SELECT id, version, digest, guard FROM ids WHERE log = ?", (log.id,)
    ):
        try:
            checked_id(id, version, digest, guard)
        except Damaged as damage:
            problems.append(str(damage))
    return problems


def examine_snapshot(db: Database, name: str, version: int, chain: str | None) -> list[str]:
    _, at, upload, parts, _ = find_snapshot(db, name, version) or ("", "", 0, 0, 0)
    problems = [] if chain in (None, at) else [f"{snapshot(version)} is of another history"]
    try:
        for number in range(parts):
            if read_part(db, upload, number, version) is None:
                problems.append(part_missing(number, version))
    except Damaged as damage:
        problems.append(str(damage))
    return problems


def sealed(value: bytes, what: str) -> list[str]:
    try:
        unseal(value, what)
    except Damaged as damage:
        return [str(damage)]
    return []
