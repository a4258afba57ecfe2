"""Records in Redis that wait: for their time, or for an answer."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from . import keys
from .interface import Due, Waiting
from .redis_pipes import Pipes, Script
from .redis_records import unpack

DUE, WAITING = SCRIPTS = (Script("due"), Script("waiting"))


async def due(
    pipes: Pipes, announce: Callable[[str, float], Awaitable[None]], now: float, limit: int
) -> list[Due]:
    """See `Store.due`."""
    logs = await pipes.run(keys.DUE, "ZRANGEBYSCORE", keys.DUE, "-inf", repr(now), "LIMIT", 0, limit)
    records: list[Due] = []
    for log in (name.decode() for name in logs):
        following, *rest = await due_of(pipes, log, now, limit)
        records += [Due(log, key.decode(), float(at)) for key, at in zip(rest[::2], rest[1::2], strict=True)]
        if not rest:
            # Removed first and looked at again: what is announced meanwhile is either seen here or announced after.
            await pipes.run(keys.DUE, "ZREM", keys.DUE, log)
            following, *_ = await due_of(pipes, log, now, 1)
            if following:
                await announce(log, float(following))
    return sorted(records, key=lambda record: record.at)[:limit]


async def due_of(pipes: Pipes, log: str, now: float, limit: int) -> list[bytes]:
    names = [keys.log(log, part) for part in ("due", "records")]
    rows: list[bytes] = await pipes.run(names[0], *DUE.call(names, [repr(now), repr(time.time()), limit]))
    return rows


async def waiting(pipes: Pipes, log: str, after: float, limit: int) -> list[Waiting]:
    """See `Store.waiting`."""
    names = [keys.log(log, part) for part in ("ranks", "records", "leases")]
    rows = await pipes.run(names[0], *WAITING.call(names, [repr(after), repr(time.time()), limit]))
    return [
        Waiting(key.decode(), float(rank), unpack(record, key.decode()))
        for key, rank, record in zip(rows[::3], rows[1::3], rows[2::3], strict=True)
    ]
