"""Measures of a ranking from its grades, as in trec_eval (AP, MRR) and gdeval (NDCG, ERR).

`ranked` holds the grade of every item of the list. A list with nothing relevant is worth 0, as those tools have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp2, log2

__all__ = ["Means", "ap", "err", "mrr", "ndcg"]


def ndcg(ranked: Sequence[float], cutoff: int | None = None) -> float:
    """sum_{p <= k} (2^y - 1) / log2(p + 1), divided by that of the best order."""
    best = _dcg(sorted(ranked, reverse=True)[:cutoff])
    return _dcg(ranked[:cutoff]) / best if best else 0.0


def _dcg(ranked: Sequence[float]) -> float:
    return sum((exp2(grade) - 1.0) / log2(place + 1) for place, grade in enumerate(ranked, 1) if grade)


def ap(ranked: Sequence[float]) -> float:
    """The mean over the relevant items (grade above 0) of the precision at their places."""
    hits, total = 0, 0.0
    for place, grade in enumerate(ranked, 1):
        if grade > 0:
            hits += 1
            total += hits / place
    return total / hits if hits else 0.0


def mrr(ranked: Sequence[float]) -> float:
    """1 / place of the first relevant item."""
    return next((1.0 / place for place, grade in enumerate(ranked, 1) if grade > 0), 0.0)


def err(ranked: Sequence[float], cutoff: int | None = None, most: float = 4.0) -> float:
    """sum_p R_p / p * prod_{q < p} (1 - R_q), R = (2^y - 1) / 2^most: the reader stops at what satisfies."""
    total, reads = 0.0, 1.0
    for place, grade in enumerate(ranked[:cutoff], 1):
        satisfied = (exp2(grade) - 1.0) / exp2(most)
        total += reads * satisfied / place
        reads *= 1.0 - satisfied
    return total


@dataclass(slots=True)
class Means:
    """The means over lists."""

    cutoff: int = 10
    most: float = 4.0
    lists: int = 0
    judged: int = 0
    """Lists with something relevant."""
    sums: dict[str, float] = field(default_factory=dict)

    def add(self, ranked: Sequence[float]) -> None:
        """One more list."""
        self.lists += 1
        self.judged += any(grade > 0 for grade in ranked)
        values = {
            f"NDCG@{self.cutoff}": ndcg(ranked, self.cutoff),
            "AP": ap(ranked),
            f"ERR@{self.cutoff}": err(ranked, self.cutoff, self.most),
            "MRR": mrr(ranked),
        }
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def of(self, lists: int) -> dict[str, float]:
        """The sums divided by `lists`: all, or the judged ones (the others add 0)."""
        return {name: total / lists if lists else 0.0 for name, total in self.sums.items()}
