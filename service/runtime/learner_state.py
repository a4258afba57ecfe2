"""A learner in memory: the state computed from its log, with its learning curve and counts of its labels.

Pure: the same events give the same fold, bit for bit. As a snapshot:

    b"FEEDFOLD" | format u32 | length u32 | JSON of "curve", "skipped", "labels", "shown", "judging" | the learner

Its digest is the SHA-256 of the JSON without `shown` (times and experts along the curve, which format 1 had not), without
`judging` (which 0.2 had not) and of the learner's digest, and is checked on loading.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Mapping, Sequence
from hashlib import sha256
from io import SEEK_END
from operator import attrgetter
from typing import BinaryIO

import orjson

from feedrank import learners
from feedrank.learners import reading, registry, renaming, truths
from feedrank.learners.codec import ARITHMETIC
from feedrank.learners.errors import InputError, SnapshotError, damaged_snapshot, unreadable_snapshot
from feedrank.learners.instances import FeatureVector, ItemList
from feedrank.learners.learner import Learner
from feedrank.service.contract.events import Event
from feedrank.service.contract.faults import StorageFull, Unprocessable
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.settings import Settings
from feedrank.service.store import Entry, Store

from .catalogue import CatalogEntry
from .folding import NOTHING, Counts, Recipe, Runner
from .follower import Follower
from .judging import Judging
from .learning_curve import CurvePoint, points
from .new_names import new_names
from .series import Series
from .subjects import Subjects

log = logging.getLogger(__name__)
NEW = ("",)  # no label has this name
ESTIMATED = 32  # events after which costs are estimated anew, by what the learner has become
MAGIC, FORMAT = b"FEEDFOLD", 2
START = struct.Struct("<8sII")
DIGEST = 32  # bytes of the learner's own digest, which ends it
MOST_POINTS = 512
NAME = 160  # bytes of a name and its place in the index
ROUGH = 16_384  # bytes of names and weights below which what is around them would spoil the guess
GROWN = 1.25  # from so much more than were counted on, bytes are counted again instead of guessed
RECOUNTED = 64  # and after so many events, since an expert may have left
MATRICES = 2**24  # bytes: more than what an expert keeps beside the weights of names


class LearnerState:
    """A learner at a version of its log. `skipped` counts events that could not be applied.

    `labels` holds for each label [events in which it was true, mistakes among them]; `nbytes` is the memory taken, roughly.
    `judging` begins at `learner.version` if it is not given.
    """

    def __init__(
        self,
        learner: Learner,
        curve: Series[CurvePoint] | None = None,
        skipped: int = 0,
        labels: dict[str, list[int]] | None = None,
        judging: Judging | None = None,
    ) -> None:
        self.learner = learner
        self.judging = judging or Judging(learner.version)
        self.curve: Series[CurvePoint] = curve or Series(MOST_POINTS)
        self.at: float | None = None
        self.outdated = False
        self.skipped = skipped
        self.labels = labels or {}
        self._estimated, self._costs = 0, dict[int, reading.Cost]()
        self._weigh()

    def cost(self, event: Event) -> reading.Cost:
        """The estimate of the core, of an event that was read just now or one out of the log."""
        truth = event.truth or {}
        if event.parsed is not None:
            return self.instance_cost(event.parsed, truth)
        labels, clicks, grades = truths.named(truth), truths.clicks(truth), truths.grade_count(truth)
        instance = event.instance or {}
        items = instance.get("items", ())
        count = len(items["ids"]) if isinstance(items, Mapping) else len(items)
        each = -(-event.size // max(1, count))
        context = len(instance.get("features", ())) if count else 0
        slots = len(instance.get("slots", ()))
        return reading.cost_of_size(self.learner, count, each, labels, clicks, grades, context, slots)

    def instance_cost(self, parsed: FeatureVector | ItemList, truth: JSON | None) -> reading.Cost:
        """The same of an instance that was read; without a truth, of a prediction."""
        if truth is None:
            return reading.cost(self.learner, parsed, grades=1)
        clicks, grades = truths.clicks(truth), truths.grade_count(truth)
        return reading.cost(self.learner, parsed, truths.named(truth), clicks, grades)

    def vector_cost(self, size: int) -> reading.Cost:
        """An estimate for every vector of about so many features, with a new label or none: about twice too much."""
        learner, bits = self.learner, size.bit_length()
        if learner.version >= self._estimated + ESTIMATED:
            self._estimated, self._costs = learner.version, {}
        cost = self._costs.get(bits)
        if cost is None:
            cost = self._costs[bits] = reading.cost_of_size(learner, 0, 1 << bits, NEW, 0, 2)
        return cost

    def seconds(self, event: Event) -> float:
        """See `FoldState`."""
        if event.expected:
            return event.expected
        parsed, truth = event.parsed, event.truth
        if type(parsed) is FeatureVector and truth is not None and len(truth) == 1 and "label" in truth:
            return self.vector_cost(len(parsed)).seconds
        return self.cost(event).seconds

    def _set_version(self, version: int) -> None:
        self.learner.version = version

    # Read all the time: a call of Python's would cost more than all that it does.
    version: int = property(attrgetter("learner.version"), _set_version)  # type: ignore[assignment]

    def apply(self, version: int, event: Event) -> JSON:
        """Learn from the event at `version`; its outcome as in the contract's reply.

        Events are checked before they are logged. Should one be refused all the same, it counts as an event without effect,
        on every replica alike: a log that can be written must be one that can be folded.
        """
        learner = self.learner
        truth = learner.meant(event.truth) if learner.renames else event.truth
        features, names = len(learner.features), len(learner.labels.names)
        try:
            judged = self.judging.begin(learner, event)
            instance: object = event.instance if event.parsed is None else event.parsed
            done = learner.learn(instance, truth, served=event.served, weight=event.weight, judged=judged)
        except InputError:
            log.exception("event %d is refused and skipped", version)
            self.skipped += 1
            learner.version = version
            return NOTHING
        learner.version = version
        self.at = event.at or None
        rounds = learner.progress.rounds
        if rounds % self.curve.stride == 0:
            self.curve.add(rounds, self._point())
        if truth and judged is not None:
            relevant = truths.relevant(truth)
            for name in relevant:
                counts = self.labels.get(name)
                if counts is None:
                    counts = self.labels[name] = [0, 0]
                counts[0] += 1
                counts[1] += done.mistake
            self.judging.judge(learner, judged, relevant, done.loss, event.assured)
        if len(learner.features) > features or len(learner.labels.names) > names:
            self.nbytes -= self.growth(features - len(learner.features), names - len(learner.labels.names))
            if self.nbytes > GROWN * self._weighed or version % RECOUNTED == 0:
                self._weigh()
        return {
            "loss": done.loss,
            "mistake": done.mistake,
            "updated": done.updated,
            "served_loss": done.served_loss,
        }

    def _point(self) -> CurvePoint:
        """The curve's point of now."""
        experts = tuple(row["mean_loss"] for row in self.learner.model.expert_rows() or ())
        return CurvePoint(self.learner.progress.cumulative_loss, self.at, experts)

    def revised(self, events: Sequence[Event]) -> LearnerState:
        """The same with the renames of these entries; what has learned something has none of their old labels."""
        renames = self.learner.renames
        for event in events:
            renames = renaming.composed(renames, event.rename or {})
        if not self.learner.version:
            return type(self)(learners.build(self.learner.spec, renames))
        self.learner.renames = renames
        return self

    def begin(self) -> None:
        """The curve of a learner that was taught elsewhere begins with what it has lost."""
        if self.learner.progress.rounds:
            self.curve.add(self.learner.progress.rounds, self._point())

    def experts(self) -> list[str]:
        """Whose mean losses a point of the curve has, in their order."""
        return [row["name"] for row in self.learner.model.expert_rows() or ()]

    def _weigh(self) -> None:
        """Count the bytes, and learn how they go with the names."""
        self.nbytes = self._weighed = self.learner.nbytes() + self.judging.nbytes
        self._scale = 1.0
        guess = -self.growth(-len(self.learner.features), -len(self.learner.labels.names))
        if guess > ROUGH:
            empty = self.learner.model.nbytes_for(0, 1 if self.learner.form.items else 0)
            self._scale = max(1.0, (self.nbytes - empty) / guess)

    def growth(self, features: int, labels: int) -> int:
        """Bytes that so many new features and labels add, roughly: their weights and their names."""
        learner, size = self.learner, self.learner.model.nbytes_for
        rows, columns = len(learner.features), 1 if learner.form.items else len(learner.labels.names)
        added = 0 if learner.form.items else labels
        weights = size(rows + features, columns + added) - size(rows, columns)
        return int(self._scale * (weights + NAME * (features + labels)))

    def far_from(self, limit: int, features: int, labels: int) -> bool:
        """Whether so many new ones cannot come near a limit of bytes: a look that costs nothing."""
        learner = self.learner
        columns = 1 if learner.form.items else len(learner.labels.names) + labels
        cells = features * columns + labels * len(learner.features)
        return self.nbytes + int(self._scale * (8 * cells + NAME * (features + labels))) + MATRICES <= limit

    def history(self, most: int = MOST_POINTS) -> list[JSON]:
        """The curve in at most `most` points, each with the mean so far and that of the window since the point before."""
        rounds = self.learner.progress.rounds
        return points(self.curve.until(rounds, self._point(), most))

    def dump(self, out: BinaryIO) -> str:
        """See `FoldState`."""
        points = self.curve.points
        curve = [self.curve.stride, [(rounds, point.total) for rounds, point in points]]
        shown = {
            "now": self.at,
            "at": [point.at for _, point in points],
            "experts": [point.experts for _, point in points],
        }
        rest = {"curve": curve, "skipped": self.skipped, "labels": self.labels, "arithmetic": ARITHMETIC}
        head = orjson.dumps(rest | {"shown": shown, "judging": self.judging.dump()})
        out.write(START.pack(MAGIC, FORMAT, len(head)) + head)
        last: bytes | memoryview = b""
        for last in learners.pieces(self.learner):
            out.write(last)
        return digest(orjson.dumps(rest), bytes(last))

    @classmethod
    def load(cls, data: BinaryIO, expected: str | None = None) -> LearnerState:
        """The state that was dumped; SnapshotError with the reason if the file is not one, or another than expected."""
        start = data.read(START.size)
        if len(start) < START.size or start[:8] != MAGIC:
            raise SnapshotError("these bytes are not a snapshot of the service")
        _, version, length = START.unpack(start)
        if version > FORMAT:
            raise SnapshotError(f"the snapshot has format {version}, newer than {FORMAT}: upgrade feedrank")
        head = data.read(length)
        data.seek(max(START.size + len(head), data.seek(0, SEEK_END) - DIGEST))
        last = data.read()
        data.seek(START.size + len(head))
        try:
            rest = orjson.loads(head)
            stride, points = rest["curve"]
            shown = rest.pop(
                "shown", {"now": None, "at": [None] * len(points), "experts": [()] * len(points)}
            )
            counted = rest.pop("judging", None)
            judging = None if counted is None else Judging.load(counted)
            if expected is not None and digest(orjson.dumps(rest), last) != expected:
                raise damaged_snapshot()
            curve = [
                (int(rounds), CurvePoint(float(total), optional(at), tuple(map(optional, experts))))
                for (rounds, total), at, experts in zip(points, shown["at"], shown["experts"], strict=True)
            ]
            labels = {str(name): [int(count) for count in counts] for name, counts in rest["labels"].items()}
            skipped = int(rest["skipped"])
            arithmetic = int(rest.get("arithmetic", 1))  # 0.2 wrote none
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise unreadable_snapshot(error) from error
        series = Series(MOST_POINTS, int(stride), curve)
        state = cls(learners.load(data, trial=False), series, skipped, labels, judging)
        state.at = optional(shown["now"])
        state.outdated = arithmetic != ARITHMETIC
        return state


def optional(number: float | None) -> float | None:
    return None if number is None else float(number)


def digest(head: bytes, last: bytes) -> str:
    """Of the state, from that of its learner."""
    return sha256(head + last).hexdigest()


def recipe(spec: JSON) -> Recipe[LearnerState, Event]:
    """How the log of a learner with this spec is folded."""
    return Recipe(
        lambda: LearnerState(learners.build(spec)), LearnerState.load, read_event, LearnerState.revised
    )


def read_event(entry: Entry) -> Event:
    """The event of an entry; features that the kernel has read need not be read again."""
    event = Event.fold(entry)
    instance = event.instance
    if instance is not None and len(instance) == 1:
        (features,) = instance.values()
        event.parsed = features if type(features) is FeatureVector else None
    return event


class LoadedLearner(Follower[LearnerState, Event]):
    """A learner that is kept up with its log. `users` counts the requests that have it; `counted` its share of memory.

    `asked` is its version when it was last used; `takes_vectors` and `accepts` are as in reading.py.
    """

    def __init__(
        self, entry: CatalogEntry, store: Store, worker: Runner, settings: Settings, counts: Counts
    ) -> None:
        super().__init__(
            entry.log, f"learner {entry.name!r}", recipe(entry.spec), store, worker, settings, counts
        )
        self.entry, self.subjects = entry, Subjects(store)
        self.erasing: set[int] = set()  # versions of events that are being erased here
        self.users = self.counted = self.asked = 0
        self.takes_vectors = reading.takes_vectors(self.state.learner)
        self.accepts = registry.algorithm(entry.spec["algorithm"]).accepts

    def check_growth(self, events: Sequence[Event]) -> None:
        """Refuse what, with all that waits to be applied, would grow it beyond its limits; near them, names are counted."""
        learner, taken, settings = self.state.learner, self.state.nbytes, self._settings
        waiting = [pending.event for pending in self.pending.values()] if self.pending else []
        every, labels, features = [*waiting, *events], set[str](), 0
        for event in every:
            parsed = event.parsed
            if parsed is not None:
                features += parsed.features if isinstance(parsed, ItemList) else len(parsed)
            if event.truth and not learner.form.items:
                truth = learner.meant(event.truth) if learner.renames else event.truth
                labels.update(truths.named(truth))
        if len(learner.labels.names) + len(labels) <= settings.max_labels and self.state.far_from(
            settings.max_learner_bytes, features, len(labels)
        ):
            return
        before, after = new_names(learner, waiting), new_names(learner, every)
        if before == after:
            return
        if len(learner.labels.names) + len(after[0]) > settings.max_labels and before[0] != after[0]:
            raise Unprocessable.at("", f"a learner has at most {settings.max_labels} labels")
        if taken + self.state.growth(len(after[1]), len(after[0])) > settings.max_learner_bytes:
            raise StorageFull(
                f"{self.entry.name!r} takes {taken} bytes of memory and may not grow beyond "
                f"{settings.max_learner_bytes}; feedback on known features and labels is still accepted"
            )
