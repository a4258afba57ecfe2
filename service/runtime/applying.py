"""Events that are at hand become part of a state: each once, in the order of the log, as many at a time as is short."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Generic

from feedrank.service.contract.faults import being_rebuilt
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

    version: int = property(attrgetter("state.version"))  # type: ignore[assignment]

    @property
    def position(self) -> Position | None:
        """Where it is in which history; None before it has seen any."""
        return Position(self.version, self.chain) if self.chain else None

    @property
    def every(self) -> int:
        """Events between two snapshots."""
        return max(self._settings.snapshot_every, self.state.nbytes // WRITTEN)

    def apply_ready(self, to: int) -> bool:
        """Apply what is at hand up to `to`, where nothing has to be waited for; whether that was all. Needs `order`."""
        while self.state.version < to:
            run = Run(self, "learn")
            while run.version < to and run.event():
                pass
            if not run.done():
                break
        return self.state.version >= to

    def ready_entry(self, version: int, chain: str) -> Pending[E] | None:
        """What is at hand for a version behind one of this chain, if it needs nothing but to be applied."""
        entry = self.pending.get(version)
        if entry is None or entry.retracted or self._failures:
            return None
        if entry.event.retracts or entry.event.revises:
            return None
        previous = entry.previous
        if (previous != chain and chain and previous) or (self.saves and not version % self.every):
            return None
        return entry

    def apply_next(self, version: int, event: E) -> None:
        """Apply the next entry, which `ready_entry` gave."""
        state = self.state
        self._taking, skipped = version, state.skipped
        outcome = state.apply(version, event)
        self.chain = self.pending.pop(version).chain
        self._applied(version, event, outcome, skipped)

    def failed(self, error: BaseException) -> None:
        """The state may be half changed: drop it, and say so unless it is a defect, which is folded around."""
        version = self._taking
        self.drop()
        if not isinstance(error, DEFECTS):
            self._counts.accidents += 1
            log.exception("%s dropped its state at event %d", self.title, version)
            if not isinstance(error, Exception):
                raise error
            raise being_rebuilt(self.title) from error
        self._broken = True
        self._failures[version] = self._failures.get(version, 0) + 1
        log.exception("event %d of %s could not be applied", version, self.title)

    def _applied(self, version: int, event: E, outcome: JSON, skipped: int) -> None:
        self._counts.skipped_events += self.state.skipped - skipped
        # Not its first outcome, if what is retracted later was left out already: its first reply was of other weights.
        if self.settled or version < self.without:
            return
        event.outcome = outcome
        # While an append is on its way, an event may be applied from the log before its own request gets to it.
        if self.appending or event.has_id:
            self.outcomes[version] = outcome

    def drop(self) -> None:
        """Give up the state: it is folded again from the log when it is next needed."""
        self.loaded = False
        self.pending.clear()

    def signal(self) -> None:
        """Wake those who wait for a version."""
        if self._moved is not None:
            self._moved.set()
            self._moved = None


class Run(Generic[S, E]):
    """What comes next for one state, as one short piece of work: events at hand, and what is asked between them.

    Who asks sees the events before, and none behind. Needs the `order` of a state that is loaded.
    """

    __slots__ = ("_applier", "_chain", "_kind", "_longest", "_room", "_size", "_work", "version")

    def __init__(self, applier: Applier[S, E], kind: str) -> None:
        self._applier, self._kind = applier, kind
        self.version, self._chain = applier.state.version, applier.chain
        self._room = applier.worker.room(kind)
        self._work: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._size, self._longest = 0, 0.0

    def event(self) -> bool:
        """One more event; False if the next of the log is not at hand, has to wait, or does not fit in."""
        applier, version = self._applier, self.version + 1
        entry = applier.ready_entry(version, self._chain)
        if entry is None:
            return False
        event = entry.event
        if not self._add(event.size, applier.state.seconds(event), applier.apply_next, version, event):
            return False
        self.version, self._chain = version, entry.chain
        return True

    def ask(self, size: int, seconds: float, work: Callable[..., None], *arguments: object) -> bool:
        """Something that reads the state, and raises nothing; False if it does not fit in."""
        return self._add(size, seconds, work, *arguments)

    def _add(self, size: int, seconds: float, work: Callable[..., None], *arguments: object) -> bool:
        if not self._room or (self._work and (self._size + size > self._room or seconds > LONG)):
            return False
        self._work.append((work, arguments))
        self._size += size
        self._longest = max(self._longest, seconds)
        return True

    def done(self) -> bool:
        """Do it: False if it is nothing, if others come first, or if an event failed and dropped the state."""
        applier = self._applier
        if not self._work:
            return False
        begun = applier.state.version
        try:
            if applier.worker.attempt(self._kind, self._size, self._longest, self._do) is LATER:
                return False
        except BaseException as error:
            applier.failed(error)
            return False
        finally:
            if (version := applier.state.version) > begun:
                applier.newest = max(applier.newest, version)
                applier.signal()
        return True

    def _do(self) -> None:
        for work, arguments in self._work:
            work(*arguments)
