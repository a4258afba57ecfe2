"""How sure a learner can be: what its stated probabilities were worth, counted over its log.

Before each event the learner decides as `predict` would have; what is counted is that decision, its stated probability p
and whether it was right. A set of labels counts each label in it by itself, an order its first label; what abstained is
counted as that and nothing else. All counts are sums, so that equal logs give equal ones; what is kept is bounded:

    cells    of p: n, right, sum of p, on the grid EDGES
    labels   how often named, true, and named while true
    taken    true label -> named label -> n, the first PAIRS pairs that came
    losses   the sum of the learner's, and of two that know no instance: always the commonest truth so far (of sets: the
             labels that were true in more than half of the events), and as last time. Without a truth before, each loses 1

Coverage at a precision: the largest share of decisions, by a threshold on p, of which that many were right so far, beside
what is proved of the chance of these (proportions.py), at all thresholds and all times together, with probability LEVEL.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..json_types import Json
from .proportions import least_right

__all__ = ["PRECISIONS", "Reliability"]

EDGES = (
    *(0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97),
    *(0.98, 0.985, 0.99, 0.9925, 0.995, 0.9975, 0.999, 0.9995, 0.9999),
)
BINS = 10
PRECISIONS = (0.90, 0.95, 0.99)
LEVEL = 0.95
PAIRS = 8_192  # of labels that were taken for each other
PAIR, LABEL = 120, 250  # bytes, roughly


@dataclass(slots=True)
class Reliability:
    """`since` is the version behind which it counts: 0, but for a learner whose earlier events were not counted."""

    since: int = 0
    events: int = 0
    abstained: int = 0
    loss: float = 0.0
    commonest: float = 0.0
    last: float = 0.0
    before: list[str] | None = None  # the truth of the event before
    usual: list[str] = field(default_factory=list)  # the commonest one so far
    cells: list[list[float]] = field(default_factory=lambda: [[0, 0, 0.0] for _ in EDGES])
    labels: dict[str, list[int]] = field(default_factory=dict)
    taken: dict[str, dict[str, int]] = field(default_factory=dict)
    pairs: int = 0

    def count(
        self, named: Sequence[tuple[str, float | None]] | None, truth: Collection[str], loss: float
    ) -> None:
        """A decision, as labels with their stated probabilities or None if it abstained, its truth and its loss."""
        self.events += 1
        self.loss += loss
        labels = self.labels
        for label in truth:
            counts = labels.get(label)
            if counts is None:
                counts = labels[label] = [0, 0, 0]
            counts[1] += 1
        if named is None:
            self.abstained += 1
            return
        missed: list[str] = list(truth)
        for label, p in named:
            right = label in truth
            if right:
                missed.remove(label)
            if p is not None:
                cell = self.cells[bisect_right(EDGES, p) - 1]
                cell[0] += 1
                cell[1] += right
                cell[2] += p
            counts = labels.get(label)
            if counts is None:
                counts = labels[label] = [0, 0, 0]
            counts[0] += 1
            counts[2] += right
        if missed and named:
            self._mistaken(missed, named, truth)

    def count_baselines(self, truth: Sequence[str], sets: bool, losses: Sequence[float] = ()) -> None:
        """What the two that know no instance lost on a truth that was just counted; `sets` if truths are sets.

        Without `losses`, of `usual` and `before`, whatever is not the truth loses 1.
        """
        if self.before is None:
            self.commonest += 1.0
            self.last += 1.0
        elif not losses:
            self.commonest += self.usual[0] != truth[0]
            self.last += self.before[0] != truth[0]
        else:
            self.commonest += losses[0]
            self.last += losses[1]
        self.before = list(truth)
        if sets:
            near = dict.fromkeys((*self.usual, *truth))
            self.usual = [label for label in near if 2 * self.labels[label][1] > self.events]
        elif not self.usual or self.labels[truth[0]][1] > self.labels[self.usual[0]][1]:
            self.usual = list(truth)

    def _mistaken(
        self, missed: Sequence[str], named: Sequence[tuple[str, float | None]], truth: Collection[str]
    ) -> None:
        """True labels were not named: they were taken for those that were named and not true."""
        for label in missed:
            for name, _ in named:
                if name in truth:
                    continue
                for_it = self.taken.get(label)
                if for_it is None or name not in for_it:
                    if self.pairs >= PAIRS:
                        continue
                    self.pairs += 1
                    for_it = self.taken.setdefault(label, {})
                for_it[name] = for_it.get(name, 0) + 1

    def usual_precision(self, label: str) -> float:
        """(h + 1) / (n + 2): how often the label was right, h of the n times that it was decided."""
        named, _, both = self.labels.get(label, (0, 0, 0))
        return (both + 1.0) / (named + 2.0)

    @property
    def nbytes(self) -> int:
        """Memory taken, roughly."""
        return LABEL * len(self.labels) + PAIR * self.pairs

    # Shown

    def to_json(self) -> dict[str, Json]:
        """The contract's reply."""
        n = self.events
        return {
            "events": n,
            "since": self.since,
            "abstained": self.abstained,
            "stated": any(cell[0] for cell in self.cells),
            "bins": self._bins(),
            "coverage": self._coverage(),
            "labels": {label: self._label_row(label, *counts) for label, counts in self.labels.items()},
            "baselines": {
                "commonest": self.commonest / n if self.before is not None else None,
                "last": self.last / n if self.before is not None else None,
            },
            "loss": self.loss / n if n else None,
        }

    def _bins(self) -> list[Json]:
        """Tenths of p that had a decision."""
        sums = [[0, 0, 0.0] for _ in range(BINS)]
        for low, cell in zip(EDGES, self.cells, strict=True):
            row = sums[min(BINS - 1, int(BINS * low + 1e-9))]
            for i, value in enumerate(cell):
                row[i] += value
        return [
            {"from": i / BINS, "to": (i + 1) / BINS, "mean": total / n, "right": right / n, "n": n}
            for i, (n, right, total) in enumerate(sums)
            if n
        ]

    def _coverage(self) -> list[Json]:
        table = np.array([cell[:2] for cell in self.cells], dtype=np.float64)
        above = table[::-1].cumsum(axis=0)[::-1]
        n, right = above[:, 0], above[:, 1]
        proved = least_right(n - right, n, (1.0 - LEVEL) / len(EDGES))
        decisions = n[0] + self.abstained
        rows: list[Json] = []
        for precision in PRECISIONS:
            reached = np.flatnonzero((n > 0) & (right >= precision * n))
            if not len(reached):
                rows.append({"precision": precision, "share": 0.0, "proved": None, "from": None})
                continue
            at = int(reached[0])
            share = float(n[at] / decisions)
            rows.append(
                {"precision": precision, "share": share, "proved": float(proved[at]), "from": EDGES[at]}
            )
        return rows

    def _label_row(self, label: str, named: int, true: int, both: int) -> Json:
        return {
            "precision": both / named if named else None,
            "recall": both / true if true else None,
            "n": true,
            "taken_for": dict(sorted(self.taken.get(label, {}).items(), key=lambda pair: -pair[1])),
        }

    # Kept

    def dump(self) -> dict[str, Json]:
        """As JSON, for a snapshot."""
        return {
            name: getattr(self, name)
            for name in ("since", "events", "abstained", "loss", "commonest", "last", "before", "usual")
        } | {"cells": self.cells, "labels": self.labels, "taken": self.taken}

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Reliability:
        """What was dumped; ValueError, KeyError or TypeError if it was not that."""
        before = data["before"]
        made = cls(
            int(data["since"]),
            int(data["events"]),
            int(data["abstained"]),
            float(data["loss"]),
            float(data["commonest"]),
            float(data["last"]),
            None if before is None else [str(name) for name in before],
            [str(name) for name in data["usual"]],
        )
        cells = [[int(n), int(right), float(total)] for n, right, total in data["cells"]]
        if len(cells) != len(EDGES):
            raise ValueError("another grid of probabilities")
        made.cells = cells
        for name, (named, true, both) in data["labels"].items():
            made.labels[str(name)] = [int(named), int(true), int(both)]
        for name, pairs in data["taken"].items():
            made.taken[str(name)] = {str(other): int(n) for other, n in pairs.items()}
            made.pairs += len(made.taken[str(name)])
        return made
