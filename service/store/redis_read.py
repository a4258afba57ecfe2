"""Reading from Redis, everything checked against its checksum."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from . import keys
from .damage import chain_changed, checked_id, ends_early, outcome, part_missing, snapshot, unfit_retraction
from .interface import Document, Entry, Head, Placement
from .redis_pipes import Pipes
from .redis_records import is_live, unpack
from .shared import check_entries, erased, genesis, tomb, unseal
from .signals import Clash, Closed, Damaged, Diverged, Missing, Stale, Trimmed

PAGE = 500
STATE = ("version", "floor", "root", "chain", "retracted", "closed")
ENDS = (STATE.index("floor"), STATE.index("closed"))


def entry(id: bytes, fields: dict[bytes, bytes], retracted: bytes | None = None) -> Entry:
    return Entry(
        int(id.partition(b"-")[0]),
        float(fields.get(b"a", b"nan")),
        fields.get(b"b", b""),
        fields.get(b"t"),
        int(retracted or 0),
        int(fields.get(b"r", 0)),
        fields.get(b"c", b"").decode(errors="replace"),
        erased=fields.get(b"e", b"").decode(errors="replace"),
    )


async def read(pipes: Pipes, log: str, after: int, limit: int, chain: str | None) -> list[Entry]:
    """Entries after a version, with the one at it for its chain, on one round trip (two where something was retracted).

    The commands of a reading are not one transaction: what is dropped or trimmed between them looks like another history
    or like damage. So a reading that fails counts only if neither has happened meanwhile.
    """
    meta, stream = keys.log(log, "meta"), keys.log(log, "log")
    while True:
        state, rows = await pipes.many(
            [
                (meta, "HMGET", meta, *STATE),
                (stream, "XRANGE", stream, f"{max(after, 0)}-0", "+", "COUNT", limit + 1),
            ]
        )
        try:
            return await interpret(pipes, log, after, limit, chain, state, rows)
        except (Damaged, Diverged):
            again = await pipes.run(meta, "HMGET", meta, *STATE)
            if [again[i] for i in ENDS] == [state[i] for i in ENDS]:
                raise


async def interpret(
    pipes: Pipes,
    log: str,
    after: int,
    limit: int,
    chain: str | None,
    state: Sequence[bytes | None],
    rows: Sequence[tuple[bytes, dict[bytes, bytes]]],
) -> list[Entry]:
    """The entries of one reading, checked."""
    version, floor, retracted = int(state[0] or 0), int(state[1] or 1), int(state[4] or 0)
    root, head = ((value or genesis(log).encode()).decode() for value in state[2:4])
    if state[5] is not None:
        return []
    if after + 1 < floor:
        raise Trimmed
    entries = [entry(*row) for row in rows]
    previous = head if after == version else None
    if entries and entries[0].version == after:
        previous = entries.pop(0).chain
    elif after == floor - 1:
        previous = root
    if chain is not None and (after > version or previous != chain):
        raise Diverged(log, after, version)
    if entries and previous is None:  # a trim since the state was read shows as a gap
        raise Trimmed
    checked = check_entries(entries[:limit], after, previous)
    return await retractions(pipes, log, floor, checked) if retracted and checked else checked


async def retractions(pipes: Pipes, log: str, floor: int, entries: Sequence[Entry]) -> list[Entry]:
    """The entries with what retracted them. A retraction is written at both of its entries; each must name the other."""
    table, stream = keys.log(log, "retracted"), keys.log(log, "log")
    marks = await pipes.run(table, "HMGET", table, *(entry.version for entry in entries))
    result = []
    for one, mark in zip(entries, marks, strict=True):
        by = int(mark or 0)
        if by:
            rows = await pipes.run(stream, "XRANGE", stream, f"{by}-0", f"{by}-0")
            if not rows or entry(*rows[0]).retracts != one.version:
                raise unfit_retraction(one.version, by)
        if one.retracts >= floor and not await pipes.run(table, "HGET", table, one.retracts):
            raise unfit_retraction(one.version, one.retracts)
        result.append(replace(one, retracted=by))
    return result


def placements(what: str, rest: Sequence[str]) -> list[Placement]:
    """What the script says of an append."""
    match what:
        case "placed":
            previous, at, result = rest[0], float(rest[1]), []
            for version, fresh, chain in zip(rest[2::3], rest[3::3], rest[4::3], strict=True):
                if fresh == "1":
                    result.append(Placement(int(version), True, chain, previous, at))
                    previous = chain
                else:
                    result.append(Placement(int(version), False))
            return result
        case "clash":
            raise Clash(int(rest[0]))
        case "missing":
            raise Missing(int(rest[0]))
        case "stale":
            raise Stale
        case "trimmed":
            raise Trimmed
        case "damaged":
            raise Damaged(0, f"the row of an id of draft {rest[0]} has changed since it was written")
    raise Closed


async def head(pipes: Pipes, log: str) -> Head:
    meta, snapshots = keys.log(log, "meta"), keys.log(log, "snapshots")
    (version, floor, closed, chain, retracted, revisions), versions = await pipes.many(
        [
            (meta, "HMGET", meta, "version", "floor", "closed", "chain", "retracted", "revisions"),
            (snapshots, "HKEYS", snapshots),
        ]
    )
    return Head(
        int(version or 0),
        int(floor or 1),
        tuple(sorted(map(int, versions))),
        closed is not None,
        (chain or b"").decode(),
        int(retracted or 0),
        tuple(map(int, (revisions or b"").split())),
    )


async def find(pipes: Pipes, log: str, id: str) -> tuple[int, str] | None:
    name = keys.log(log, "ids")
    row: bytes | None = await pipes.run(name, "HGET", name, id)
    if row is None and await is_erased(pipes, log, id):
        raise erased(id)
    return None if row is None else check_id(id, row)


async def is_erased(pipes: Pipes, log: str, id: str) -> bool:
    meta, name = keys.log(log, "meta"), keys.log(log, "ids")
    salt: bytes | None = await pipes.run(meta, "HGET", meta, "salt")
    return salt is not None and bool(await pipes.run(name, "HEXISTS", name, tomb(salt.decode(), id)))


def check_id(id: str, row: bytes) -> tuple[int, str]:
    version, check, digest = (*row.decode(errors="replace").split(" ", 2), "", "")[:3]
    return checked_id(id, version, digest, check)


class SnapshotRow(NamedTuple):
    """Where a snapshot is: `parts` parts of an upload."""

    digest: str
    chain: str
    without: int
    upload: str
    parts: int


async def load_snapshot(pipes: Pipes, log: str, version: int) -> SnapshotRow | None:
    name = keys.log(log, "snapshots")
    row: bytes | None = await pipes.run(name, "HGET", name, version)
    if row is None:
        return None
    digest, chain, without, upload, number = row.decode().split(" ")
    return SnapshotRow(digest, chain, int(without), upload, int(number))


async def read_part(pipes: Pipes, log: str, upload: str, number: int, version: int) -> bytes | None:
    """One part; None if the snapshot was dropped meanwhile."""
    name = keys.part(log, upload, number)
    row: bytes | None = await pipes.alone(name, "GET", name)
    return None if row is None else unseal(row, snapshot(version))


async def parts(pipes: Pipes, log: str, version: int, row: SnapshotRow) -> AsyncIterator[bytes]:
    """The data of a snapshot, part by part, as far as it is there."""
    for number in range(row.parts):
        part = await read_part(pipes, log, row.upload, number, version)
        if part is None:
            return
        yield part


def document(kind: str, name: str, row: bytes) -> Document:
    revision, _, value = row.partition(b" ")
    return Document(unseal(value, f"the document {kind}/{name}"), int(revision))


async def examine(pipes: Pipes, log: str) -> list[str]:
    """One line for each thing that has changed since it was written."""
    problems: list[str] = []
    meta = keys.log(log, "meta")
    version, floor, chain = await pipes.run(meta, "HMGET", meta, "version", "floor", "chain")
    after, last = int(floor or 1) - 1, b""
    try:
        while page := await read(pipes, log, after, PAGE, None):
            after, last = page[-1].version, page[-1].chain.encode()
        if after != int(version or 0):
            problems.append(ends_early(after, int(version or 0)))
        elif last and last != chain:
            problems.append(chain_changed(after))
    except (Damaged, Trimmed) as damage:
        problems.append(str(damage) or "the log does not reach back to its first entry")
    snapshots = keys.log(log, "snapshots")
    for at in sorted(map(int, await pipes.run(snapshots, "HKEYS", snapshots))):
        problems += await examine_snapshot(pipes, log, at)
    for part, check in (("outcomes", check_outcome), ("records", check_record), ("ids", check_id_row)):
        name, cursor = keys.log(log, part), 0
        while True:
            cursor, rows = await pipes.run(name, "HSCAN", name, cursor, "COUNT", PAGE)
            for field, row in rows.items():
                try:
                    check(field.decode(errors="replace"), row)
                except Damaged as damage:
                    problems.append(str(damage))
            if not int(cursor):
                break
    return problems


async def examine_snapshot(pipes: Pipes, log: str, version: int) -> list[str]:
    try:
        row = await load_snapshot(pipes, log, version)
        for number in range(row.parts if row else 0):
            if row and await read_part(pipes, log, row.upload, number, version) is None:
                return [part_missing(number, version)]
    except (Damaged, ValueError) as damage:
        return [str(damage)]
    return []


def check_outcome(version: str, row: bytes) -> None:
    unseal(row, outcome(version))


def check_record(name: str, row: bytes) -> None:
    if is_live(row):
        unpack(row, name)


def check_id_row(id: str, row: bytes) -> None:
    check_id(id, row)
