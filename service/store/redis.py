"""The Store on Redis or Redis Cluster: any number of processes, one stream a log, every write one atomic script."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, BinaryIO

from feedrank.service.contract.faults import StoreUnavailable

from . import damage, keys, redis_erasing, redis_waiting
from .interface import (
    LAST,
    Document,
    Draft,
    Due,
    Entry,
    Head,
    Placement,
    Position,
    Record,
    Snapshot,
    Waiting,
)
from .redis_listen import Listener
from .redis_pipes import Argument, Pipes, Script
from .redis_read import document, examine, find, head, load_snapshot, parts, placements, read
from .redis_records import is_live, pack, unpack
from .shared import checksum, collect, ended, erased, genesis, portions, seal, unseal
from .signals import Clash, Closed, Diverged, Missing, Stale

APPEND, SAVE, OUTCOMES, DROP, REMEMBER, AMEND, LEASE, PUT = OWN = tuple(
    map(Script, ("append", "save", "outcomes", "drop", "remember", "amend", "lease", "put"))
)
SCRIPTS = (*OWN, *redis_erasing.SCRIPTS, *redis_waiting.SCRIPTS)
UNREGISTERED = 3_600_000  # milliseconds that parts without their registration stay: long enough for any save
PART = 2**20  # bytes of a snapshot in one value
CLOSED = 30 * 86_400  # seconds that a dropped log stays closed


class RedisStore:
    """See `interface.Store`."""

    shared = True

    def __init__(
        self, pipes: Pipes, listener: Listener, notices: tuple[str, ...] = (), identity: str = ""
    ) -> None:
        self._identity = identity
        # A script may only use keys of one slot: in Cluster, only `check` compares the identity.
        self._fence = None if pipes.spread else (keys.STORE, identity)
        self._pipes = pipes
        self._listener = listener
        self._touch = "1" if pipes.confirmation.replicas else ""
        self.notices = notices

    @property
    def failures(self) -> int:
        return self._pipes.outage.failures

    async def close(self) -> None:
        await self._listener.close()
        await self._pipes.close()

    async def check(self) -> None:
        stored = await self._pipes.run(keys.STORE, "GET", keys.STORE)
        if (stored or b"").decode() != self._identity:
            raise StoreUnavailable(
                "Redis has another store than at the start: it was flushed, replaced or upgraded. "
                "Put it back, or start again to accept it"
            )
        key = keys.CHECK
        await self._pipes.run(key, "SET", key, f"{time.time()}", "EX", 60, write=True)
        for info in await self._pipes.info("memory"):
            if (policy := info.get("maxmemory_policy", "noeviction")) != "noeviction":
                raise StoreUnavailable(
                    f"Redis has maxmemory-policy {policy} and may evict data: set noeviction"
                )

    def watch(self, log: str) -> None:
        self._listener.watch(log)

    def unwatch(self, log: str) -> None:
        self._listener.unwatch(log)

    def changes(self) -> AsyncIterator[tuple[str, str, int]]:
        return self._listener.changes()

    def silence(self) -> float:
        return self._listener.silence()

    async def _script(self, script: Script, names: Sequence[str], arguments: Sequence[Argument]) -> Any:
        return await self._pipes.run(names[0], *script.call(names, arguments, self._fence), write=True)

    def sizes(self) -> Mapping[str, float]:
        return {}

    # Logs

    async def append(
        self, log: str, drafts: Sequence[Draft], expected: Position | None = None
    ) -> list[Placement]:
        kinds = (
            *("meta", "log", "ids", "order", "retracted", "snapshots", "records", "expiry", "due"),
            *keys.WAITING,
        )
        arguments: list[Argument] = [
            log,
            keys.changes(log),
            repr(time.time()),
            keys.log(log, "part:"),
            genesis(log),
        ]
        arguments += ["", ""] if expected is None else expected
        arguments.append(self._touch)
        for draft in drafts:
            arguments += [draft.body, checksum(draft.body), draft.digest, draft.take or ""]
            arguments += [
                "" if draft.expects is None else checksum(draft.expects),
                draft.retracts,
                draft.base,
                "1" if draft.revises else "",
            ]
            arguments += [len(draft.ids), *draft.ids]
        reply: bytes = await self._script(APPEND, [keys.log(log, kind) for kind in kinds], arguments)
        what, *rest = reply.decode().split(" ")
        if what == "diverged" and expected is not None:
            raise Diverged(log, expected.version, int(rest[0]))
        if what == "full":
            raise ended(log)
        if what == "erased":
            index, place = map(int, rest)
            raise erased(drafts[index].ids[place])
        return placements(what, rest)

    async def read(self, log: str, after: int, limit: int, chain: str | None = None) -> list[Entry]:
        return await read(self._pipes, log, after, limit, chain)

    async def find(self, log: str, id: str) -> tuple[int, str] | None:
        return await find(self._pipes, log, id)

    async def search(self, log: str, id: str, text: bytes) -> tuple[list[int], list[str]]:
        return await redis_erasing.search(self._pipes, log, id, text)

    async def erase(
        self, log: str, versions: Sequence[int], records: Sequence[str] = (), ids: Sequence[str] = ()
    ) -> list[str]:
        return await redis_erasing.erase(self._pipes, self._script, log, versions, records, ids)

    async def head(self, log: str) -> Head:
        return await head(self._pipes, log)

    async def positions(self, logs: Sequence[str]) -> list[Position]:
        if not logs:
            return []  # a pipeline of no commands has no reply to wait for
        metas = [keys.log(log, "meta") for log in logs]
        rows = await self._pipes.many([(meta, "HMGET", meta, "version", "chain") for meta in metas])
        return [Position(int(version or 0), (chain or b"").decode()) for version, chain in rows]

    async def outcome(self, log: str, version: int) -> bytes | None:
        name = keys.log(log, "outcomes")
        row: bytes | None = await self._pipes.run(name, "HGET", name, version)
        return None if row is None else unseal(row, damage.outcome(version), version)

    async def keep_outcomes(self, log: str, outcomes: Mapping[int, bytes]) -> None:
        names = [keys.log(log, part) for part in ("meta", "outcomes")]
        arguments: list[Argument] = []
        for version, outcome in outcomes.items():
            arguments += [version, seal(outcome)]
        if await self._script(OUTCOMES, names, arguments) == b"closed":
            raise Closed

    # Snapshots

    async def save(
        self,
        log: str,
        snapshot: Snapshot,
        outcomes: Mapping[int, bytes],
        *,
        keep: int,
        floor: int,
        forget: int = 0,
    ) -> str:
        if snapshot.version > LAST:
            raise ended(log)
        stored = await load_snapshot(self._pipes, log, snapshot.version)
        upload, number = secrets.token_hex(8), 0
        # What is stored need not be sent.
        async for part in portions(b"" if stored else snapshot.data, PART):
            name = keys.part(log, upload, number)
            await self._pipes.alone(name, "SET", name, seal(part), "PX", UNREGISTERED)
            number += 1
        names = [keys.log(log, part) for part in ("meta", "log", "snapshots", "outcomes", "ids", "order")]
        arguments: list[Argument] = [
            log,
            keys.changes(log),
            snapshot.version,
            snapshot.digest,
            snapshot.chain,
        ]
        arguments += [upload, number, keep, floor, forget, keys.log(log, "part:"), genesis(log)]
        arguments += [genesis(log, snapshot.version, snapshot.digest), snapshot.without]
        for version, outcome in outcomes.items():
            arguments += [version, seal(outcome)]
        what, _, rest = (await self._script(SAVE, names, arguments)).decode().partition(" ")
        if what == "closed":
            raise Closed
        if what == "diverged":
            raise Diverged(log, snapshot.version, int(rest))
        return str(what)

    async def snapshot(self, log: str, version: int, out: BinaryIO | None = None) -> Snapshot | None:
        row = await load_snapshot(self._pipes, log, version)
        if row is None:
            return None
        data = await collect(parts(self._pipes, log, version, row), row.parts, out)
        return None if data is None else Snapshot(version, row.digest, data, row.chain, row.without)

    async def drop(self, log: str) -> None:
        await self._drop(log, CLOSED)

    async def _drop(self, log: str, seconds: int) -> None:
        names = [keys.log(log, part) for part in (*keys.PARTS, *keys.COPIES)]
        await self._script(DROP, names, [log, keys.changes(log), keys.log(log, "part:"), seconds])

    async def discard(self, kind: str, name: str, revision: int, log: str) -> None:
        current = await self.get(kind, name)
        if current is None or current.revision != revision:
            raise Stale
        await self._drop(log, 0)
        await self.remove(kind, name, revision)
        meta = keys.log(log, "meta")
        await self._pipes.run(meta, "EXPIRE", meta, CLOSED)

    # Records

    async def remember(self, log: str, records: Mapping[str, bytes | Record], ttl: float) -> dict[str, bytes]:
        now = time.time()
        arguments: list[Argument] = [repr(now), int(ttl * 1000) + 1, repr(now + ttl), self._touch]
        times = []
        for name, record in records.items():
            one = record if isinstance(record, Record) else Record(record)
            numbers = ["" if value is None else repr(value) for value in (one.due, one.rank, one.mark)]
            arguments += [name, one.digest, *numbers, pack(one, now + ttl)]
            times += [] if one.due is None else [one.due]
        kinds = ("records", "expiry", "due", "log", "meta", "ids", *keys.WAITING)
        names = [keys.log(log, kind) for kind in kinds]
        what, *rest = await self._script(REMEMBER, names, arguments)
        if what == b"clash":
            raise Clash(int(rest[0]))
        if what == b"erased":
            raise erased(rest[0].decode())
        if times:
            await self._announce(log, min(times))
        rows = zip(rest[::2], rest[1::2], strict=True)
        return {name.decode(): unpack(row, name.decode()) for name, row in rows}

    async def _announce(self, log: str, at: float) -> None:
        """Say that a log has records that fall due; after they are there, so that no sweep can miss them."""
        await self._pipes.run(keys.DUE, "ZADD", keys.DUE, "LT", repr(at), log, write=True)

    async def recall(self, log: str, key: str) -> bytes | None:
        name = keys.log(log, "records")
        row: bytes | None = await self._pipes.run(name, "HGET", name, key)
        return unpack(row, key) if row is not None and is_live(row) else None

    async def amend(
        self, log: str, key: str, value: bytes, expected: bytes, due: float | None = None
    ) -> None:
        names = [keys.log(log, part) for part in ("records", "due")]
        arguments: list[Argument] = [repr(time.time()), key, checksum(expected), seal(value)]
        what = await self._script(AMEND, names, [*arguments, "" if due is None else repr(due)])
        if what == b"missing":
            raise Missing(0)
        if what == b"stale":
            raise Stale
        if due is not None:
            await self._announce(log, due)

    async def due(self, now: float, limit: int) -> list[Due]:
        return await redis_waiting.due(self._pipes, self._announce, now, limit)

    async def waiting(self, log: str, after: float, limit: int) -> list[Waiting]:
        return await redis_waiting.waiting(self._pipes, log, after, limit)

    async def lease(self, log: str, records: Sequence[str], seconds: float) -> list[str]:
        now, names = time.time(), [keys.log(log, part) for part in ("ranks", "leases")]
        return [
            key.decode()
            for key in await self._script(LEASE, names, [repr(now), repr(now + seconds), *records])
        ]

    async def open(self, log: str, mark: float, most: int) -> int:
        name = keys.log(log, "marks")
        return min(most, int(await self._pipes.run(name, "ZCOUNT", name, repr(mark), repr(mark))))

    # Documents

    async def get(self, kind: str, name: str) -> Document | None:
        values = keys.documents(kind, "values")
        row = await self._pipes.run(values, "HGET", values, name)
        return None if row is None else document(kind, name, row)

    async def put(self, kind: str, name: str, value: bytes, revision: int) -> int:
        return await self._change(kind, name, revision, "put", seal(value))

    async def remove(self, kind: str, name: str, revision: int) -> None:
        await self._change(kind, name, revision, "remove", b"")

    async def _change(self, kind: str, name: str, revision: int, what: str, value: bytes) -> int:
        names = [keys.documents(kind, part) for part in ("values", "names", "revision")]
        fresh = int(await self._script(PUT, names, [name, revision, what, value, keys.CHANGES, kind]))
        if fresh == 0:
            raise Stale
        return fresh

    async def page(self, kind: str, after: str, limit: int, prefix: str = "") -> list[tuple[str, Document]]:
        names, values = keys.documents(kind, "names"), keys.documents(kind, "values")
        least = f"({after}" if after >= prefix and after else f"[{prefix}" if prefix else "-"
        most = f"({prefix}\U0010ffff" if prefix else "+"
        page = await self._pipes.run(names, "ZRANGEBYLEX", names, least, most, "LIMIT", 0, limit)
        if not page:
            return []
        rows = await self._pipes.run(values, "HMGET", values, *page)
        return [
            (name.decode(), document(kind, name.decode(), row))
            for name, row in zip(page, rows, strict=True)
            if row
        ]

    async def count(self, kind: str) -> int:
        values = keys.documents(kind, "values")
        return int(await self._pipes.run(values, "HLEN", values))

    async def examine(self, log: str) -> list[str]:
        return await examine(self._pipes, log)
