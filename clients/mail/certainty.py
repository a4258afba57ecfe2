"""When to file: where the person's own record shows the wanted precision, overall or in that folder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

WINDOW = 1000
"""Rounds that count: what was right long ago says little."""


@dataclass(frozen=True, slots=True)
class Round:
    """A prediction whose truth became known."""

    label: str
    margin: float
    right: bool


def threshold(rounds: Sequence[Round], precision: float) -> float:
    """The least m with  (right + 1) / (n + 3) >= precision  over the n rounds of margin at least m; inf if there is none.

    Two imagined mistakes and one success keep a short record from promising too much: 0.95 asks for 37 right in a row.
    """
    best, right = inf, 0
    ordered = sorted(rounds, key=lambda one: -one.margin)
    for n, one in enumerate(ordered, 1):
        right += one.right
        last_of_its_margin = n == len(ordered) or ordered[n].margin < one.margin
        if last_of_its_margin and (right + 1) / (n + 3) >= precision:
            best = one.margin
    return best


class Certainty:
    """The thresholds of a record: one for all folders, and one for each, since some are easier than others."""

    def __init__(self, rounds: Sequence[Round], precision: float) -> None:
        latest = rounds[-WINDOW:]
        by_label: dict[str, list[Round]] = defaultdict(list)
        for one in latest:
            by_label[one.label].append(one)
        self.overall = threshold(latest, precision)
        self.of = {label: threshold(own, precision) for label, own in by_label.items()}

    def least(self, label: str) -> float:
        """The margin from which a prediction of `label` is sure enough; inf: never."""
        return min(self.overall, self.of.get(label, inf))
