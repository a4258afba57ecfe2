"""The Store on Redis or Redis Cluster: any number of processes, one stream a log, every write one atomic script."""

from __future__ import annotations

import struct
import time
from collections.abc import AsyncIterator, Mapping, Sequence

from . import keys
from .base import (
    Clash,
    Closed,
    Document,
    Draft,
    Entry,
    Head,
    Missing,
    Placed,
    Snapshot,
    Stale,
    Trimmed,
)
from .redis_listen import Listener
from .redis_pipes import Argument, Pipes, Script

APPEND, SAVE, DROP, REMEMBER, PUT = map(Script, ("append", "save", "drop", "remember", "put"))
SCRIPTS = (APPEND, SAVE, DROP, REMEMBER, PUT)
UNREGISTERED = 3_600_000  # milliseconds that data without its registration stays: long enough for any save


class RedisStore:
    """See `base.Store`."""

    def __init__(self, pipes: Pipes, listener: Listener, notices: tuple[str, ...] = ()) -> None:
        self._pipes = pipes
        self._listener = listener
        self.notices = notices

    async def close(self) -> None:
        await self._listener.close()
        await self._pipes.close()

    async def check(self) -> None:
        await self._pipes.run(keys.CHECK, "SET", keys.CHECK, f"{time.time()}", "EX", 60)

    def changes(self) -> AsyncIterator[tuple[str, str, int]]:
        return self._listener.changes()

    # Logs

    async def append(self, log: str, drafts: Sequence[Draft]) -> list[Placed]:
        named = [
            keys.log(log, part) for part in ("meta", "log", "ids", "marks", "snapshots", "records", "expiry")
        ]
        arguments: list[Argument] = [log, keys.CHANGES, repr(time.time()), keys.log(log, "snapshot:")]
        for draft in drafts:
            arguments += [draft.body, draft.digest, draft.take or "", draft.marks, draft.base]
            arguments += [len(draft.ids), *draft.ids]
        said: bytes = await self._pipes.run(named[0], *APPEND.call(named, arguments))
        return placed(*said.decode().split(" "))

    async def read(self, log: str, after: int, limit: int) -> list[Entry]:
        meta, stream, marks = (keys.log(log, part) for part in ("meta", "log", "marks"))
        floor = int(await self._pipes.run(meta, "HGET", meta, "floor") or 1)
        found = await self._pipes.run(stream, "XRANGE", stream, f"{after + 1}-0", "+", "COUNT", limit)
        rows = [(int(id.partition(b"-")[0]), fields) for id, fields in found]
        # A trim between the two commands shows as a gap.
        if after + 1 < floor or (rows and rows[0][0] != after + 1):
            raise Trimmed
        if not rows:
            return []
        withdrawn = await self._pipes.run(marks, "HMGET", marks, *(version for version, _ in rows))
        return [
            Entry(version, float(fields[b"a"]), fields[b"b"], fields.get(b"t"), int(mark or 0))
            for (version, fields), mark in zip(rows, withdrawn, strict=True)
        ]

    async def find(self, log: str, id: str) -> tuple[int, str] | None:
        name = keys.log(log, "ids")
        found = await self._pipes.run(name, "HGET", name, id)
        if found is None:
            return None
        version, _, digest = found.partition(b" ")
        return int(version), digest.decode()

    async def head(self, log: str) -> Head:
        meta, snapshots = keys.log(log, "meta"), keys.log(log, "snapshots")
        version, floor, closed = await self._pipes.run(meta, "HMGET", meta, "version", "floor", "closed")
        found = await self._pipes.run(snapshots, "HKEYS", snapshots)
        return Head(int(version or 0), int(floor or 1), tuple(sorted(map(int, found))), closed is not None)

    async def versions(self, logs: Sequence[str]) -> list[int]:
        metas = [keys.log(log, "meta") for log in logs]
        return [
            int(found or 0) for found in await self._pipes.many([(m, "HGET", m, "version") for m in metas])
        ]

    async def outcome(self, log: str, version: int) -> bytes | None:
        name = keys.log(log, "outcomes")
        found: bytes | None = await self._pipes.run(name, "HGET", name, version)
        return found

    # Snapshots

    async def save(
        self, log: str, snapshot: Snapshot, outcomes: Mapping[int, bytes], *, keep: int, floor: int
    ) -> str:
        held = await self._pipes.run(
            keys.log(log, "snapshots"), "HGET", keys.log(log, "snapshots"), snapshot.version
        )
        if held is not None:  # another process was first: no need to send the data
            return str(held.decode())
        data = keys.snapshot(log, snapshot.version, snapshot.digest)
        await self._pipes.alone("SET", data, snapshot.data, "PX", UNREGISTERED)
        named = [keys.log(log, part) for part in ("meta", "log", "snapshots", "outcomes")]
        arguments: list[Argument] = [log, keys.CHANGES, snapshot.version, snapshot.digest, keep, floor]
        arguments.append(keys.log(log, "snapshot:"))
        for version, outcome in outcomes.items():
            arguments += [version, outcome]
        said: bytes = await self._pipes.run(named[0], *SAVE.call([*named, data], arguments))
        if said == b"closed":
            raise Closed
        return said.decode()

    async def snapshot(self, log: str, version: int) -> Snapshot | None:
        name = keys.log(log, "snapshots")
        digest = await self._pipes.run(name, "HGET", name, version)
        if digest is None:
            return None
        data = await self._pipes.alone("GET", keys.snapshot(log, version, digest.decode()))
        return None if data is None else Snapshot(version, digest.decode(), data)

    async def drop(self, log: str) -> None:
        named = [keys.log(log, part) for part in keys.PARTS]
        await self._pipes.run(named[0], *DROP.call(named, [log, keys.CHANGES, keys.log(log, "snapshot:")]))

    # Records

    async def remember(self, log: str, records: Mapping[str, bytes], ttl: float) -> None:
        named = [keys.log(log, "records"), keys.log(log, "expiry")]
        now = time.time()
        arguments: list[Argument] = [repr(now), int(ttl * 1000) + 1, repr(now + ttl)]
        packed = struct.pack("<d", now + ttl)
        for name, value in records.items():
            arguments += [name, packed + value]
        await self._pipes.run(named[0], *REMEMBER.call(named, arguments))

    async def recall(self, log: str, key: str) -> bytes | None:
        name = keys.log(log, "records")
        found: bytes | None = await self._pipes.run(name, "HGET", name, key)
        if found is None or struct.unpack_from("<d", found)[0] <= time.time():
            return None
        return found[8:]

    # Documents

    async def get(self, kind: str, name: str) -> Document | None:
        values = keys.documents(kind, "values")
        found = await self._pipes.run(values, "HGET", values, name)
        return None if found is None else document(found)

    async def put(self, kind: str, name: str, value: bytes, revision: int) -> int:
        return await self._change(kind, name, revision, "put", value)

    async def remove(self, kind: str, name: str, revision: int) -> None:
        await self._change(kind, name, revision, "remove", b"")

    async def _change(self, kind: str, name: str, revision: int, what: str, value: bytes) -> int:
        named = [keys.documents(kind, part) for part in ("values", "names", "revision")]
        arguments: list[Argument] = [name, revision, what, value, keys.CHANGES, kind]
        fresh = int(await self._pipes.run(named[0], *PUT.call(named, arguments)))
        if fresh == 0:
            raise Stale
        return fresh

    async def page(self, kind: str, after: str, limit: int) -> list[tuple[str, Document]]:
        names, values = keys.documents(kind, "names"), keys.documents(kind, "values")
        least = f"({after}" if after else "-"
        found = await self._pipes.run(names, "ZRANGEBYLEX", names, least, "+", "LIMIT", 0, limit)
        if not found:
            return []
        held = await self._pipes.run(values, "HMGET", values, *found)
        return [(name.decode(), document(value)) for name, value in zip(found, held, strict=True) if value]

    async def count(self, kind: str) -> int:
        values = keys.documents(kind, "values")
        return int(await self._pipes.run(values, "HLEN", values))


def placed(said: str, *rest: str) -> list[Placed]:
    """What the script says of an append."""
    match said:
        case "placed":
            return [
                Placed(int(version), fresh == "1")
                for version, fresh in zip(rest[::2], rest[1::2], strict=True)
            ]
        case "clash":
            raise Clash(int(rest[0]))
        case "missing":
            raise Missing(int(rest[0]))
        case "trimmed":
            raise Trimmed
    raise Closed


def document(held: bytes) -> Document:
    revision, _, value = held.partition(b" ")
    return Document(value, int(revision))
