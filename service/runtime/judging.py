"""What a learner decided, or would have decided just before each event, judged by the event's truth.

Two folds over the log beside the learner's own: what decisions are worth (reliability.py), and the record of each bound
that predictions were asked under (assurance.py): MOST at most, the one that was judged last longest ago is let go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from feedrank.learners.decided import DecisionBefore
from feedrank.learners.inference.assurance import Assurance
from feedrank.learners.inference.reliability import Reliability
from feedrank.learners.learner import Learner
from feedrank.service.contract.events import Event
from feedrank.service.contract.json_types import JSON

MOST = 8


def bound_key(precision: float, account: bool) -> float:
    """Of the record of a bound, and of its marks in the store."""
    return precision + 1.0 if account else precision


class Judging:
    """Of one learner, from version `since` on."""

    def __init__(self, since: int = 0) -> None:
        self.reliability = Reliability(since)
        self.bounds: dict[float, Assurance] = {}

    def begin(self, learner: Learner, event: Event) -> DecisionBefore | None:
        """What `learn` is to say of the event; None of a list."""
        form, counted = learner.form, self.reliability
        if form.items or not event.truth:
            return None
        judged = DecisionBefore()
        if counted.before is not None and not form.ranks:
            single = form.decision.single
            if not single or learner.spec.get("loss", "zero-one") != "zero-one":
                field = form.decision.field
                judged.others = [
                    {field: labels[0] if single else labels} for labels in (counted.usual, counted.before)
                ]
        return judged

    def judge(
        self, learner: Learner, judged: DecisionBefore, relevant: list[str], loss: float, assured: JSON | None
    ) -> None:
        """Count what was decided before the event, which is learned by now."""
        form, counted = learner.form, self.reliability
        counted.count(judged.named, relevant, loss)
        if assured is not None and relevant:
            self.bound(assured["precision"], assured.get("account", False)).judge(
                assured["kind"],
                assured["certainty"],
                learner.meant({"label": assured["label"]})["label"] in relevant,
            )
        if not form.ranks and (relevant or not form.decision.single):
            counted.count_baselines(relevant, not form.decision.single, judged.losses)

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
