"""Folding a log from what the store holds: the newest snapshot that can be read, and the entries after it."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from feedrank import learners
from feedrank.learners.errors import SnapshotError

from ..errors import NotFound, StoreUnavailable
from ..store import Store, Trimmed
from .catalogue import Listed
from .events import Event
from .fold import Fold
from .work import Worker

log = logging.getLogger(__name__)
PAGE = 256  # entries read at once


def size(event: Event) -> int:
    """What the cost of an event grows with."""
    found = event.found
    if found is not None:
        return len(found.names) * len(getattr(found, "ids", "1"))
    instance = event.instance or {}
    if "items" in instance:
        return sum(len(item["features"]) for item in instance["items"])
    return len(instance.get("features", ()))


async def load_fold(store: Store, listed: Listed) -> Fold:
    """The newest snapshot that can be read, or a fresh learner if the log goes back to its beginning."""
    head = await store.head(listed.log)
    if head.closed:
        raise NotFound(f"there is no learner {listed.name!r}")
    try:
        _, fold = await base_fold(store, listed, head.version + 1)
    except Trimmed:
        raise StoreUnavailable(
            f"no snapshot of {listed.name!r} can be read and its log starts at version {head.floor}"
        ) from None
    return fold


async def base_fold(store: Store, listed: Listed, before: int) -> tuple[int, Fold]:
    """The newest fold at a version less than `before` that the rest of the log can be applied to, or Trimmed."""
    head = await store.head(listed.log)
    for version in sorted((v for v in head.snapshots if v < before), reverse=True):
        if head.floor > version + 1:
            break
        held = await store.snapshot(listed.log, version)
        if held is None:
            continue
        try:
            return version, await asyncio.to_thread(Fold.load, held.data, held.digest)
        except SnapshotError as error:
            log.error("snapshot of %s at %d is passed over: %s", listed.name, version, error)
    if head.floor > 1:
        raise Trimmed
    return 0, Fold(learners.build(listed.spec))


async def refold(
    store: Store,
    listed: Listed,
    fold: Fold,
    base: int,
    until: int,
    worker: Worker,
) -> None:
    """Apply the entries after `base` and before `until`, but for those withdrawn by `until` at the latest."""
    at = base
    while at < until - 1:
        entries = await store.read(listed.log, at, min(PAGE, until - 1 - at))
        if not entries:
            raise StoreUnavailable(f"the log of {listed.name!r} ends at version {at}")
        for entry in entries:
            event = Event.read(entry)
            if not event.withdraws and not 0 < entry.mark <= until:
                await worker.run("refold", size(event), partial(fold.apply, entry.version, event))
        at = entries[-1].version


async def first_since(store: Store, name: str, when: float, version: int) -> int:
    """The first kept entry that is not older than `when`: times grow with versions, so halving finds it."""
    low, high = (await store.head(name)).floor, version + 1
    while low < high:
        middle = (low + high) // 2
        try:
            entries = await store.read(name, middle - 1, 1)
        except Trimmed:  # another process let it go meanwhile
            low = middle + 1
            continue
        if entries and entries[0].at < when:
            low = middle + 1
        else:
            high = middle
    return low
