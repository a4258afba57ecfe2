"""Bringing layouts 1 (no chains, no checksums), 2 and 3 (no identity) up to date, while releases that know them may run.

    1   the layout's version is written: no older release starts on this store any more
    2   documents are moved to the names of this layout, and TOMB takes their place: nothing new begins under the old ones
    3   log by log, those that a document names and all others: chains (layouts 1 and 2), then moved in one step, with tombs
    4   until nothing is left under an old name; then the store's identity is renewed, and `feedrank:upgraded` says so

A release that runs on writes a log as it was until its step 3, and is refused from then on: what it was told is kept. Each
log is upgraded by itself and found by its entries or its records, so that an upgrade that was stopped goes on where it was.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import orjson

from feedrank.service.contract.faults import StoreUnavailable

from . import keys
from .redis_pipes import Argument, Pipes, Script
from .shared import LENGTH, checksum, genesis, id_check, link, seal

PAGE = 500
TOMBS = 30 * 86_400  # seconds that tombs last: no older release runs for longer beside a newer one
LOCKED = 60  # seconds that the right to upgrade is kept without a sign of life
MOVE = Script("move")
STREAMS = ("meta", "records")  # a log has one of them at least


async def upgrade(pipes: Pipes) -> None:
    """All logs and documents, by one process at a time; others wait until it is done."""
    while not await pipes.run(keys.UPGRADE, "SET", keys.UPGRADE, 1, "NX", "EX", LOCKED):
        await asyncio.sleep(0.1)
    try:
        if int(await pipes.run(keys.UPGRADED, "GET", keys.UPGRADED) or 0) >= keys.LAYOUT:
            return
        before = await pipes.run(keys.UPGRADED, "GET", keys.UPGRADED)
        layout = int(before or await pipes.run(keys.FORMAT, "GET", keys.FORMAT))
        # Kept for whoever goes on after a kill: from now on the format says only who may start.
        await pipes.run(keys.UPGRADED, "SET", keys.UPGRADED, layout)
        await pipes.run(keys.FORMAT, "SET", keys.FORMAT, keys.LAYOUT, write=True)
        async for name in old_names(pipes, ("values",)):
            if layout < 3:
                await reseal(pipes, keys.older(name, "values"), keep=b" ")
            await move(pipes, name, keys.DOCUMENTS, ("values", "names", "revision"))
        for name in await named_logs(pipes):
            if layout >= 3:  # those of older ones have no records without entries
                await move(pipes, name, keys.PARTS, STREAMS)
        while [name async for name in old_names(pipes, STREAMS)]:
            async for name in old_names(pipes, STREAMS):
                if layout < 3:
                    await upgrade_log(pipes, name)
                await move(pipes, name, keys.PARTS, STREAMS)
                await pipes.run(keys.UPGRADE, "EXPIRE", keys.UPGRADE, LOCKED)
        await pipes.run("feedrank:due", "DEL", "feedrank:due")
        await pipes.run(keys.STORE, "DEL", keys.STORE)
        await pipes.run(keys.UPGRADED, "SET", keys.UPGRADED, keys.LAYOUT, write=True)
    finally:
        await pipes.run(keys.UPGRADE, "DEL", keys.UPGRADE)


async def old_names(pipes: Pipes, parts: tuple[str, ...]) -> AsyncIterator[str]:
    """What still has a key under its old name, and no tomb there."""
    for node in await pipes.nodes.names():
        client = pipes.nodes.client(node)
        for part in parts:
            kind = "zset" if part == "names" else "hash"
            async for key in client.scan_iter(match=f"feedrank:{{*}}:{part}", count=PAGE, _type=kind):
                name = keys.name_of(key.decode())
                if name.startswith("documents:") == (part in keys.DOCUMENTS):
                    yield name


async def named_logs(pipes: Pipes) -> list[str]:
    """The logs that documents name: one without entries and records is known by nothing else."""
    logs = []
    for node in await pipes.nodes.names():
        client = pipes.nodes.client(node)
        async for key in client.scan_iter(match=keys.documents("*", "values"), count=PAGE):
            for _, row in await scan(pipes, key.decode()):
                value = None
                with contextlib.suppress(orjson.JSONDecodeError):  # then it names none
                    value = orjson.loads(row.partition(b" ")[2][LENGTH:])
                if isinstance(value, dict) and "log" in value:
                    logs.append(str(value["log"]))
    return logs


async def move(pipes: Pipes, name: str, parts: tuple[str, ...], tombs: tuple[str, ...]) -> None:
    """All keys of a log, or of a kind of documents, to their names of now, in one step."""
    prefix = keys.older(name, "")
    arguments: list[Argument] = [
        prefix,
        keys.log(name, ""),
        keys.TOMB,
        TOMBS,
        name,
        len(parts),
        *parts,
        *tombs,
    ]
    reply = await pipes.run(prefix, *MOVE.call([prefix], arguments))
    if reply:  # the earliest time at which a record of it falls due
        await pipes.run(keys.DUE, "ZADD", keys.DUE, "LT", reply, name, write=True)


async def upgrade_log(pipes: Pipes, log: str) -> None:
    meta, stream, fresh = (keys.older(log, part) for part in ("meta", "log", "upgrade"))
    floor, marked, closed, chain, newest = await pipes.run(
        meta, "HMGET", meta, "floor", "marked", "closed", "chain", "retracted"
    )
    if closed is not None:
        return
    if chain is not None:
        await add_without(pipes, log, int(newest or 0))
        return
    old_marks, retracted = keys.older(log, "marks"), keys.older(log, "retracted")
    marks = {
        int(version): int(by) for version, by in (await pipes.run(old_marks, "HGETALL", old_marks)).items()
    }
    retracts = {by: version for version, by in marks.items()}
    after = int(floor or 1) - 1
    root = chain = genesis(log, after)
    chains = {after: root}
    latest = 0.0
    await pipes.run(fresh, "DEL", fresh)
    while rows := await pipes.run(stream, "XRANGE", stream, f"({after}-0", "+", "COUNT", PAGE):
        added: list[Any] = []
        for id, fields in rows:
            after = int(id.partition(b"-")[0])
            body, taken, at = fields[b"b"], fields.get(b"t"), float(fields[b"a"])
            latest = max(latest, at)
            taken_sum = None if taken is None else checksum(taken)
            chain = link(chain, after, at, checksum(body), taken_sum, retracts.get(after, 0))
            chains[after] = chain
            words: list[Argument] = ["b", body, "a", repr(at), "c", chain]
            words += [] if taken is None else ["t", taken]
            words += ["r", retracts[after]] if after in retracts else []
            added.append((fresh, "XADD", fresh, f"{after}-0", *words))
        await pipes.many(added)
    await upgrade_ids(pipes, log)
    await reseal(pipes, keys.older(log, "outcomes"))
    await upgrade_records(pipes, log)
    await upgrade_snapshots(pipes, log, chains, int(marked or 0))
    if marks:
        await pipes.run(retracted, "HSET", retracted, *(word for pair in marks.items() for word in pair))
    await pipes.run(old_marks, "DEL", old_marks)
    if await pipes.run(fresh, "EXISTS", fresh):
        await pipes.run(fresh, "RENAME", fresh, stream)
    state: list[Argument] = ["chain", chain, "root", root, "at", repr(latest), "retracted", int(marked or 0)]
    await pipes.run(meta, "HSET", meta, *state, write=True)


async def scan(pipes: Pipes, name: str) -> list[tuple[bytes, bytes]]:
    """All fields of a hash, read before any is changed."""
    cursor, fields = 0, {}
    while True:
        cursor, rows = await pipes.run(name, "HSCAN", name, cursor, "COUNT", PAGE)
        fields.update(rows)
        if not int(cursor):
            return list(fields.items())


async def rewrite(pipes: Pipes, name: str, field: Any, value: Argument) -> None:
    await pipes.run(name, "HSET", name, field, value)


async def upgrade_ids(pipes: Pipes, log: str) -> None:
    name, order = keys.older(log, "ids"), keys.older(log, "order")
    ids: dict[int, list[bytes]] = {}
    for id, row in await scan(pipes, name):
        version, digest = row.decode().split(" ", 1)
        number = int(version)
        ids.setdefault(number, []).append(id)
        check = id_check(id.decode(), number, digest)
        if not digest.startswith(
            f"{id_check(id.decode(), number, digest[9:])} "
        ):  # unless it was done before
            await rewrite(pipes, name, id, f"{number} {check} {digest}")
    await pipes.run(order, "DEL", order)
    for number in sorted(ids):
        words = [word for id in ids[number] for word in (b"i", id)]
        await pipes.run(order, "XADD", order, f"{number}-0", *words)


async def reseal(pipes: Pipes, name: str, keep: bytes = b"") -> None:
    """Give each value of a hash its checksum, after what stands before `keep` in it."""
    for field, row in await scan(pipes, name):
        head, sign, value = row.partition(keep) if keep else (b"", b"", row)
        if value[:32] != checksum(value[32:]).encode():
            await rewrite(pipes, name, field, head + sign + seal(value))


async def upgrade_records(pipes: Pipes, log: str) -> None:
    name = keys.older(log, "records")
    for field, row in await scan(pipes, name):
        value = row[8:]
        if value[5:37] != checksum(value[37:]).encode():
            await rewrite(pipes, name, field, row[:8] + bytes(5) + seal(value))


async def add_without(pipes: Pipes, log: str, retracted: int) -> None:
    """Let each snapshot of layout 2 say that it leaves out what was retracted: no other was kept."""
    name = keys.older(log, "snapshots")
    for field, row in await scan(pipes, name):
        digest, chain, *upload = row.decode().split(" ")
        if len(upload) == 2:
            await rewrite(pipes, name, field, " ".join((digest, chain, str(retracted), *upload)))


async def upgrade_snapshots(pipes: Pipes, log: str, chains: dict[int, str], retracted: int) -> None:
    name = keys.older(log, "snapshots")
    for field, row in await scan(pipes, name):
        digest, *done = row.decode().split(" ")
        if done:
            continue
        old = keys.older(log, f"snapshot:{int(field)}:{digest}")
        data = await pipes.alone(old, "GET", old)
        if data is None:
            await pipes.run(name, "HDEL", name, field)
            continue
        part = keys.older(log, f"part:upgraded{int(field)}:0")
        try:
            await pipes.alone(part, "SET", part, seal(data))
        except StoreUnavailable:  # too large for one value by now: the log can be folded without it
            await pipes.run(name, "HDEL", name, field)
            continue
        chain = chains.get(int(field), chains[min(chains)])
        await rewrite(pipes, name, field, f"{digest} {chain} {retracted} upgraded{int(field)} 1")
        await pipes.run(old, "DEL", old)
