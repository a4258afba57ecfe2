"""A loss of one label as a matrix, of which only what differs from zero-one is written down:

    L(sigma, y) = matrix[y][sigma] where it is named, else 0 for sigma = y and 1 for any other

Labels are numbers here; what is named of a label that has not joined waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..instances import Floats, Ints

__all__ = ["CostMatrix"]

CostsByName = Mapping[str, Mapping[str, float]]


class CostMatrix:
    """L of the labels in `index`; every answer costs O(labels + named costs)."""

    def __init__(self, named: CostsByName | None = None, index: Mapping[str, int] | None = None) -> None:
        self.named: CostsByName | dict[str, Mapping[str, float]] = named or {}
        self.index: Mapping[str, int] | dict[str, int] = index or {}
        self.names: list[str] = list(self.index)
        entries = sorted(
            (self.index[y], self.index[sigma], cost)
            for y, row in self.named.items()
            if y in self.index
            for sigma, cost in row.items()
            if sigma in self.index
        )
        self.truths: Ints = np.array([y for y, _, _ in entries], dtype=np.intp)
        self.decisions: Ints = np.array([sigma for _, sigma, _ in entries], dtype=np.intp)
        self.costs: Floats = np.array([cost for _, _, cost in entries], dtype=np.float64)
        # 1 - L, less what it would be if nothing were named.
        self.spared: Floats = np.where(self.truths == self.decisions, 0.0, 1.0) - self.costs

    @property
    def labels(self) -> int:
        """How many labels have joined."""
        return len(self.index)

    def of(self, y: int, count: int) -> Floats:
        """L(sigma, y) of the first `count` decisions."""
        row = np.ones(count)
        row[y] = 0.0
        first, last = np.searchsorted(self.truths, (y, y + 1))
        row[self.decisions[first:last]] = self.costs[first:last]
        return row

    def cost(self, sigma: int, y: int) -> float:
        """L(sigma, y); no decision (-1), or one for a label that is gone (-2), costs what the dearest can."""
        if sigma < 0:
            named = self.named.get(self.names[y], {}) if y < self.labels else {}
            return max(1.0, *named.values(), 0.0)
        return float(self.of(y, max(self.labels, sigma + 1, y + 1))[sigma])

    def excess(self, sigma: int, y: int) -> float:
        """L(sigma, y) - min L(., y): 0 for a correct decision, whatever the truth costs at least."""
        row = self.of(y, max(self.labels, sigma + 1, y + 1))
        return float(row[sigma] - row.min())

    def gains(self, p: Floats) -> Floats:
        """sum_y (1 - L(sigma, y)) p_y of the decisions that p has: what is largest has the least expected cost."""
        if not len(self.costs):
            return p
        truths, decisions, spared = self.truths, self.decisions, self.spared
        if len(p) < self.labels:  # before some of them joined
            known = np.maximum(truths, decisions) < len(p)
            truths, decisions, spared = truths[known], decisions[known], spared[known]
        gains: Floats = p + np.bincount(decisions, spared * p[truths], len(p))
        return gains

    def functionals(self, count: int) -> Floats:
        """T with gains(p) = T p."""
        T = np.eye(count)
        T[self.decisions, self.truths] += self.spared
        return T

    @property
    def highest(self) -> float:
        """The highest cost, and at least 1."""
        return max(1.0, float(self.costs.max(initial=0.0)))
