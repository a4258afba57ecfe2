"""A log becomes a state, and the state is kept up with its log: learners, experiments, replays and checks alike.

    advance     apply the log up to a version, each entry once, in order
    retraction  fold again without the retracted entry (see rebuilding.py); so does an entry that revises others
    checkpoint  save the state and the outcomes up to it; a replica that disagrees at the same version folds again
    accident    what is no refusal of the state (memory, a lost connection) drops it: it is folded again, and 503 is replied

Entries that are retracted are skipped when they are read. That is sound because a retraction drops every snapshot that
contains the retracted entry: what is folded from a snapshot never has to give an entry back.

Outcomes of events with ids are kept in memory from one snapshot to the next and saved with it. After a crash, the events
behind the snapshot are applied again and give the same outcomes again: a repeat always gets the first reply.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

import orjson

from feedrank.service.contract.faults import Conflict, NotFound, ServiceError, StoreUnavailable, no_such
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.settings import Settings
from feedrank.service.store import Damaged, Diverged, Store, Trimmed

from .applying import Applier
from .checkpoints import Saver, newest_state, revised
from .folding import NOTHING, SMALL, Counts, E, LogPages, Pending, Recipe, Runner, S
from .rebuilding import Rebuilder, first_outcome, fold_again

log = logging.getLogger(__name__)


class Follower(Applier[S, E]):
    """The state of one log."""

    def __init__(
        self,
        log: str,
        title: str,
        recipe: Recipe[S, E],
        store: Store,
        worker: Runner,
        settings: Settings,
        counts: Counts,
        *,
        saves: bool = True,
    ) -> None:
        super().__init__(log, title, recipe, worker, settings, counts, saves=saves)
        self._store = store
        self.saver = Saver(store, settings, counts)
        self.following = False
        self.base = self.saved = 0  # the versions that were loaded and saved last
        self.unsettled: dict[
            int, int
        ] = {}  # retractions not honoured yet -> what they retract; revisions -> themselves
        self.order = asyncio.Lock()
        self.unreadable: set[int] = set()  # snapshots
        self._horizon: int | None = None
        self._loading: asyncio.Task[None] | None = None
        self.rebuilder, self._pages = Rebuilder(), LogPages(store, log, recipe.read)

    # Loading

    async def ready(self) -> None:
        """Load, once however many wait for it; it goes on if they give up."""
        if self.loaded:
            return
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(self.advance(0))
        await asyncio.shield(self._loading)

    async def _load(self, before: int | None = None) -> int:
        """Start from the newest snapshot that can be read (before a version), or from nothing; the log's last version."""
        head = await self._store.head(self.log)
        if head.closed:
            raise no_such(self.title)
        self._broken = False
        self.newest = max(self.newest, head.version)
        self.pending.clear()
        self.unsettled = {}
        self.settled.clear()
        self.state, snapshot = await newest_state(
            self._store, self.log, self.title, self.recipe, head, before, self._horizon, self.unreadable
        )
        self.state = await revised(
            self._store, self.log, self.recipe, self.state, snapshot, head, self._horizon
        )
        self.chain, self.saved, self.base = snapshot.chain, snapshot.version, snapshot.version
        # Since `head` was read, more may have been retracted, and a snapshot without it saved in the place of one with it.
        retracted = max(head.retracted, snapshot.without)
        self.without = retracted if self._horizon is None else min(retracted, self._horizon)
        return head.version

    async def rewind(self, until: int | None = None) -> None:
        """Start as early as the log allows: from nothing, or its oldest snapshot; without retractions after `until`."""
        head = await self._store.head(self.log)
        self._horizon = until
        try:
            await self._load(before=1 if head.floor == 1 else min(head.snapshots, default=0) + 1)
        except Trimmed:
            raise NotFound(
                f"what is kept of {self.title} before version {head.floor} is without what was retracted after {until}"
            ) from None
        self.loaded = True

    # Following the log

    async def advance(self, to: int) -> None:
        """Apply the log up to `to`, from what is at hand or else from the store."""
        if not self.loaded or self.version < to:
            async with self.order:
                await self.forward(to)

    async def forward(self, to: int) -> None:
        """The same for one who has `order`."""
        self.newest = max(self.newest, to)
        loading = not self.loaded
        if loading:
            await self._load()
        # Whoever loads was registered before it read how far the log goes: `newest` is what it heard meanwhile.
        while self._broken or self.version < (self.newest if loading else to):
            if self._broken:
                await self._load()
                continue
            if self.apply_ready(self.newest if loading else to):
                break
            try:
                await self._step(self.version + 1, to)
            except Trimmed:
                await self._skip_ahead()
            except Diverged as error:
                to = min(to, await self.diverged(error))
            except Damaged as error:
                self._counts.faults[self.log] = f"the log of {self.title} is damaged: {error}"
                raise StoreUnavailable(self._counts.faults[self.log]) from None
            self.signal()
        self.loaded = True

    async def _step(self, version: int, to: int) -> None:
        """Take in the next entry, or read some; `to` must be there."""
        entry = self.pending.pop(version, None)
        if entry is None:
            await self._read(to)
            return
        if self.chain and entry.previous and entry.previous != self.chain:
            raise Diverged(self.log, version - 1, version)
        if entry.event.retracts or entry.event.revises:
            await fold_again(self, version, entry.event)
        elif entry.retracted:
            self.settled.add(entry.retracted)
            self.state.version = version
        else:
            await self._apply(version, entry.event)
        if self.version == version and not self._broken:
            self.chain = entry.chain
            if self.saves and version % self.every == 0:
                await self.saver.checkpoint(self)

    async def diverged(self, why: object) -> int:
        """The log has another history than this state: say so, and start from it as it is; its end. Needs `order`."""
        before = self.version
        self._counts.divergences += 1
        log.error("%s dropped its state: %s", self.title, why)
        self.drop()
        self.newest = 0
        end = await self._load()
        if end < before:
            self._counts.faults[self.log] = (
                f"the log of {self.title} went back from version {before} to {end}: was the store restored, "
                "flushed or failed over? Start again to accept it"
            )
            log.error(self._counts.faults[self.log])
        return end

    async def _read(self, to: int) -> None:
        page = await self._pages.after(self.version, self.chain)
        if not page:
            self.newest = self.version  # what was heard of beyond it is of a history that is gone
            if self.version < to:
                raise await self.lacking(f"the log of {self.title} ends before version {to}")
            return
        if (first := page[0][0].version) != self.version + 1:
            raise StoreUnavailable(f"the log of {self.title} jumps from version {self.version} to {first}")
        horizon, pending = self._horizon, self.pending
        for entry, event in page:
            version, retracted = entry.version, entry.retracted
            if retracted and horizon is not None and retracted > horizon and not entry.erased:
                retracted = 0  # of what was erased there is nothing to apply
            if version not in pending:
                pending[version] = Pending(event, retracted, entry.chain, entry.previous)

    async def _apply(self, version: int, event: E) -> None:
        state, skipped = self.state, self.state.skipped
        if self._failures.get(version, 0) > 1:
            log.error("event %d of %s fails whenever it is applied and is skipped", version, self.title)
            state.version, state.skipped, outcome = version, skipped + 1, NOTHING
        else:
            try:
                outcome = await self.worker.run(
                    "learn", event.size, lambda: state.apply(version, event), state.seconds(event)
                )
            except BaseException as error:
                self._taking = version
                self.failed(error)
                return
        self._applied(version, event, outcome, skipped)

    async def _skip_ahead(self) -> None:
        """The log no longer reaches back to where this state is: go on from the newest snapshot."""
        before = self.version
        await self._load()
        if self.version <= before:
            raise StoreUnavailable(f"the log of {self.title} has a gap after version {before}")

    async def wait(self, version: int) -> None:
        """Until `version` is applied: what the log has is applied now, what it has not is waited for, bounded."""
        deadline = time.monotonic() + self._settings.version_wait
        while self.version < version or any(at <= version for at in self.unsettled):
            moved = self._moved = self._moved or asyncio.Event()
            ((head, _),) = await self._store.positions([self.log])
            if head > self.version:
                # Once begun it is finished, even if the one who waits has gone.
                await asyncio.shield(asyncio.create_task(self.advance(min(head, version))))
                continue
            left = deadline - time.monotonic()
            if left <= 0:
                # The log is the truth, so nobody is ahead of it: the request is early or wrong, the service is not late.
                raise Conflict(
                    f"{self.title} is at version {self.version}, and version {version} has not come within "
                    f"{self._settings.version_wait:g} s",
                    headers={"Retry-After": "1"},
                )
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(moved.wait(), min(left, 0.1))

    async def open(self, mark: float, most: int) -> int:
        """See `Store.open`."""
        return await self._store.open(self.log, mark, most)

    async def outcome(self, version: int) -> JSON:
        """The first outcome of the event at `version`."""
        # What was saved wins: after a restart, what is in memory was folded without events that were retracted since.
        saved = await self._store.outcome(self.log, version)
        outcome: JSON | None = self.outcomes.get(version) if saved is None else orjson.loads(saved)
        return await first_outcome(self, version) if outcome is None else outcome

    async def lacking(self, what: str) -> ServiceError:
        """Why something is not in the store: the log was dropped, or it should be there."""
        closed = (await self._store.head(self.log)).closed
        return no_such(self.title) if closed else StoreUnavailable(what)

    def twin(self, horizon: int | None = None) -> Follower[S, E]:
        """A second follower of the same log, for a moment, that saves nothing by itself. See `rewind` for the horizon."""
        twin = Follower(
            self.log, self.title, self.recipe, self._store, self.worker, self._settings, Counts(), saves=False
        )
        twin._horizon = horizon
        return twin

    async def start(self, before: int) -> None:
        """Load the newest snapshot before a version, or nothing; Trimmed if the log does not reach back."""
        await self._load(before)
        self.loaded = True

    async def close(self, least: int = SMALL) -> None:
        """Save if at least so many events would have to be applied again, and wait for it."""
        await self.rebuilder.close()
        await self.saver.settle()
        async with self.order:
            if self.loaded and self.version - self.saved >= least:
                await self.saver.checkpoint(self)
        await self.saver.settle()
