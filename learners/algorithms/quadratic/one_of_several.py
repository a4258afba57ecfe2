"""One label of several, ordered or not: psi(y) = e_y, so that g_y estimates P(y | x), and every loss is linear in it.

    risk(z) = sum_y L(z, y) g_y

A label scores sum_y (1 - L(z, y)) g_y, the same order; for the losses that have one, in closed form. Under `reject` the
labels score g and REJECT wins where its risk is below theirs; under `absolute` a label scores -risk.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...instances import Floats, Ints
from ...kernel import times
from ...losses import classes as losses
from ...losses.classes import REJECT
from ...losses.costs import CostMatrix
from ...tasks.task import lead
from . import decoders
from .decoders import Optimum
from .families import Family, groups_of

__all__ = ["Classes"]


class Classes(Family):
    """See above. What a loss costs depends on the spec, so it is served where the spec gives it, and zero-one always."""

    def __init__(self, loss: str, cutoff: int | None = None) -> None:
        self.served: tuple[str, ...] = tuple(dict.fromkeys(("zero-one", loss)))
        self.labels: int = 0
        self.costs: Sequence[float] = ()
        self.blocks: Sequence[int] = ()
        self.matrix: CostMatrix = CostMatrix()

    def price(self, costs: Sequence[float]) -> None:
        self.costs = costs

    def charge(self, costs: CostMatrix) -> None:
        self.matrix = costs

    def group(self, blocks: Sequence[int]) -> None:
        self.blocks = blocks

    def grow(self, labels: int) -> None:
        self.labels = labels

    def mark(self) -> int:
        return self.labels

    def rewind(self, mark: int) -> None:
        self.labels = mark

    def _costs(self) -> Floats:
        costs = np.ones(self.labels)
        costs[: len(self.costs)] = self.costs[: self.labels]
        return costs

    def psi(self, y: int) -> tuple[Ints, Floats]:
        return np.array([y]), np.ones((1, 1))

    def columns(self, loss: str) -> Ints:
        return np.arange(self.labels)

    def decode(self, loss: str, theta: Floats) -> Optimum:
        g = theta[0]
        if loss == "block-zero-one":
            return decoders.block_zero_one(g, groups_of(self.blocks, self.labels))
        if loss == "reject":
            return self._rejecting(g)
        if loss == "matrix":
            return _highest(self.matrix.gains(g))
        if loss == "absolute":
            return _highest(times(self._distances(), g))
        return decoders.weighted_zero_one(g, self._costs() if loss == "weighted" else np.ones(self.labels))

    def _rejecting(self, g: Floats) -> Optimum:
        """risk(z) = sum g - g_z, risk(REJECT) = sum_y cost_y g_y; REJECT loses ties."""
        if not len(g):
            return Optimum(REJECT, g, None)
        values = np.append(g, float(np.add.accumulate(g * (1.0 - self._costs()))[-1]))
        best = int(values.argmax())
        return Optimum(REJECT if best == len(g) else best, g, lead(values))

    def _distances(self) -> Floats:
        grades = np.arange(self.labels)
        distances: Floats = -np.abs(grades[:, None] - grades).astype(np.float64)
        return distances

    def functionals(self, loss: str, theta: Floats) -> Floats:
        if loss == "matrix":
            return self.matrix.functionals(self.labels)
        if loss == "absolute":
            return self._distances()
        if loss != "block-zero-one":
            return np.diag(self._costs() if loss == "weighted" else np.ones(self.labels))
        groups = groups_of(self.blocks, self.labels)
        T: Floats = (groups[:, None] == groups) + np.eye(self.labels)
        for j in range(self.labels):
            members = np.flatnonzero(groups == groups[j])
            T[j, members[theta[0, members].argmax()]] -= 1.0
        return T

    def loss(self, loss: str, sigma: int, y: int) -> float:
        if loss == "block-zero-one":
            groups = groups_of(self.blocks, max(self.labels, y + 1))
            return float(sigma < 0 or groups[sigma] != groups[y])
        if loss == "reject":
            return losses.reject(sigma, y, float(self._costs()[y]))
        if loss == "matrix":
            return self.matrix.cost(sigma, y)
        if loss == "absolute":
            return losses.absolute(sigma, y)
        return 0.0 if sigma == y else float(self._costs()[y] if loss == "weighted" else 1.0)


def _highest(scores: Floats) -> Optimum:
    return Optimum(int(scores.argmax()) if len(scores) else REJECT, scores, lead(scores))
