"""What the surrogate is compared with, in batch: a threshold on the marginals (THBM), pairs with a hinge (RankSVM)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.optimize import minimize

from feedrank.learners.instances import Floats

__all__ = ["Measure", "RankSVM", "Threshold", "f_measure", "hamming_measure"]

Mask = NDArray[np.bool_]
# measure(hits, chosen, relevant, labels): what choosing so many labels with so many hits is worth.
Measure = Callable[[Floats, Floats, int, int], Floats]


def hamming_measure(hits: Floats, chosen: Floats, relevant: int, labels: int) -> Floats:
    """1 - Hamming; its best cut is also the one with the best chance of the whole set (0-1)."""
    return 1.0 - (chosen + relevant - 2.0 * hits) / labels


def f_measure(hits: Floats, chosen: Floats, relevant: int, labels: int) -> Floats:
    """2 hits / (chosen + relevant), 1 for two empty sets."""
    both = chosen + relevant
    return np.where(both > 0, 2.0 * hits / np.maximum(both, 1), 1.0)


class Threshold:
    """THBM: labels above t(x), where t is fitted by least squares to the cut that is best for the measure on each example.

    t(x) is linear in the marginals, with a constant, as in the threshold function of Elisseeff and Weston.
    """

    def __init__(self, measure: Measure, ridge: float = 1.0) -> None:
        self.measure = measure
        self.ridge = ridge
        self.w: Floats = np.zeros(0)

    def fit(self, marginals: Floats, Y: Mask) -> Threshold:
        """`marginals` (examples, labels) on the examples with label sets Y."""
        cuts = np.array([self._cut(g, y) for g, y in zip(marginals, Y, strict=True)])
        A = self._design(marginals)
        penalty = self.ridge * np.eye(A.shape[1])
        penalty[0, 0] = 0.0
        self.w = solve(A.T @ A + penalty, A.T @ cuts, assume_a="pos")
        return self

    def _cut(self, g: Floats, y: Mask) -> float:
        order = np.argsort(-g, kind="stable")
        hits = np.concatenate(([0.0], np.cumsum(y[order])))
        chosen = np.arange(len(g) + 1.0)
        k = int(self.measure(hits, chosen, int(y.sum()), len(g)).argmax())
        ranked = np.concatenate(([g[order[0]] + 1.0], g[order], [g[order[-1]] - 1.0]))
        return float(ranked[k] + ranked[k + 1]) / 2.0

    @staticmethod
    def _design(marginals: Floats) -> Floats:
        return np.column_stack((np.ones(len(marginals)), marginals))

    def predict(self, marginals: Floats) -> Mask:
        """One label set a row."""
        decided: Mask = marginals > (self._design(marginals) @ self.w)[:, None]
        return decided


class RankSVM:
    """min_w ||w||^2 / 2 + C / P sum_{pairs y_i > y_j} max(0, 1 - w'(x_i - x_j))^2 over the P pairs within queries."""

    def __init__(self, C: float = 1.0) -> None:
        self.C = C
        self.w: Floats = np.zeros(0)

    def fit(self, queries: Sequence[tuple[Floats, Floats]]) -> RankSVM:
        """`queries` are (features, grades) of each list."""
        firsts: list[Floats] = []
        for X, y in queries:
            better, worse = np.nonzero(y[:, None] > y)
            firsts.append(X[better] - X[worse])
        D = np.vstack(firsts)
        scale = self.C / max(1, len(D))

        def objective(w: Floats) -> tuple[float, Floats]:
            short = np.maximum(0.0, 1.0 - D @ w)
            return float(0.5 * w @ w + scale * (short @ short)), w - 2.0 * scale * (short @ D)

        self.w = minimize(objective, np.zeros(D.shape[1]), jac=True, method="L-BFGS-B").x
        return self

    def scores(self, X: Floats) -> Floats:
        """X w."""
        return X @ self.w
