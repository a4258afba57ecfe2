"""What a learner decided, or would have decided just before each event, judged by the event's truth.

Two folds over the log beside the learner's own: what decisions are worth (reliability.py), and the record of each bound
that predictions were asked under (assurance.py): MOST at most, the one that was judged last longest ago is let go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from feedrank.learners import reading, truths
from feedrank.learners.inference.assurance import Assurance
from feedrank.learners.inference.reliability import Reliability
from feedrank.learners.learner import Learner
from feedrank.learners.results import Prediction
from feedrank.service.contract.events import Event
from feedrank.service.contract.json_types import JSON

TOP = 64  # labels of a set whose probabilities are looked at
MOST = 8


def bound_key(precision: float, account: bool) -> float:
    """Of the record of a bound, and of its marks in the store."""
    return precision + 1.0 if account else precision


class Judging:
    """Of one learner, from version `since` on."""

    def __init__(self, since: int = 0) -> None:
        self.reliability = Reliability(since)
        self.bounds: dict[float, Assurance] = {}

    def before(self, learner: Learner, event: Event) -> tuple[Prediction | None, object]:
        """The decision on an event's instance, None of a list, and the instance to learn from: read once for both."""
        instance: object = event.instance if event.parsed is None else event.parsed
        form = learner.form
        if form.items or not event.truth:
            return None, instance
        if event.parsed is None:
            instance = reading.instance(learner.spec, instance)
        return learner.predict(instance, top=1 if form.decision.single or form.ranks else TOP), instance

    def judge(
        self, learner: Learner, prediction: Prediction | None, truth: JSON, loss: float, assured: JSON | None
    ) -> None:
        """Count what was decided before the event, which is learned by now."""
        if prediction is None:
            return
        relevant, form, counted = truths.relevant(truth), learner.form, self.reliability
        counted.count(named(learner, prediction), relevant, loss)
        if assured is not None and relevant:
            self.bound(assured["precision"], assured.get("account", False)).judge(
                assured["kind"],
                assured["certainty"],
                learner.meant({"label": assured["label"]})["label"] in relevant,
            )
        if form.ranks or (form.decision.single and not relevant):
            return
        single = form.decision.single
        loss_of = None
        if not (single and learner.spec.get("loss", "zero-one") == "zero-one"):
            field = form.decision.field

            def loss_of(labels: Sequence[str]) -> float:
                return learner.loss_of({field: labels[0] if single else list(labels)}, truth)

        counted.count_baselines(relevant, not single, loss_of)

    def bound(self, precision: float, account: bool) -> Assurance:
        """The record of a bound, which is the newest then."""
        key = bound_key(precision, account)
        found = self.bounds.pop(key, None) or Assurance.new(precision, account)
        self.bounds[key] = found
        if len(self.bounds) > MOST:
            del self.bounds[next(iter(self.bounds))]
        return found

    def seen(self, precision: float, account: bool) -> Assurance:
        """The record of a bound, to be asked: nothing changes."""
        return self.bounds.get(bound_key(precision, account)) or Assurance.new(precision, account)

    @property
    def nbytes(self) -> int:
        """Memory taken, roughly."""
        return self.reliability.nbytes + sum(one.nbytes for one in self.bounds.values())

    def dump(self) -> JSON:
        """As JSON, for a snapshot."""
        return {
            "reliability": self.reliability.dump(),
            "bounds": [one.dump() for one in self.bounds.values()],
        }

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Judging:
        """What was dumped; ValueError, KeyError or TypeError if it was not that."""
        made = cls()
        made.reliability = Reliability.load(data["reliability"])
        for one in map(Assurance.load, data["bounds"]):
            made.bounds[bound_key(one.precision, one.account)] = one
        return made


def named(learner: Learner, prediction: Prediction) -> list[tuple[str, float | None]] | None:
    """The labels of a decision with their probabilities; None if it abstained."""
    if prediction.abstained:
        return None
    ranking, probabilities, label = prediction.ranking, prediction.probabilities, prediction.decision
    if isinstance(label, str) and ranking[0][0] == label:
        return [(label, probabilities[0] if probabilities else None)]
    if learner.form.ranks:
        labels = [name for name, _ in ranking[:1]]
    else:
        labels = prediction.labels or [] if prediction.label is None else [prediction.label]
    if not probabilities:
        return [(one, None) for one in labels]
    stated = {name: p for (name, _), p in zip(ranking, probabilities, strict=True)}
    return [(one, stated.get(one)) for one in labels]
