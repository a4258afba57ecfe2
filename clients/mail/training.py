"""Learning from folders as they are: in date order, in batches, each message once however often it is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..client import Client
from ..exceptions import Conflict, NotFound
from ..payloads import JSON
from ..replies import Outcome
from .bookkeeping import MailState, feedback_id
from .copies import Copy, content_digest, with_copies
from .extract import EARLIER, SPEC, features
from .filing import PRECISION, asked
from .folder_names import INBOX
from .sources import MessageRef, in_order

__all__ = ["Curve", "create_learner", "follow_log", "train"]

BATCH_FEATURES = 40_000
PREDICTED = 500
"""Of the last messages, how many are also predicted: that takes as long as learning them."""
TOGETHER = 10
"""Of these, how many are predicted before they are learned."""


class Curve:
    """The mistakes of a training, in order."""

    def __init__(self) -> None:
        self.mistakes: list[bool] = []
        self.known: int = 0
        """Messages that had been learned before."""

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """More rounds."""
        for outcome in outcomes:
            if outcome.duplicate:
                self.known += 1
            else:
                self.mistakes.append(outcome.mistake)

    def points(self, most: int = 10) -> list[tuple[int, float, float]]:
        """(rounds, share of mistakes so far, share since the point before), at most `most` of them."""
        total = len(self.mistakes)
        ends = sorted({round(total * part / most) for part in range(1, most + 1)} - {0})
        points, start = [], 0
        for end in ends:
            points.append(
                (end, sum(self.mistakes[:end]) / end, sum(self.mistakes[start:end]) / (end - start))
            )
            start = end
        return points


def follow_log(client: Client, state: MailState) -> bool:
    """Whether the learner is the one that had our events; if not, what is remembered of it is forgotten.

    A log is only ever appended to. So the last event that we know is still at its version, or the learner was deleted, or
    it is another one of the same name.
    """
    last = state.log()
    if last is None:
        return True
    version, identity = last
    try:
        there = client.learner(state.learner).version >= version
        events = client.events(state.learner, after=version - 1, limit=1).events if there else []
        # A log that was cut off behind a snapshot no longer shows the event: then the version alone must do.
        same = there and (not events or events[0].get("feedback_id", identity) == identity)
    except NotFound:
        same = False
    if not same:
        state.forget_learner()
    return same


def train(
    client: Client,
    state: MailState,
    messages: Sequence[MessageRef],
    learned: Callable[[int], None] = lambda count: None,
    report: Callable[[str], None] = lambda line: None,
    precision: float = PRECISION,
) -> Curve:
    """Learn all `messages` that were not learned before; `learned` is called after every batch with how many more are done.

    The last rounds are also predicted, so that filing by this precision has a record to start from.
    """
    follow_log(client, state)
    create_learner(client, state.learner)
    follow_renames(client, state, messages, report)
    curve = Curve()
    labels = {folder: state.label_of(folder) for folder in {one.folder for one in messages}}
    ordered = [(one, feedback_id(one.key, labels[one.folder])) for one in in_order(messages)]
    before = state.learned_among([identity for _, identity in ordered])
    new = [(one, identity) for one, identity in ordered if identity not in before]
    learned(len(messages) - len(new))
    early, late = new[:-PREDICTED], new[-PREDICTED:]
    for part, predicts in ((early, False), (late, True)):
        for batch in _batches(state, part, labels):
            if batch.events and predicts:
                _predicted(client, state, batch, curve, precision)
            elif batch.events:
                outcomes = client.feedback_many(state.learner, batch.events)
                curve.add(outcomes)
                batch.mark(state, outcomes[-1].version)
            learned(batch.seen)
    return curve


def create_learner(client: Client, name: str) -> None:
    """Make the learner, unless it is there: as it is made now, or as it was before. Conflict if it is another one."""
    try:
        client.create(name, SPEC)
    except Conflict:
        client.create(name, EARLIER)


def follow_renames(
    client: Client, state: MailState, messages: Sequence[MessageRef], report: Callable[[str], None]
) -> None:
    """A new folder, most of whose messages were learned under the label of one that is gone, is that one."""
    names = {one.folder for one in messages}
    labels = set(client.learner(state.learner).labels)
    gone = (
        labels - {state.label_of(name) for name in names} - {INBOX}
    )  # what left the inbox is no renamed inbox
    for name in sorted(names - labels):
        if not gone or state.label_of(name) in labels:
            continue
        keys = [one.key for one in messages if one.folder == name]
        for label in sorted(gone):
            if 2 * len(state.learned_among([feedback_id(key, label) for key in keys])) > len(keys):
                state.relabel(name, label)
                gone.discard(label)
                report(f"{name}: was {label}, and is learned as that")
                break


def _predicted(client: Client, state: MailState, batch: _Batch, curve: Curve, precision: float) -> None:
    """Predict, then learn, a few at a time: the truth judges what would have been decided."""
    version = 0
    for start in range(0, len(batch.events), TOGETHER):
        events = batch.events[start : start + TOGETHER]
        questions = [{**asked(event["features"], precision), "top": 1} for event in events]
        predictions = client.predict_many(state.learner, questions)
        truths = [
            {"prediction_id": prediction.prediction_id, **without_features(event)}
            for prediction, event in zip(predictions, events, strict=True)
        ]
        outcomes = client.feedback_many(state.learner, truths)
        curve.add(outcomes)
        version = outcomes[-1].version
    batch.mark(state, version)


def without_features(event: JSON) -> JSON:
    """What an event says of an instance that the service remembers."""
    return {name: value for name, value in event.items() if name != "features"}


@dataclass(slots=True)
class _Batch:
    """Events, as many together as make a body of about a megabyte; of how many messages, since some are unreadable."""

    events: list[JSON] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    seen: int = 0

    def completed(self, state: MailState) -> _Batch:
        """With the copies that came before each."""
        known = state.copies([copy.digest for copy in self.copies])
        for event, copy in zip(self.events, self.copies, strict=True):
            before = known.setdefault(copy.digest, [])
            event["features"] = with_copies(event["features"], before)
            before.append(copy.label)
        return self

    def mark(self, state: MailState, version: int) -> None:
        """All of them are learned."""
        state.mark_learned([event["feedback_id"] for event in self.events], version, self.copies)


def _batches(
    state: MailState, messages: Iterable[tuple[MessageRef, str]], labels: dict[str, str]
) -> Iterator[_Batch]:
    """A batch is learned and marked before the next one is made: the state knows all copies of those before it."""
    batch, size = _Batch(), 0
    for one, identity in messages:
        raw = one.load()
        batch.seen += 1
        if raw:
            label, names = labels[one.folder], features(raw)
            batch.copies.append(Copy(content_digest(names), label, one.key))
            batch.events.append({"features": names, "label": label, "feedback_id": identity})
            size += len(names)
        if size >= BATCH_FEATURES:
            yield batch.completed(state)
            batch, size = _Batch(), 0
    if batch.seen:
        yield batch.completed(state)
