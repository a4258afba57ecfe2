"""Saves a state as a snapshot with its outcomes, trims the log by the retention settings, and loads a snapshot."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Protocol

import orjson

from feedrank.learners.errors import SnapshotError
from feedrank.service.contract.faults import StoreUnavailable
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.settings import Settings
from feedrank.service.store import Closed, Damaged, Diverged, Head, Snapshot, Store, Trimmed
from feedrank.service.store.shared import spool

from .folding import Counts, E, FoldState, Recipe, Runner, S

log = logging.getLogger(__name__)
LOADED = 32 * 2**20  # bytes of a snapshot that is loaded from memory: the learner itself will take as much


class Clock:
    """The time of day, min(clock, clock at the start + steady seconds since): one set ahead makes no event old.

    One set back makes all of them younger, and so does a machine that sleeps: events are then kept longer. The clock is
    trusted once, when the process starts.
    """

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall, self._steady = wall, steady
        self._start = wall() - steady()

    def now(self) -> float:
        return min(self._wall(), self._start + self._steady())


CLOCK = Clock()


class Saveable(Protocol):
    """What a saver needs to know of a follower."""

    log: str
    title: str
    chain: str
    saved: int
    without: int
    order: asyncio.Lock
    worker: Runner
    unsettled: dict[int, int]
    unreadable: set[int]
    outcomes: dict[int, JSON]

    @property
    def state(self) -> FoldState: ...
    async def diverged(self, why: object) -> int: ...
    async def forward(self, to: int) -> None: ...


async def load_state(
    store: Store, key: str, version: int, load: Callable[[BinaryIO, str], S]
) -> tuple[S, Snapshot] | None:
    """The state of the snapshot at a version, and the snapshot itself without its data; None if there is none."""
    with no_room(), spool(LOADED) as data:
        stored = await store.snapshot(key, version, data)
        if stored is None:
            return None
        data.seek(0)
        return await asyncio.to_thread(load, data, stored.digest), stored


async def newest_state(
    store: Store,
    key: str,
    title: str,
    recipe: Recipe[S, E],
    head: Head,
    before: int | None,
    horizon: int | None,
    passed: set[int],
) -> tuple[S, Snapshot]:
    """The state of the newest snapshot that can be read (before a version), or that of nothing, with its snapshot.

    With a horizon, a snapshot that leaves out what was retracted after it does not count. Snapshots that cannot be read
    join `passed`, and so do outdated ones where the whole log is there. Trimmed if the log does not reach back to before
    `before`.
    """
    for version in sorted(head.snapshots, reverse=True):
        if head.floor > version + 1:
            break
        if before is not None and version >= before:
            continue
        try:
            loaded = await load_state(store, key, version, recipe.load)
        except (SnapshotError, Damaged) as error:
            log.error("snapshot of %s at %d is ignored: %s", title, version, error)
            passed.add(version)
            continue
        if loaded is None or (horizon is not None and loaded[1].without > horizon):
            continue
        if loaded[0].outdated and head.floor == 1:
            log.info(
                "snapshot of %s at %d is of an earlier arithmetic: the log is folded anew", title, version
            )
            passed.add(version)
            continue
        return loaded
    if head.floor > 1:
        if before is not None:
            raise Trimmed
        raise StoreUnavailable(
            f"no snapshot of {title} can be read and its log starts at version {head.floor}"
        )
    return recipe.fresh(), Snapshot(0, "", b"")


async def revised(
    store: Store,
    key: str,
    recipe: Recipe[S, E],
    state: S,
    snapshot: Snapshot,
    head: Head,
    horizon: int | None,
) -> S:
    """The state of a snapshot with the entries that revise others since then, up to the horizon."""
    events = []
    for version in head.revisions:
        if version > snapshot.without and (horizon is None or version <= horizon):
            events += [recipe.read(entry) for entry in await store.read(key, version - 1, 1)]
    return recipe.revise(state, events) if events else state


@contextmanager
def no_room() -> Iterator[None]:
    """A temporary file that cannot be written is a store that is away."""
    try:
        yield
    except OSError as error:
        why = error.strerror or type(error).__name__  # without its path, which is nobody's business
        raise StoreUnavailable(f"a temporary file cannot be written ({why}): try again later") from None


class Saver:
    """Saves one follower, one snapshot at a time, in the background."""

    def __init__(self, store: Store, settings: Settings, counts: Counts) -> None:
        self._store, self._settings, self._counts = store, settings, counts
        self._saving: asyncio.Task[None] | None = None

    async def checkpoint(self, follower: Saveable) -> None:
        """Dump now and save, unless the save before is still on its way. A state that is to be rebuilt is not saved."""
        if follower.unsettled or (self._saving is not None and not self._saving.done()):
            return
        state, version = follower.state, follower.state.version
        chain, without = follower.chain, follower.without
        data = spool()
        try:
            digest = await follower.worker.run("dump", state.nbytes, lambda: state.dump(data))
        except BaseException as error:
            data.close()
            if not isinstance(error, OSError):
                raise
            log.warning("snapshot of %s at %d was not saved: %s", follower.title, version, error)
            return
        snapshot = Snapshot(version, digest, data, chain, without)
        self._saving = asyncio.create_task(self._save(follower, snapshot))
        self._saving.add_done_callback(lambda _: data.close())

    async def settle(self) -> None:
        """Until no save is on its way."""
        if self._saving is not None:
            await self._saving

    async def _save(self, follower: Saveable, snapshot: Snapshot) -> None:
        key, version = follower.log, snapshot.version
        outcomes = {at: orjson.dumps(done) for at, done in follower.outcomes.items() if at <= version}
        why: object = f"it differs from the snapshot at version {version}"
        digest = ""
        try:
            floor = await self._floor(key, version)
            kept, ids = self._settings.snapshots_kept, self._settings.id_retention
            forget = version - ids if ids else 0
            digest = await self._store.save(key, snapshot, outcomes, keep=kept, floor=floor, forget=forget)
        except Closed:
            return
        except (StoreUnavailable, OSError) as error:  # the store, or the temporary file
            log.warning("snapshot of %s at %d was not saved: %s", follower.title, version, error)
            return
        except Diverged as error:
            why = error
        if digest and digest != snapshot.digest and version in follower.unreadable:
            return  # of another release: it is no judge of this state, and goes when newer ones come
        if digest != snapshot.digest:
            async with follower.order:
                await follower.forward(await follower.diverged(why))
            return
        self._counts.snapshots += 1
        follower.saved = max(follower.saved, version)
        for at in outcomes:
            follower.outcomes.pop(at, None)

    async def _floor(self, key: str, version: int) -> int:
        """The first entry that retention keeps."""
        floor = 1
        if events := self._settings.log_retention:
            floor = max(floor, version - events + 1)
        if age := self._settings.log_retention_age:
            floor = max(floor, await first_since(self._store, key, CLOCK.now() - age, version))
        return floor


async def first_since(store: Store, log: str, when: float, version: int) -> int:
    """The first kept entry that is not older than `when`: times grow with versions, so halving finds it."""
    low, high = (await store.head(log)).floor, version + 1
    while low < high:
        middle = (low + high) // 2
        try:
            entries = await store.read(log, middle - 1, 1)
        except Trimmed:  # another process let it go meanwhile
            low = middle + 1
            continue
        if entries and entries[0].at < when:
            low = middle + 1
        else:
            high = middle
    return low
