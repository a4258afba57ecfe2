"""An experiment in memory: the state computed from its log, kept up to date like a learner.

The log has one entry a feedback, with its measured value in it, and unanswered rounds, retractions, pause, resume, stop
and promote. It decides what happened; the arms are taught afterwards, under ids made of the log and the version. A
crash in between leaves an event that some arm has not learned: such events are `doubtful`, and are taught again by
whoever has them; an arm that has learned one already knows its id.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import BinaryIO, ClassVar

import orjson

from feedrank.learners.errors import damaged_snapshot, unreadable_snapshot
from feedrank.service.contract.json_types import JSON, View
from feedrank.service.contract.settings import Settings
from feedrank.service.runtime.folding import Counts, Recipe
from feedrank.service.runtime.follower import Follower
from feedrank.service.runtime.memory import Worker
from feedrank.service.store import Draft, Entry, Store, Trimmed

from .measures import Measure
from .plan import Plan
from .state import State

FRESH = 1.0  # seconds for which a prediction may go by an old status
DOUBT = 10.0  # seconds after which an event is not expected to be on its way to the arms any more
LOOK_BACK = (
    256  # events before a snapshot that whoever loads it teaches again: a crash may have come in between
)
UNIT = 200  # bytes of a unit in memory
EXPOSED = 320  # of one with `per`, with its name
EMPTY = 65_536  # bytes of an experiment without units


@dataclass(slots=True)
class LoggedRound:
    """One entry of an experiment's log."""

    fields: JSON
    at: float
    retracts: int = 0
    outcome: JSON | None = None
    revises: ClassVar[bool] = False

    @property
    def has_id(self) -> bool:
        return self.fields.get("kind") in ("feedback", "unanswered", "value")

    @property
    def size(self) -> int:
        return 64

    @classmethod
    def read(cls, entry: Entry) -> LoggedRound:
        fields = {} if entry.erased else orjson.loads(entry.body)
        return cls(fields, entry.at, entry.retracts)

    @classmethod
    def of(cls, draft: Draft) -> LoggedRound:
        """What will be read of it; the store says when it was."""
        return cls(orjson.loads(draft.body), 0.0, draft.retracts)


class ServedRounds:
    """How many rounds each arm has served here since the last event that says so."""

    def __init__(self, arms: int) -> None:
        self._counts = [0] * arms

    def serve(self, arm: int) -> None:
        """One more."""
        self._counts[arm] += 1

    def take(self) -> list[int] | None:
        """The counts, for an event; None if there are none. From here on they start from 0."""
        if not any(self._counts):
            return None
        counts, self._counts = self._counts, [0] * len(self._counts)
        return counts

    def give_back(self, counts: Sequence[int]) -> None:
        """They are not in the log after all."""
        self._counts = [a + b for a, b in zip(self._counts, counts, strict=True)]


class ExperimentFold:
    """The state of an experiment at a version of its log."""

    def __init__(self, plan: Plan, state: State) -> None:
        self.plan, self.state, self.skipped = plan, state, 0
        self.outdated = False
        self.doubtful: dict[int, float] = {}

    @property
    def version(self) -> int:
        return self.state.events

    @version.setter
    def version(self, version: int) -> None:
        self.state.events = version

    @property
    def nbytes(self) -> int:
        return (
            EMPTY
            + UNIT * sum(len(levels.slots) for levels in self.state.figures)
            + 500 * len(self.state.waiting)
            + EXPOSED * (0 if self.state.units is None else len(self.state.units))
        )

    def seconds(self, event: LoggedRound) -> float:
        """See `FoldState`: counting is short."""
        return 0.0

    def apply(self, version: int, event: LoggedRound) -> JSON:
        """Count the event; what a repeat of it is told."""
        self.state.events = version - 1
        self.state.apply(self.plan, event.fields, event.at)
        if event.fields.get("truth"):
            self.doubtful[version] = event.at
        return {
            name: event.fields[name]
            for name in ("arm", "value", "credits", "measure")
            if name in event.fields
        }

    def dump(self, out: BinaryIO) -> str:
        """See `FoldState`."""
        data = orjson.dumps(self.state.to_json())
        out.write(data)
        return sha256(data).hexdigest()


def recipe(plan: Plan) -> Recipe[ExperimentFold, LoggedRound]:
    """How the log of an experiment is folded."""

    def load(file: BinaryIO, digest: str) -> ExperimentFold:
        data = file.read()
        if sha256(data).hexdigest() != digest:
            raise damaged_snapshot()
        try:
            return ExperimentFold(plan, State.from_json(plan, orjson.loads(data)))
        except (ValueError, KeyError, TypeError) as error:
            raise unreadable_snapshot(error) from error

    return Recipe(lambda: ExperimentFold(plan, State.new(plan)), load, LoggedRound.read)


class LoadedExperiment(Follower[ExperimentFold, LoggedRound]):
    """One experiment that is kept up with its log; `used` is when it was last asked for."""

    def __init__(
        self,
        name: str,
        log: str,
        plan: Plan,
        specs: Sequence[View],
        store: Store,
        worker: Worker,
        settings: Settings,
        counts: Counts,
    ) -> None:
        super().__init__(log, f"experiment {name!r}", recipe(plan), store, worker, settings, counts)
        self.name, self.plan, self.specs = name, plan, specs
        self.served = ServedRounds(len(plan.arms))
        self.used = self._checked = 0.0
        self.looked_back = False

    @property
    def figures(self) -> State:
        """What has been seen so far."""
        return self.state.state

    @property
    def doubtful(self) -> dict[int, float]:
        """Versions, with their times, of events that may not have reached every arm."""
        return self.state.doubtful

    @property
    def measure(self) -> Measure | None:
        """What is measured; None until the first feedback has decided it."""
        return self.plan.measure(self.figures.feedback)

    @property
    def incumbent(self) -> int:
        """The arm that serves whoever does not take part: the promoted one, or else the first."""
        promoted = self.figures.promoted
        return self.plan.arms.index(promoted) if promoted else 0

    async def gone(self) -> bool:
        """Whether it was deleted; looked at, and the log followed, at most once in `FRESH` seconds."""
        now = time.monotonic()
        if self.loaded and now - self._checked < FRESH:
            return False
        self._checked = now
        head = await self._store.head(self.log)
        if head.closed:
            return True
        await self.advance(head.version)
        return False

    async def follow(self) -> None:
        """Fold all that the log holds."""
        ((version, _),) = await self._store.positions([self.log])
        await self.advance(version)

    async def event(self, version: int) -> JSON | None:
        """The event at `version`, with the record of its prediction; None if it was trimmed or retracted."""
        try:
            entries = await self._store.read(self.log, version - 1, 1)
        except Trimmed:
            return None
        if not entries or entries[0].retracted:
            return None
        event: JSON = orjson.loads(entries[0].body)
        if entries[0].taken is not None:
            event["record"] = orjson.loads(entries[0].taken)
        return event

    def old_doubts(self, most: int) -> list[int]:
        """Events that by now should have been taught, and may not have been."""
        if not self.looked_back:
            # Whoever crashed may have been about to teach what the snapshot has already counted.
            self.looked_back = True
            for version in range(max(1, self.saved - LOOK_BACK), self.saved + 1):
                self.doubtful.setdefault(version, 0.0)
        limit = time.time() - DOUBT
        return [version for version, at in self.doubtful.items() if at < limit][:most]
