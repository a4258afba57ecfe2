"""Entropic weights: w_r = exp(theta_r) / Z_r over n coordinates, n - features of which were never seen and have theta = 0.

Z_r = sum_j exp(theta_rj) is carried as log Z_r, so that nothing overflows however far theta goes, and a step costs
O(active features x labels touched):

    log Z_r <- log Z_r + log(1 + sum_j p_rj (exp(a_r x_j) - 1)),    p_r = exp(theta_r) / Z_r,  a = -eta g

Rounding adds up, and a sum that shrinks keeps the error of when it was large. `drift` bounds the relative error of each
Z_r; where it passes TOLERANCE, that label's sum is taken afresh. After ten thousand touches at the earliest unless the sum
collapses, so that the cost is spread thin.
"""

from __future__ import annotations

import numpy as np

from ..growth import columns_for, grown
from ..instances import Floats, Ints, Matrix, Vector
from ..kernel import exp, exp_of, log, log_of, times
from ..kernel.powers import logaddexp
from .base import Arrays, Counters, Weights, X

__all__ = ["Entropic"]

TOLERANCE = 1e-10
ROUNDING = 2.0**-52


class Entropic(Weights):
    """t_r = sum_j x_j exp(theta_rj) / Z_r. Features of x that were never seen weigh exp(0) / Z_r."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.features = 0
        self.labels = 0
        self.theta: Floats = np.zeros((0, 0))
        self.log_z: Floats = np.zeros(0)
        self.drift: Floats = np.zeros(0)

    def grow(self, features: int, labels: int) -> None:
        """New features had theta = 0 all along and change nothing, unless they pass n: then n becomes their number."""
        theta, width, old = self.theta, columns_for(labels), self.labels
        if width != theta.shape[1]:
            wider, log_z, drift = np.zeros((len(theta), width)), np.zeros(width), np.zeros(width)
            wider[:, :old], log_z[:old], drift[:old] = theta[:, :old], self.log_z[:old], self.drift[:old]
            theta, self.log_z, self.drift = wider, log_z, drift
        self.features, self.labels = features, labels
        self.theta = grown(theta, features)
        if features > self.dimension:
            self.log_z[:old] = logaddexp(
                self.log_z[:old], np.full(old, log_of(float(features - self.dimension)))
            )
            self.drift[:old] += ROUNDING * (1.0 + np.abs(self.log_z[:old]))
            self.dimension = features
        self.log_z[old:] = log_of(float(self.dimension))

    def mark(self) -> tuple[int, int, int, Floats, Floats]:
        return self.features, self.labels, self.dimension, self.log_z.copy(), self.drift.copy()

    def rewind(self, mark: tuple[int, int, int, Floats, Floats]) -> None:
        features, labels, self.dimension, self.log_z, self.drift = mark
        self.theta[features : self.features] = 0.0
        self.theta[:, labels : self.labels] = 0.0
        if self.theta.shape[1] != len(self.log_z):  # as wide as so many labels are
            self.theta = np.ascontiguousarray(self.theta[:, : len(self.log_z)])
        self.features, self.labels = features, labels

    def log_probabilities(self, x: Vector, labels: Ints) -> Floats:
        """log p_rj = theta_rj - log Z_r: (features of x, labels), those that were never seen at the end."""
        log_z = self.log_z[labels]
        log_p: Floats = self.theta[x.rows[:, None], labels] - log_z
        if len(x.unseen):
            log_p = np.vstack((log_p, np.broadcast_to(-log_z, (len(x.unseen), len(labels)))))
        return log_p

    def scores(self, x: X) -> Floats:
        """t = W x; a feature never seen weighs 1 / Z_r."""
        vector = _vector(x)
        t: Floats = times(vector.values, exp(self.theta.take(vector.rows, axis=0) - self.log_z))
        if len(vector.unseen):
            t = t + vector.unseen.sum() * exp(-self.log_z)
        return t[: self.labels]

    def step(self, x: X, g: Floats, eta: float) -> None:
        """theta <- theta - eta * (x outer g), and the sums with it."""
        vector = _vector(x)
        columns = g.nonzero()[0]
        if not len(columns):
            return
        places = (vector.rows[:, None], columns)
        change = np.multiply.outer(vector.values, -eta * g[columns])
        old = self.theta[places]
        before = self.log_z.copy(), self.drift.copy()
        try:
            self.theta[places] = old + change
            self._sums(old, change, columns)
        except BaseException:
            self.theta[places] = old
            self.log_z, self.drift = before
            raise

    def _sums(self, old: Floats, change: Floats, columns: Ints) -> None:
        """log Z of the columns after theta moved from `old` by `change`."""
        log_z = self.log_z[columns]
        # exp(theta + change) - exp(theta), each relative to Z: never beyond the new sum, so it cannot overflow alone.
        top = np.maximum(change.max(axis=0, initial=0.0), 0.0)
        shrunk = exp(-top)
        delta = (exp(old - log_z) * (exp(change - top) - shrunk)).sum(axis=0)
        total = shrunk + delta  # Z_new / Z_old * exp(-top)
        # Where the sum collapsed, rounding may leave 0 or less, which has no logarithm: it is taken afresh below.
        positive = total > 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            self.log_z[columns] = log_z + top + log(np.where(positive, total, 1.0))
            noise = ROUNDING * (8.0 + np.abs(log_z)) * (shrunk + np.abs(delta))
            drift = (self.drift[columns] * shrunk + noise) / total
        self.drift[columns] = drift
        for column in columns[~((drift <= TOLERANCE) & positive)]:
            self._sum_afresh(int(column))

    def _sum_afresh(self, label: int) -> None:
        theta = np.ascontiguousarray(self.theta[: self.features, label])
        unseen = self.dimension - self.features
        top = max(float(theta.max(initial=-np.inf)), 0.0 if unseen else -np.inf)
        rest = unseen * exp_of(-top) if unseen else 0.0
        self.log_z[label] = top + log_of(float(exp(theta - top).sum()) + rest)
        self.drift[label] = ROUNDING * (8.0 + abs(self.log_z[label]))

    def conjugate(self) -> float:
        """sum_r G(theta_r) = sum_r log(Z_r / n)."""
        return float((self.log_z[: self.labels] - log_of(float(self.dimension))).sum())

    def contributions(self, x: X) -> Floats:
        """values * W in the active rows, then for the features never seen."""
        vector = _vector(x)
        p = exp(self.log_probabilities(vector, np.arange(self.labels)))
        return p * np.concatenate((vector.values, vector.unseen))[:, None]

    def arrays(self) -> Arrays:
        """theta, log Z and its error bound, trimmed."""
        labels = self.labels
        return {
            "theta": self.theta[: self.features, :labels],
            "log_z": self.log_z[:labels],
            "drift": self.drift[:labels],
        }

    def counters(self) -> Counters:
        """n."""
        return {"dimension": self.dimension}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        """All as it was."""
        self.dimension = int(counters["dimension"])
        theta = arrays["theta"]
        if theta.shape != (self.features, self.labels) or self.dimension < 1:
            raise ValueError("the weights do not fit the features and labels")
        self.theta[: self.features, : self.labels] = theta
        self.log_z[: self.labels], self.drift[: self.labels] = arrays["log_z"], arrays["drift"]

    def nbytes(self) -> int:
        """Bytes of the arrays in use."""
        return 8 * (self.features + 2) * columns_for(self.labels)


def _vector(x: X) -> Vector:
    if isinstance(x, Matrix):
        raise TypeError("entropic weights score labels of one vector, not a list of items")
    return x
