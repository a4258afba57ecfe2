"""Erasing in Redis: a log is written anew, page by page, with checksums in the place of bodies (see lua/erase.lua)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from . import keys
from .interface import Entry
from .redis_pipes import Argument, Pipes, Script
from .redis_read import read
from .shared import sums_of
from .signals import Closed

ERASE, SEARCH = SCRIPTS = (Script("erase"), Script("search"))
PAGE = 1_000  # entries that are copied, or records that are looked at, in one call
STAYS = 60  # seconds until another process may go on where one was killed
AGAIN = 0.2  # seconds between two looks at whether another process is done
KINDS = (
    *("meta", "log", "order", *keys.COPIES, "ids", "retracted", "outcomes", "records", "expiry", "due"),
    *keys.WAITING,
)


async def search(pipes: Pipes, log: str, id: str, text: bytes) -> tuple[list[int], list[str]]:
    """See `Store.search`."""
    versions, records = set[int](), set[str]()
    name, cursor = keys.log(log, "ids"), 0
    while True:
        cursor, rows = await pipes.run(name, "HSCAN", name, cursor, "MATCH", f"{id}*", "COUNT", PAGE)
        versions.update(int(row.partition(b" ")[0]) for row in rows.values())
        if not int(cursor):
            break
    name, cursor = keys.log(log, "records"), 0
    while True:
        cursor, *found = await pipes.run(name, *SEARCH.call([name], [cursor, text, PAGE]))
        records.update(key.decode() for key in found)
        if not int(cursor):
            return sorted(versions), sorted(records)


async def erase(
    pipes: Pipes,
    run: Callable[[Script, Sequence[str], Sequence[Argument]], Awaitable[Any]],
    log: str,
    versions: Sequence[int],
    records: Sequence[str],
    ids: Sequence[str],
) -> list[str]:
    """See `Store.erase`."""
    sums: list[str] = []
    rows: list[Argument] = []
    for version in versions:
        entry = await _entry(pipes, log, version)
        by = await _entry(pipes, log, entry.retracted)
        kept, of_by = (one.erased or sums_of(one.body, one.taken) for one in (entry, by))
        sums.append(kept.partition(" ")[0])
        rows += [version, kept, "1", by.version, of_by, ""]
    names = [keys.log(log, kind) for kind in KINDS]
    arguments: list[Argument] = [secrets.token_hex(8), secrets.token_hex(16), PAGE, STAYS]
    arguments += [len(rows) // 3, *rows, len(records), *records, len(ids), *ids]
    while (what := await run(ERASE, names, arguments)) != b"done":
        if what == b"closed":
            raise Closed
        if what == b"busy":
            await asyncio.sleep(AGAIN)
    return sums


async def _entry(pipes: Pipes, log: str, version: int) -> Entry:
    for entry in await read(pipes, log, version - 1, 1, None):
        return entry
    raise Closed
