"""A learner in memory: its fold, kept up with its log.

    advance    apply the log up to a version, each event once, in order
    rebuild    on a withdrawal: fold again without the withdrawn event, from the last snapshot before it
    checkpoint save the fold and the outcomes up to it; other replicas that disagree at the same version reload

Outcomes of events with ids are kept in memory from one snapshot to the next and saved with it. After a crash, the events
behind the snapshot are applied again and give the same outcomes again: a repeat always finds the first reply.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import Any

import orjson

from feedrank.learners.learner import Learner

from ..errors import Conflict, StoreUnavailable
from ..store import Closed, Snapshot, Store, Trimmed
from .catalogue import Listed
from .events import Event
from .fold import Fold
from .loading import PAGE, base_fold, first_since, load_fold, refold, size
from .settings import HostSettings
from .work import Worker

log = logging.getLogger(__name__)
NAME = 160  # bytes of a name and its place in the index
SMALL = 64  # events that are cheaper to apply again than to save
WRITTEN = 4_096  # bytes of snapshot that an event may cost: very large learners are saved less often


@dataclass(slots=True)
class Counts:
    """What happened, for metrics."""

    divergences: int = 0
    snapshots: int = 0
    skipped_events: int = 0
    store_errors: int = 0
    predictions: int = 0
    feedback: int = 0
    duplicates: int = 0
    mistakes: int = 0
    loss_total: float = 0.0


class Resident:
    """One loaded learner. `known` is the newest version of the log that was heard of."""

    def __init__(
        self, listed: Listed, fold: Fold, store: Store, settings: HostSettings, worker: Worker, counts: Counts
    ) -> None:
        self.listed, self.fold, self.worker = listed, fold, worker
        self._store, self._settings, self._counts = store, settings, counts
        self.known = self.saved = fold.version
        self.users = self.appending = 0
        self.following = False
        self.counted = 0
        self.bytes = fold.learner.nbytes()
        self.pending: dict[int, Event] = {}
        self.outcomes: dict[int, dict[str, Any]] = {}
        self.order = asyncio.Lock()
        self._moved = asyncio.Event()
        self._saving: asyncio.Task[None] | None = None

    @property
    def learner(self) -> Learner:
        return self.fold.learner

    @property
    def version(self) -> int:
        return self.fold.version

    # Following the log

    async def advance(self, to: int) -> None:
        """Apply the log up to `to`, from what is at hand or else from the store."""
        if self.version < to:
            async with self.order:
                await self.forward(to)

    async def forward(self, to: int) -> None:
        """The same for one who holds `order`."""
        self.known = max(self.known, to)
        while self.version < to:
            event = self.pending.pop(self.version + 1, None)
            try:
                if event is None:
                    await self._read()
                elif event.withdraws:
                    await self._rebuild(self.version + 1, event.withdraws)
                else:
                    await self._apply(event)
            except Trimmed:
                await self._reload()
            self._signal()

    async def _read(self) -> None:
        entries = await self._store.read(self.listed.log, self.version, PAGE)
        if not entries:
            raise StoreUnavailable(f"the log of {self.listed.name!r} ends before version {self.known}")
        for entry in entries:
            self.pending.setdefault(entry.version, Event.read(entry))

    async def _apply(self, event: Event) -> None:
        fold, version, skipped = self.fold, self.version + 1, self.fold.skipped
        features, labels = len(fold.learner.features), len(fold.learner.labels)
        outcome = await self.worker.run("learn", size(event), lambda: fold.apply(version, event))
        self._counts.skipped_events += fold.skipped - skipped
        event.outcome = outcome
        # While an append is on its way, an event may be applied from the log before its own request gets to it.
        if event.named or self.appending:
            self.outcomes[version] = outcome
        self.bytes -= growth(
            fold.learner, features - len(fold.learner.features), labels - len(fold.learner.labels)
        )
        if version % (SMALL if self.bytes < 2**20 else 16 * SMALL) == 0:
            self.bytes = fold.learner.nbytes()
        if version % max(self._settings.snapshot_every, self.bytes // WRITTEN) == 0:
            await self.checkpoint()

    def _signal(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def wait(self, version: int) -> None:
        """Until `version` is applied: what the log holds is applied now, what it does not is waited for, bounded."""
        deadline = time.monotonic() + self._settings.wait
        while self.version < version:
            moved = self._moved
            (head,) = await self._store.versions([self.listed.log])
            if head > self.version:
                # Once begun it is finished, even if the one who waits has gone.
                await asyncio.shield(asyncio.create_task(self.advance(min(head, version))))
                continue
            left = deadline - time.monotonic()
            if left <= 0:
                # The log is the truth, so nobody is ahead of it: the request is early or wrong, the service is not late.
                raise Conflict(
                    f"{self.listed.name!r} is at version {self.version}, and version {version} has not come within "
                    f"{self._settings.wait:g} s",
                    headers={"Retry-After": "1"},
                )
            try:
                await asyncio.wait_for(moved.wait(), min(left, 0.1))
            except TimeoutError:
                continue

    async def outcome(self, version: int) -> dict[str, Any]:
        """The first outcome of the event at `version`."""
        held = self.outcomes.get(version)
        if held is None:
            saved = await self._store.outcome(self.listed.log, version)
            if saved is None:
                raise StoreUnavailable(f"the outcome of event {version} is not at hand")
            held = orjson.loads(saved)
        return held

    # Withdrawing

    async def _rebuild(self, version: int, withdrawn: int) -> None:
        """Become what the learner would be without an earlier event. Predictions go on with the old fold meanwhile."""
        base, fold = await base_fold(self._store, self.listed, withdrawn)
        await refold(self._store, self.listed, fold, base, version, self.worker)
        fold.learner.version = version
        self.fold = fold
        self.bytes = fold.learner.nbytes()
        if version - base >= SMALL:  # the snapshots since then are gone
            await self.checkpoint()

    async def _reload(self) -> None:
        """Start again from the newest snapshot: the log no longer reaches back to where this fold is."""
        before = self.version
        fold = await load_fold(self._store, self.listed)
        if fold.version <= before:
            raise StoreUnavailable(f"the log of {self.listed.name!r} has a gap after version {before}")
        self.fold, self.saved = fold, fold.version
        self.pending = {version: event for version, event in self.pending.items() if version > fold.version}

    # Saving

    async def checkpoint(self) -> None:
        """Dump now; save in the background, unless the save before is still on its way."""
        if self._saving is not None and not self._saving.done():
            return
        version = self.version
        digest, data = await self.worker.run("dump", self.bytes, self.fold.dump)
        self._saving = asyncio.create_task(self._save(Snapshot(version, digest, data)))

    async def _save(self, snapshot: Snapshot) -> None:
        outcomes = {v: orjson.dumps(done) for v, done in self.outcomes.items() if v <= snapshot.version}
        try:
            floor = await self._floor(snapshot.version)
            held = await self._store.save(
                self.listed.log, snapshot, outcomes, keep=self._settings.snapshots_kept, floor=floor
            )
        except Closed:
            return
        except StoreUnavailable as error:
            self._counts.store_errors += 1
            log.warning("snapshot of %s at %d was not saved: %s", self.listed.name, snapshot.version, error)
            return
        if held != snapshot.digest:
            self._counts.divergences += 1
            log.error(
                "%s differs from the snapshot at version %d: reloading", self.listed.name, snapshot.version
            )
            await self._resume()
            return
        self._counts.snapshots += 1
        self.saved = max(self.saved, snapshot.version)
        for version in outcomes:
            self.outcomes.pop(version, None)

    async def _resume(self) -> None:
        """Give up this fold for the one that the store holds."""
        async with self.order:
            to = self.version
            self.fold = await load_fold(self._store, self.listed)
            self.saved = self.fold.version
        await self.advance(max(to, self.known))

    async def _floor(self, version: int) -> int:
        """The first entry that retention keeps."""
        floor = 1
        if (events := self._settings.retention_events) is not None:
            floor = max(floor, version - events + 1)
        if (age := self._settings.retention_age) is not None:
            floor = max(floor, await first_since(self._store, self.listed.log, time.time() - age, version))
        return floor

    async def close(self, least: int = SMALL) -> None:
        """Save if at least so many events would have to be applied again, and wait for it."""
        if self._saving is not None:
            await self._saving
        async with self.order:
            if self.version - self.saved >= least:
                await self.checkpoint()
        if self._saving is not None:
            await self._saving


def growth(learner: Learner, features: int, labels: int) -> int:
    """Bytes that so many new features and labels add, roughly: their weights and their names."""
    rows, columns = len(learner.features), len(learner.labels) if learner.kind == "features" else 1
    return 8 * ((rows + features) * (columns + labels) - rows * columns) + NAME * (features + labels)
