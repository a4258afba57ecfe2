"""Erasing in Redis: a log is written anew, page by page, with checksums in the place of bodies (see lua/erase.lua).

Its files are as they were written, so they are written anew as well; those of its replicas are theirs.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from redis.exceptions import ResponseError

from feedrank.service.contract.faults import StoreUnavailable

from . import keys
from .interface import Entry
from .redis_pipes import Argument, Pipes, Script
from .redis_read import read
from .shared import sums_of
from .signals import Closed

log = logging.getLogger(__name__)
ERASE, SEARCH = SCRIPTS = (Script("erase"), Script("search"))
PAGE = 1_000  # entries that are copied, or records that are looked at, in one call
STAYS = 60  # seconds until another process may go on where one was killed
AGAIN = 0.2  # seconds between two looks at whether another process is done
FILES = {
    "aof": ("BGREWRITEAOF", "aof_rewrite_in_progress", "aof_last_bgrewrite_status"),
    "rdb": ("BGSAVE", "rdb_bgsave_in_progress", "rdb_last_bgsave_status"),
}
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
    for kind in ("aof", "rdb"):
        await rewrite(pipes, names[0], kind)
    return sums


async def rewrite(pipes: Pipes, key: str, kind: str) -> None:
    """Have the node of a key write its append-only file, or its dump, anew, if it has one: they are as old as they are."""
    command, running, status = FILES[kind]
    try:
        if not await _is_kept(pipes, key, kind):
            return
        asked = False
        while True:
            state = await pipes.run(key, "INFO", "persistence")
            if state.get(running) or state.get("aof_rewrite_scheduled" if kind == "aof" else running):
                await asyncio.sleep(AGAIN)
            elif not asked:  # one that was running may have begun before
                await pipes.run(key, command)
                asked = True
            elif state.get(status) != "ok":
                raise StoreUnavailable(
                    f"Redis could not write its files anew ({command}): what was erased is in them"
                )
            else:
                return
    except ResponseError as error:
        log.warning(
            "Redis does not let its files be written anew (%s): what was erased stays in them until they are; run %s",
            error,
            command,
        )


async def _is_kept(pipes: Pipes, key: str, kind: str) -> bool:
    if kind == "aof":
        return bool((await pipes.run(key, "INFO", "persistence")).get("aof_enabled"))
    return any((await pipes.run(key, "CONFIG", "GET", "save"))[1::2])


async def _entry(pipes: Pipes, log: str, version: int) -> Entry:
    for entry in await read(pipes, log, version - 1, 1, None):
        return entry
    raise Closed
