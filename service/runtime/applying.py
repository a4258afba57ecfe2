"""Events that are at hand become part of a state: each once, in the order of the log, as many at a time as is short."""

from __future__ import annotations

import asyncio
import logging
from typing import Generic

from feedrank.service.contract.faults import StateDropped
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.settings import Settings
from feedrank.service.store import Position

from .folding import LATER, Counts, E, Pending, Recipe, Runner, S

log = logging.getLogger(__name__)
LONG = 0.002  # seconds from which an event is applied by itself
WRITTEN = 2_048  # bytes of snapshot that an event may cost, about as many as its own: large states are saved less often
# Raised by a defect, not by an accident: the same entry raises the same on every replica.
DEFECTS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


class Applier(Generic[S, E]):
    """The state of one log, and what waits to be applied. `newest` is the highest version of the log that was heard of."""

    def __init__(
        self,
        log: str,
        title: str,
        recipe: Recipe[S, E],
        worker: Runner,
        settings: Settings,
        counts: Counts,
        *,
        saves: bool,
    ) -> None:
        self.log, self.title, self.recipe, self.worker = log, title, recipe, worker
        self._settings, self._counts, self.saves = settings, counts, saves
        self.state, self.chain = recipe.fresh(), ""
        self.loaded = False
        self.newest = self.appending = 0
        self.without = 0  # the newest retraction that the version that was loaded leaves out
        self.pending: dict[int, Pending[E]] = {}  # by version
        self.outcomes: dict[int, JSON] = {}
        self.settled: set[int] = set()  # retractions whose entries were never applied
        self._failures: dict[int, int] = {}
        self._broken = False  # half changed by an event that could not be applied
        self._taking = 0  # the version that was begun last
        self._moved: asyncio.Event | None = None  # there while somebody waits for a version

    @property
    def version(self) -> int:
        return self.state.version

    @property
    def position(self) -> Position | None:
        """Where it is in which history; None before it has seen any."""
        return Position(self.version, self.chain) if self.chain else None

    @property
    def every(self) -> int:
        """Events between two snapshots."""
        return max(self._settings.snapshot_every, self.state.nbytes // WRITTEN)

    def hurry(self, to: int) -> bool:
        """Apply what is at hand up to `to`, where nothing has to be waited for; whether that was all. Needs `order`."""
        begun = self.version
        while self.version < to:
            run, size, expected = self._at_hand(to)
            try:
                if not run or self.worker.attempt("learn", size, expected, self._apply_all, run) is LATER:
                    break
            except BaseException as error:
                self.failed(error)
                return False
        self.newest = max(self.newest, self.version)
        if self.version > begun:
            self.signal()
        return self.version >= to

    def _at_hand(self, to: int) -> tuple[list[E], int, float]:
        """The next events up to `to` that need nothing but to be applied, as many as make a short piece of work.

        With their size, and the seconds that the longest of them takes.
        """
        run: list[E] = []
        room = self.worker.room("learn")
        if not room:
            return run, 0, 0.0
        state, version, chain, plain_entry = self.state, self.version, self.chain, self.plain_entry
        total, longest = 0, 0.0
        while version < to and (entry := plain_entry(version + 1, chain)) is not None:
            event, chain = entry.event, entry.chain
            size, seconds = event.size, state.seconds(event)
            if run and (total + size > room or seconds > LONG):
                break
            run.append(event)
            version, total = version + 1, total + size
            longest = max(longest, seconds)
        return run, total, longest

    def plain_entry(self, version: int, chain: str) -> Pending[E] | None:
        """What is at hand for a version behind one of this chain, if it needs nothing but to be applied."""
        entry = self.pending.get(version)
        if entry is None or entry.retracted or entry.event.retracts or self._failures:
            return None
        previous = entry.previous
        if (previous != chain and chain and previous) or (self.saves and not version % self.every):
            return None
        return entry

    def _apply_all(self, run: list[E]) -> None:
        for event in run:
            self.take(event)

    def take(self, event: E) -> JSON:
        """Apply the next entry, which `plain_entry` gave; its outcome."""
        state = self.state
        version, skipped = state.version + 1, state.skipped
        self._taking = version
        outcome = state.apply(version, event)
        self.chain = self.pending.pop(version).chain
        self._applied(version, event, outcome, skipped)
        return outcome

    def failed(self, error: BaseException) -> None:
        """The state may be half changed: drop it, and say so unless it is a defect, which is folded around."""
        version = self._taking
        self.drop()
        if not isinstance(error, DEFECTS):
            self._counts.accidents += 1
            log.exception("%s dropped its state at event %d", self.title, version)
            if not isinstance(error, Exception):
                raise error
            raise StateDropped(f"{self.title} is being rebuilt: send it again") from error
        self._broken = True
        self._failures[version] = self._failures.get(version, 0) + 1
        log.exception("event %d of %s could not be applied", version, self.title)

    def _applied(self, version: int, event: E, outcome: JSON, skipped: int) -> None:
        self._counts.skipped_events += self.state.skipped - skipped
        if not self.is_first(version):
            return
        event.outcome = outcome
        # While an append is on its way, an event may be applied from the log before its own request gets to it.
        if event.has_id or self.appending:
            self.outcomes[version] = outcome

    def is_first(self, version: int) -> bool:
        """Whether what the state gives at a version is its first outcome.

        Not if what is retracted later was left out already: then the first reply was given by other weights.
        """
        return not self.settled and version >= self.without

    def drop(self) -> None:
        """Give up the state: it is folded again from the log when it is next needed."""
        self.loaded = False
        self.pending.clear()

    def signal(self) -> None:
        """Wake those who wait for a version."""
        if self._moved is not None:
            self._moved.set()
            self._moved = None
