"""Snapshots as rows: parts first, each in a transaction that others can share, then the row that names them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import BinaryIO, NamedTuple

from feedrank.service.contract.faults import StoreUnavailable

from .. import damage
from ..interface import LAST, Position, Snapshot
from ..shared import collect, ended, genesis, portions, seal, unseal_large
from ..signals import Closed
from .database import Database, RunQuery, RunWrite
from .row_documents import count, remove
from .rows import (
    Log,
    chain_at,
    compare,
    create_log,
    drop_parts,
    drop_snapshots,
    key,
    load_log,
)

HEAVY = 256 * 1024  # bytes from which a write leaves the event loop
PART = 4 * 2**20  # bytes; a transaction each, so that what else is to be written need not wait for the whole
FORGET = 5_000  # versions whose ids and outcomes are forgotten at a save, so that none takes long


class Retention(NamedTuple):
    """How many snapshots stay, the first entry that stays, and the version up to which ids and outcomes are forgotten."""

    keep: int
    floor: int
    forget: int


def begin(db: Database, name: str, snapshot: Snapshot) -> tuple[int, str]:
    """(number of the upload, "") if the data is wanted; (0, digest) if a snapshot is there at this version, or not kept."""
    log = check(db, name, snapshot)
    digest = snapshot.digest if is_late(log, snapshot) else stored_digest(db, log, snapshot.version)
    return (0, digest) if digest is not None else (count(db, "upload", 1), "")


def is_late(log: Log, snapshot: Snapshot) -> bool:
    """Whether it may contain what a later entry retracted. Then it is not compared either: who saved it will hear of it."""
    return snapshot.version < log.retracted and snapshot.without < log.retracted


def write_part(db: Database, upload: int, number: int, data: bytes | memoryview) -> None:
    db.execute("INSERT INTO parts VALUES (?, ?)", ((upload << 20) + number, seal(data)))


def check(db: Database, name: str, snapshot: Snapshot) -> Log:
    """The log, if it takes this snapshot: it is open and has the same history."""
    log = load_log(db, name)
    if log.closed:
        raise Closed
    if snapshot.chain:
        compare(db, name, log, Position(snapshot.version, snapshot.chain))
    return log


def stored_digest(db: Database, log: Log, version: int) -> str | None:
    row = db.execute("SELECT digest FROM snapshots WHERE key = ?", (key(log.id, version),)).fetchone()
    return None if row is None else str(row[0])


def save(
    db: Database,
    name: str,
    snapshot: Snapshot,
    outcomes: Mapping[int, bytes],
    upload: tuple[int, int],
    retention: Retention,
) -> str:
    """Outcomes and the snapshot of an upload (its number and parts), in one transaction with what retention lets go."""
    log = check(db, name, snapshot)
    if not log.id:
        log = log._replace(id=create_log(db, name))
    late, digest = is_late(log, snapshot), stored_digest(db, log, snapshot.version)
    if not late and digest not in (None, snapshot.digest):
        drop_parts(db, upload[0])
        return str(digest)
    write_outcomes(db, log, outcomes)
    forget_ids(db, log, retention.forget)
    if digest is not None or late:
        drop_parts(db, upload[0])
        if late:
            return snapshot.digest
    else:
        check_parts(db, *upload)
        if log.version == 0 and snapshot.version > 0:
            if snapshot.version > LAST:
                raise ended(name)
            log = start(db, name, log, snapshot)
        chain = chain_at(db, log, snapshot.version)
        db.execute(
            "INSERT INTO snapshots VALUES (?, ?, ?, ?, ?, ?)",
            (key(log.id, snapshot.version), snapshot.digest, chain or "", *upload, snapshot.without),
        )
        if db.shared:
            db.tell("snapshot", name, snapshot.version)
    prune(db, log, retention.keep, retention.floor)
    return snapshot.digest


def check_parts(db: Database, number: int, parts: int) -> None:
    """All parts are there: of a writer whose connection was lost meanwhile, another process may have removed some."""
    low, high = number << 20, (number + 1) << 20
    (there,) = db.execute("SELECT count(*) FROM parts WHERE key >= ? AND key < ?", (low, high)).fetchone()
    if there != parts:
        raise StoreUnavailable("parts of the snapshot were lost on their way: it is saved again later")


def keep_outcomes(db: Database, name: str, outcomes: Mapping[int, bytes]) -> None:
    log = load_log(db, name)
    if log.closed:
        raise Closed
    if log.id:
        write_outcomes(db, log, outcomes)


def write_outcomes(db: Database, log: Log, outcomes: Mapping[int, bytes]) -> None:
    """Keep the first outcome of each entry, unless it was to be forgotten."""
    db.executemany(
        "INSERT INTO outcomes VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(key(log.id, version), seal(data)) for version, data in outcomes.items() if version > log.forgotten],
    )


def start(db: Database, name: str, log: Log, snapshot: Snapshot) -> Log:
    """An empty log begins after a snapshot."""
    chain = genesis(name, snapshot.version, snapshot.digest)
    db.execute(
        "UPDATE logs SET version = ?, floor = ?, chain = ?, root = ? WHERE id = ?",
        (snapshot.version, snapshot.version + 1, chain, chain, log.id),
    )
    return log._replace(version=snapshot.version, floor=snapshot.version + 1, chain=chain, root=chain)


def prune(db: Database, log: Log, keep: int, floor: int) -> None:
    """Keep the newest snapshots, and the entries from `floor` or from the oldest kept snapshot on."""
    low, high = key(log.id, 0), key(log.id + 1, 0)
    kept = db.execute(
        "SELECT key FROM snapshots WHERE key > ? AND key < ? ORDER BY key DESC LIMIT ?", (low, high, keep)
    ).fetchall()
    oldest = kept[-1][0]
    with db.unzeroed():
        drop_snapshots(db, low, oldest)
    floor = min(floor, oldest - low + 1)
    if floor > log.floor:
        root = chain_at(db, log, floor - 1)
        db.execute("DELETE FROM entries WHERE key > ? AND key < ?", (low, key(log.id, floor)))
        db.execute("UPDATE logs SET floor = ?, root = ? WHERE id = ?", (floor, root, log.id))


def forget_ids(db: Database, log: Log, forget: int) -> None:
    """Let go of ids and outcomes up to a version, some at a time."""
    upto = min(forget, log.version, log.forgotten + FORGET)
    if upto <= log.forgotten:
        return
    db.execute("DELETE FROM ids WHERE log = ? AND version <= ?", (log.id, upto))
    db.execute("DELETE FROM outcomes WHERE key > ? AND key <= ?", (key(log.id, 0), key(log.id, upto)))
    db.execute("UPDATE logs SET forgotten = ? WHERE id = ?", (upto, log.id))


def drop(db: Database, name: str) -> None:
    """Remove everything of a log and leave it closed for good."""
    db.execute("INSERT INTO logs (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))
    (number,) = db.execute("SELECT id FROM logs WHERE name = ?", (name,)).fetchone()
    low, high = key(number, 0), key(number + 1, 0)
    drop_snapshots(db, low, high)
    db.execute("DELETE FROM entries WHERE key >= ? AND key < ?", (low, high))
    db.execute("DELETE FROM outcomes WHERE key >= ? AND key < ?", (low, high))
    db.execute("DELETE FROM ids WHERE log = ?", (number,))
    db.execute("DELETE FROM records WHERE log = ?", (name,))
    db.execute(
        "UPDATE logs SET closed = 1, version = 0, floor = 1, retracted = 0, chain = '', root = '', forgotten = 0,"
        " salt = '', revisions = '' WHERE id = ?",
        (number,),
    )
    if db.shared:
        db.tell("log", name, 0)


def discard(db: Database, kind: str, document: str, revision: int, name: str) -> None:
    """Remove a document and its log."""
    remove(db, kind, document, revision)
    drop(db, name)


def find_snapshot(db: Database, name: str, version: int) -> tuple[str, str, int, int, int] | None:
    """(digest, chain, upload, number of parts, without)."""
    row: tuple[str, str, int, int, int] | None = db.execute(
        "SELECT digest, chain, upload, parts, without FROM snapshots"
        " WHERE key = (SELECT (id << 32) + ? FROM logs WHERE name = ?)",
        (version, name),
    ).fetchone()
    return row


def read_part(db: Database, upload: int, number: int, version: int) -> memoryview | None:
    """One part; None if the snapshot was dropped meanwhile."""
    row = db.execute("SELECT data FROM parts WHERE key = ?", ((upload << 20) + number,)).fetchone()
    return None if row is None else unseal_large(row[0], damage.snapshot(version))


async def upload(
    write: RunWrite, name: str, snapshot: Snapshot, outcomes: Mapping[int, bytes], retention: Retention
) -> str:
    """Save part by part; what does not come to its end leaves nothing behind."""
    number, digest = await write(lambda db: begin(db, name, snapshot))
    if digest not in ("", snapshot.digest):
        return digest
    parts = 0
    try:
        async for part in portions(snapshot.data if number else b"", PART):
            await write(
                partial(write_part, upload=number, number=parts, data=part),
                heavy=len(part) > HEAVY,
                size=len(part),
            )
            parts += 1
        return await write(
            lambda db: save(db, name, snapshot, outcomes, (number, parts), retention),
            heavy=len(outcomes) > 100,
        )
    except BaseException:
        if parts:
            await write(lambda db: drop_parts(db, number))
        raise


async def whole(query: RunQuery, name: str, version: int, out: BinaryIO | None) -> Snapshot | None:
    """The snapshot at this version, if all of it is there."""
    row = await query(lambda db: find_snapshot(db, name, version))
    if row is None:
        return None
    digest, chain, upload, total, without = row
    data = await collect(parts(query, upload, total, version), total, out)
    return None if data is None else Snapshot(version, digest, data, chain, without)


async def parts(query: RunQuery, upload: int, total: int, version: int) -> AsyncIterator[memoryview]:
    """The data of a snapshot, part by part, as far as it is there."""
    for number in range(total):
        part = await query(partial(read_part, upload=upload, number=number, version=version))
        if part is None:
            return
        yield part


def trial(db: Database, size: int) -> None:
    """Write so many bytes for good, in the place of those of the trial before: what is rolled back meets no full disk."""
    row = db.execute("SELECT max(id) FROM trial").fetchone()
    db.execute("INSERT INTO trial (data) VALUES (?)", (os.urandom(size),))
    db.execute("DELETE FROM trial WHERE id = ?", (row[0],))
    count(db, "check", 1)
