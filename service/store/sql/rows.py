"""Rows of logs, inside the writer's transaction. A function checks first and writes then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..damage import checked_id, unfit_retraction
from ..damage import outcome as outcome_of
from ..interface import LAST, Draft, Entry, Head, Placement, Position
from ..shared import check_entries, checksum, ended, erased, genesis, id_check, link, seal, tomb, unseal
from ..signals import Clash, Closed, Diverged, Missing, Stale, Trimmed
from .database import Database

FEW = 8  # drafts whose ids are looked for one by one


class Log(NamedTuple):
    """A row of `logs`; a log that is not there has id 0."""

    id: int
    version: int
    floor: int
    retracted: int
    closed: int
    chain: str
    root: str
    at: float
    forgotten: int
    salt: str


def key(log: int, version: int) -> int:
    """Where an entry is in the one tree of all logs."""
    return (log << 32) + version


def load_log(db: Database, name: str) -> Log:
    row = db.execute(
        "SELECT id, version, floor, retracted, closed, chain, root, at, forgotten, salt FROM logs WHERE name = ?",
        (name,),
    ).fetchone()
    start = genesis(name) if row is None or not row[6] else row[6]
    if row is None:
        return Log(0, 0, 1, 0, 0, start, start, 0.0, 0, "")
    return Log(*row)._replace(chain=row[5] or start, root=start)


def head(db: Database, name: str) -> Head:
    row = db.execute(
        "SELECT id, version, floor, closed, chain, retracted, revisions FROM logs WHERE name = ?", (name,)
    ).fetchone()
    if row is None:
        return Head()
    number, version, floor, closed, chain, retracted, revisions = row
    rows = db.execute(
        "SELECT key - ? FROM snapshots WHERE key > ? AND key < ? ORDER BY key",
        (key(number, 0), key(number, 0), key(number + 1, 0)),
    )
    snapshots, chain = tuple(v for (v,) in rows), chain if version else ""
    return Head(version, floor, snapshots, bool(closed), chain, retracted, tuple(map(int, revisions.split())))


def positions(db: Database, names: Sequence[str]) -> list[Position]:
    one_of, values = db.among("name", names)
    found = {
        name: Position(version, chain)
        for name, version, chain in db.execute(
            f"SELECT name, version, chain FROM logs WHERE version > 0 AND {one_of}",  # noqa: S608
            (values,),
        )
    }
    return [found.get(name) or Position(0, "") for name in names]


def outcome(db: Database, name: str, version: int) -> bytes | None:
    row = db.execute(
        "SELECT value FROM outcomes WHERE key = (SELECT (id << 32) + ? FROM logs WHERE name = ?)",
        (version, name),
    ).fetchone()
    return None if row is None else unseal(row[0], outcome_of(version), version)


def create_log(db: Database, name: str) -> int:
    start = genesis(name)
    (number,) = db.execute(
        "INSERT INTO logs (name, chain, root) VALUES (?, ?, ?) RETURNING id", (name, start, start)
    ).fetchone()
    return int(number)


def chain_at(db: Database, log: Log, version: int) -> str | None:
    """The chain at a version; None where the log does not reach, or no longer."""
    if version == log.version:
        return log.chain
    if version == log.floor - 1:
        return log.root
    if not log.floor <= version < log.version:
        return None
    return written_chain(db, log, version)


def written_chain(db: Database, log: Log, version: int) -> str | None:
    """The chain that the entry at a version has, if there is one."""
    row = db.execute("SELECT chain FROM entries WHERE key = ?", (key(log.id, version),)).fetchone()
    return None if row is None else str(row[0])


def compare(db: Database, name: str, log: Log, position: Position) -> None:
    """Diverged unless the log has this chain at this version, as far as it can tell."""
    if position.version > log.version or (
        position.version >= log.floor - 1 and chain_at(db, log, position.version) != position.chain
    ):
        raise Diverged(name, position.version, log.version)


def append(
    db: Database, name: str, drafts: Sequence[Draft], expected: Position | None, now: float
) -> list[Placement]:
    """All drafts, each once, or none."""
    log = load_log(db, name)
    if log.closed:
        raise Closed
    if expected is not None:
        compare(db, name, log, expected)
    at = max(now, log.at)
    last, chain = log.version, log.chain
    many = find_all(db, log, drafts) if len(drafts) > FEW and log.id else None
    new: dict[str, tuple[int, str]] = {}
    placements: list[Placement] = []
    fresh: list[tuple[Draft, Placement, bytes | None]] = []
    for index, draft in enumerate(drafts):
        if draft.ids and (seen := earlier(db, log, draft, new, many, index)):
            placements.append(Placement(seen, False))
            continue
        record = None
        if draft.take is not None:
            record = load_record(db, name, draft.take, now)
            if record is None:
                raise Missing(index)
            if draft.expects is not None and record != draft.expects:
                raise Stale
        if (draft.retracts or draft.revises) and not reaches(db, log, draft.base):
            raise Trimmed
        last += 1
        if last > LAST:
            raise ended(name)
        taken_sum = None if record is None else checksum(record)
        following = link(chain, last, at, checksum(draft.body), taken_sum, draft.retracts)
        placements.append(Placement(last, True, following, chain, at))
        fresh.append((draft, placements[-1], record))
        chain = following
        if draft.ids:
            new.update(dict.fromkeys(draft.ids, (last, draft.digest)))
    if last == log.version:
        return placements
    number = log.id or create_log(db, name)
    write(db, number, fresh)
    retracted = log.retracted
    for draft, place, _ in fresh:
        if draft.take is not None:
            take_record(db, name, draft.take, place.version)
        if draft.retracts:
            retracted = place.version
            retract(db, number, draft.retracts, place.version)
        if draft.revises:
            retracted = place.version
            revise(db, number, draft.base, place.version)
    db.execute(
        "UPDATE logs SET version = ?, chain = ?, at = ?, retracted = ? WHERE id = ?",
        (last, chain, at, retracted, number),
    )
    if db.shared:
        db.tell("log", name, last)
    return placements


def earlier(
    db: Database,
    log: Log,
    draft: Draft,
    new: dict[str, tuple[int, str]],
    many: dict[str, tuple[int, str]] | None,
    index: int,
) -> int:
    """The version at which a draft is already there, else 0; Clash if it says something else."""
    version = 0
    for id in draft.ids:
        seen = new.get(id)
        if seen is None and log.id:
            seen = find(db, log, id) if many is None else many.get(id)
        if seen is None:
            continue
        if seen[1] != draft.digest or version not in (0, seen[0]):
            raise Clash(index)
        version = seen[0]
    return version


def write(db: Database, log: int, fresh: Sequence[tuple[Draft, Placement, bytes | None]]) -> None:
    """Entries, each with the record that it takes, and their ids."""
    first = key(log, 0)
    db.executemany(
        "INSERT INTO entries (key, at, body, taken, retracts, chain) VALUES (?, ?, ?, ?, ?, ?)",
        [(first + at.version, at.at, one.body, taken, one.retracts, at.chain) for one, at, taken in fresh],
    )
    named = [(id, at.version, one.digest) for one, at, _ in fresh for id in one.ids]
    if named:
        rows = [(log, *row, id_check(*row)) for row in named]
        db.executemany("INSERT INTO ids VALUES (?, ?, ?, ?, ?)", rows)


def retract(db: Database, log: int, version: int, by: int) -> None:
    """Let an entry be retracted by a later one, and drop the snapshots that contain it."""
    db.execute("UPDATE entries SET retracted = ? WHERE key = ?", (by, key(log, version)))
    drop_snapshots(db, key(log, version), key(log + 1, 0))


def revise(db: Database, log: int, base: int, by: int) -> None:
    """Let an entry change how others are read, and drop the snapshots of the old reading."""
    db.execute("UPDATE logs SET revisions = revisions || ? WHERE id = ?", (f" {by}", log))
    drop_snapshots(db, key(log, base + 1), key(log + 1, 0))


def drop_parts(db: Database, upload: int) -> None:
    """All parts of an upload."""
    db.execute("DELETE FROM parts WHERE key >= ? AND key < ?", (upload << 20, (upload + 1) << 20))


def drop_snapshots(db: Database, low: int, high: int) -> None:
    """Those from key `low` on, before `high`, with their parts."""
    for (upload,) in db.execute(
        "SELECT upload FROM snapshots WHERE key >= ? AND key < ?", (low, high)
    ).fetchall():
        drop_parts(db, upload)
    db.execute("DELETE FROM snapshots WHERE key >= ? AND key < ?", (low, high))


def find(db: Database, log: Log, id: str) -> tuple[int, str] | None:
    row = db.execute(
        "SELECT version, digest, guard FROM ids WHERE log = ? AND id = ?", (log.id, id)
    ).fetchone()
    if row is None:
        if log.salt and find(db, log._replace(salt=""), tomb(log.salt, id)):
            raise erased(id)
        return None
    version, digest, guard = row
    return checked_id(id, version, str(digest), guard)


def find_all(db: Database, log: Log, drafts: Sequence[Draft]) -> dict[str, tuple[int, str]]:
    """Of all ids of these drafts those that are there, in one statement; Gone if one was erased."""
    ids = [id for draft in drafts for id in draft.ids]
    statement = "SELECT id, version, digest, guard FROM ids WHERE log = ? AND "
    one_of, values = db.among("id", ids)
    rows = db.execute(statement + one_of, (log.id, values)).fetchall()
    there = {id: checked_id(id, version, str(digest), guard) for id, version, digest, guard in rows}
    if log.salt:
        stones = {tomb(log.salt, id): id for id in ids if id not in there}
        one_of, values = db.among("id", list(stones))
        for stone, *_ in db.execute(statement + one_of, (log.id, values)).fetchall():
            raise erased(stones[stone])
    return there


def reaches(db: Database, log: Log, base: int) -> bool:
    """Whether the log can be folded again from `base` on."""
    row = db.execute("SELECT 1 FROM snapshots WHERE key = ?", (key(log.id, base),)).fetchone()
    return log.id > 0 and log.floor <= base + 1 and (base == 0 or row is not None)


def read(db: Database, name: str, after: int, limit: int, chain: str | None) -> list[Entry]:
    """Entries after a version, each checked against the one before it."""
    log = load_log(db, name)
    if log.closed:
        return []
    if after + 1 < log.floor:
        raise Trimmed
    if chain is not None:
        compare(db, name, log, Position(after, chain))
    previous = chain_at(db, log, after)
    rows = db.execute(
        "SELECT key - ?, at, body, taken, retracted, retracts, chain, '', erased FROM entries WHERE key > ? AND key < ?"
        " ORDER BY key LIMIT ?",
        (key(log.id, 0), key(log.id, after), key(log.id + 1, 0), limit),
    ).fetchall()
    entries = check_entries([Entry(*row) for row in rows], after, previous)
    if entries and log.retracted:
        for entry in entries:
            check_retraction(db, log, entry)
    return entries


def check_retraction(db: Database, log: Log, entry: Entry) -> None:
    """A retraction is written at both of its entries; each must name the other."""
    for column, other in (("retracts", entry.retracted), ("retracted", entry.retracts)):
        if not other or other < log.floor:
            continue
        row = db.execute(f"SELECT {column} FROM entries WHERE key = ?", (key(log.id, other),)).fetchone()  # noqa: S608
        if row is None or (row[0] != entry.version and column == "retracts") or row[0] == 0:
            raise unfit_retraction(entry.version, other)


def load_record(db: Database, log: str, name: str, now: float) -> bytes | None:
    """A record that can be taken."""
    row = db.execute(
        "SELECT value FROM records WHERE log = ? AND key = ? AND expires > ? AND taken = 0", (log, name, now)
    ).fetchone()
    return None if row is None else unseal(row[0], f"the record {name!r}")


def take_record(db: Database, log: str, name: str, version: int) -> None:
    """Remove what an entry has taken; of one with a digest, that it was there is kept for repeats."""
    db.execute("DELETE FROM records WHERE log = ? AND key = ? AND digest = ''", (log, name))
    db.execute(
        "UPDATE records SET taken = ?, due = NULL, rank = NULL, mark = NULL, value = ? WHERE log = ? AND key = ?",
        (version, seal(b""), log, name),
    )
