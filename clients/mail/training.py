"""Learning from folders as they are: in date order, in batches, each message once however often it is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..client import Client
from ..errors import Refused
from ..replies import Outcome, Prediction
from .certainty import Round
from .extract import features
from .sources import Found, in_order
from .state import State, feedback_id

__all__ = ["SPEC", "Curve", "train"]

SPEC = {"task": "multiclass"}
"""The preset: idf, unit length and dual ascent, update III."""
BATCH_FEATURES = 40_000
PREDICTED = 500
"""Of the last messages, how many are also predicted: that takes as long as learning them."""


class Curve:
    """The mistakes of a training, in order."""

    def __init__(self) -> None:
        self.mistakes: list[bool] = []
        self.known = 0
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


def train(
    client: Client,
    state: State,
    found: Sequence[Found],
    learned: Callable[[int], None] = lambda count: None,
) -> Curve:
    """Learn all of `found` that was not learned before; `learned` is told after every batch how many more are done.

    The last rounds are also predicted, so that filing has a record to start from.
    """
    client.create(state.learner, SPEC)
    curve = Curve()
    new = [one for one in in_order(found) if not state.is_learned(feedback_id(one.key, one.folder))]
    learned(len(found) - len(new))
    early, late = new[:-PREDICTED], new[-PREDICTED:]
    for events in _batches(early):
        curve.add(client.feedback_many(state.learner, events))
        state.mark_learned(event["feedback_id"] for event in events)
        learned(len(events))
    for events in _batches(late):
        _predicted(client, state, events, curve)
        learned(len(events))
    return curve


def _event(found: Found) -> dict[str, Any]:
    return {
        "features": features(found.load()),
        "label": found.folder,
        "feedback_id": feedback_id(found.key, found.folder),
    }


def _predicted(client: Client, state: State, events: Sequence[dict[str, Any]], curve: Curve) -> None:
    """Predict, then learn, one after the other on one stream."""
    lines: list[dict[str, Any]] = []
    for event in events:
        lines.append({"predict": {"features": event["features"], "top": 1, "remember": False}})
        lines.append({"feedback": event})
    replies = iter(client.stream(state.learner, lines))
    rounds = []
    for event, prediction, outcome in zip(events, replies, replies, strict=False):
        for reply in (prediction, outcome):
            if isinstance(reply, Refused):
                raise reply
        assert isinstance(prediction, Prediction)
        assert isinstance(outcome, Outcome)
        curve.add([outcome])
        if prediction.label is not None and prediction.margin is not None and not outcome.duplicate:
            rounds.append(Round(prediction.label, prediction.margin, prediction.label == event["label"]))
    state.add_rounds(rounds)
    state.mark_learned(event["feedback_id"] for event in events)


def _batches(found: Iterable[Found]) -> Iterator[list[dict[str, Any]]]:
    """Events, as many together as make a body of about a megabyte."""
    batch: list[dict[str, Any]] = []
    size = 0
    for one in found:
        batch.append(_event(one))
        size += len(batch[-1]["features"])
        if size >= BATCH_FEATURES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
