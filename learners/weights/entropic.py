"""Entropic weights: w_r = exp(theta_r) / Z_r over n coordinates, n - features of which were never seen and have theta = 0.

What is scored with is kept beside theta, so that only what a step touched is exponentiated:

    u_rj = exp(theta_rj - m_r),    Z_r = sum_j u_rj,    t_r = sum_j x_j u_rj / Z_r

m_r is a level a label, 0 at the start; where a sum grows beyond SUMS_END, or as small, it becomes the highest theta of the
label, and u and Z are made anew. So nothing overflows however far theta goes; u is a function of theta and m alone.

A step adds to Z what u changed by. Rounding adds up, and a sum that shrinks keeps the error of when it was large: `drift`
bounds the relative error of each Z; where it passes TOLERANCE, that label's sum is taken afresh. After ten thousand touches
at the earliest unless the sum collapses, so that the cost is spread thin.
"""

from __future__ import annotations

import numpy as np

from .. import kernel
from ..growth import columns_for, grown
from ..instances import Floats, Ints, Matrix, Vector
from ..kernel import exp, exp_of, log, log_of, total
from ..kernel.entropy import ROUNDING
from .base import MISFIT, Arrays, Counters, Weights, X

__all__ = ["Entropic"]

EntropicMark = tuple[int, int, int, Floats, Floats, Floats]


class Entropic(Weights):
    """t_r = sum_j x_j exp(theta_rj) / Z_r. Features of x that were never seen weigh exp(0) / Z_r."""

    def __init__(self, dimension: int) -> None:
        self.dimension: int = dimension
        self.features: int = 0
        self.labels: int = 0
        self.theta: Floats = np.zeros((0, 0))
        self.Z: Floats = np.zeros(0)
        self.level: Floats = np.zeros(0)  # m
        self.drift: Floats = np.zeros(0)
        self._u = kernel.Weights()
        self._base: Floats = np.zeros(0)  # exp(-m): u where theta = 0

    @property
    def log_z(self) -> Floats:
        """log sum_j exp(theta_rj) of the labels."""
        labels = self.labels
        log_z: Floats = log(self.Z[:labels]) + self.level[:labels]
        return log_z

    def grow(self, features: int, labels: int) -> None:
        """New features had theta = 0 all along and change nothing, unless they pass n: then n becomes their number."""
        width, old, before = columns_for(labels), self.labels, self.features
        if width != self.theta.shape[1]:
            wider = np.zeros((len(self.theta), width))
            wider[:, :old] = self.theta[:, :old]
            self.theta = wider
        if labels != old:
            more = np.zeros(labels - old)
            self.Z = np.append(self.Z[:old], more)
            self.level, self.drift = np.append(self.level[:old], more), np.append(self.drift[:old], more)
            self._base = np.append(self._base[:old], more + 1.0)
        self.theta = grown(self.theta, features)
        self.features, self.labels = features, labels
        self._u.grow(features, labels)
        if features > before:
            self._u.theta[before:] = self._base
        if labels > old:
            self._u.theta[:before, old:] = 1.0
        if features > self.dimension:
            self.Z = self.Z + float(features - self.dimension) * self._base
            self.drift = self.drift + ROUNDING * self._steps(self.Z, self.level)
            self.dimension = features
        self.Z[old:] = float(self.dimension)

    def mark(self) -> EntropicMark:
        return self.features, self.labels, self.dimension, self.Z.copy(), self.level.copy(), self.drift.copy()

    def rewind(self, mark: EntropicMark) -> None:
        features, labels, self.dimension, self.Z, self.level, self.drift = mark
        self.theta[features : self.features] = 0.0
        self.theta[:, labels : self.labels] = 0.0
        if self.theta.shape[1] != columns_for(labels):
            self.theta = np.ascontiguousarray(self.theta[:, : columns_for(labels)])
        self.features, self.labels = features, labels
        self._u.shrink(features, labels)
        self._base = self._base[:labels]

    def log_probabilities(self, x: Vector, labels: Ints) -> Floats:
        """log p_rj = theta_rj - log Z_r: (features of x, labels), those that were never seen at the end."""
        log_z = log(self.Z[labels]) + self.level[labels]
        log_p: Floats = self.theta[x.rows[:, None], labels] - log_z
        if len(x.unseen):
            log_p = np.vstack((log_p, np.broadcast_to(-log_z, (len(x.unseen), len(labels)))))
        return log_p

    def scores(self, x: X) -> Floats:
        """t = W x; a feature never seen weighs 1 / Z_r."""
        vector = _vector(x)
        t: Floats = self._u.scores(vector)
        if len(vector.unseen):
            t = t + total(vector.unseen) * self._base
        return t / self.Z

    def step(self, x: X, g: Floats, eta: float) -> None:
        """theta <- theta - eta * (x outer g), and u and Z with it."""
        vector = _vector(x)
        columns = g.nonzero()[0]
        if not len(columns):
            return
        before = self.Z.copy(), self.level.copy(), self.drift.copy(), self._base.copy()
        old, codes = kernel.entropic_move(
            self.theta,
            self._u.theta,
            (self.Z, self.level, self.drift),
            vector.rows,
            vector.values,
            columns,
            eta * g[columns],
        )
        if 1 not in codes and 2 not in codes:
            return
        try:
            for column, code in zip(columns.tolist(), codes, strict=True):
                if code:
                    (self._level_afresh if code == 1 else self._sum_afresh)(column)
        except BaseException:
            self.theta[vector.rows[:, None], columns] = old
            self.Z, self.level, self.drift, self._base = before
            for column in columns.tolist():
                self._u.theta[:, column] = self._made(column)
            raise

    @staticmethod
    def _steps(Z: Floats, level: Floats) -> Floats:
        """By how many roundings a term of the sum, or its logarithm, may be off."""
        return 8.0 + np.abs(level) + np.abs(log(Z))

    def _made(self, label: int) -> Floats:
        """u of one label from theta and m."""
        u: Floats = exp(np.ascontiguousarray(self.theta[: self.features, label]) - self.level[label])
        return u

    def _level_afresh(self, label: int) -> None:
        theta = self.theta[: self.features, label]
        unseen = self.dimension > self.features
        level = max(float(theta.max(initial=-np.inf)), 0.0 if unseen else -np.inf)
        self.level[label] = level
        self._base[label] = exp_of(-level)
        self._u.theta[:, label] = self._made(label)
        self._sum_afresh(label)

    def _sum_afresh(self, label: int) -> None:
        unseen = self.dimension - self.features
        self.Z[label] = total(self._made(label)) + unseen * self._base[label]
        at = slice(label, label + 1)
        self.drift[at] = ROUNDING * self._steps(self.Z[at], self.level[at])

    def conjugate(self) -> float:
        """sum_r G(theta_r) = sum_r log(Z_r / n)."""
        return float((self.log_z - log_of(float(self.dimension))).sum())

    def contributions(self, x: X) -> Floats:
        """values * W in the active rows, then for the features never seen."""
        vector = _vector(x)
        p = exp(self.log_probabilities(vector, np.arange(self.labels)))
        return p * np.concatenate((vector.values, vector.unseen))[:, None]

    def arrays(self) -> Arrays:
        """theta, Z with its level and its error bound, trimmed."""
        return {
            "theta": self.theta[: self.features, : self.labels],
            "Z": self.Z,
            "level": self.level,
            "drift": self.drift,
        }

    def counters(self) -> Counters:
        """n."""
        return {"dimension": self.dimension}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        """All as it was."""
        self.dimension = int(counters["dimension"])
        theta = arrays["theta"]
        if theta.shape != (self.features, self.labels) or self.dimension < 1:
            raise ValueError(MISFIT)
        if any(arrays[name].shape != (self.labels,) for name in ("Z", "level", "drift")):
            raise ValueError("the sums of the weights do not fit the labels")
        if not (arrays["Z"] > 0.0).all():
            raise ValueError("the sums of the weights are not all above 0")
        self.theta[: self.features, : self.labels] = theta
        self.Z, self.level, self.drift = (arrays[name].copy() for name in ("Z", "level", "drift"))
        self._base = exp(-self.level)
        self._u.theta[:] = exp(np.ascontiguousarray(theta - self.level))

    def nbytes(self) -> int:
        """Bytes of the arrays in use."""
        return 8 * (2 * self.features + 4) * columns_for(self.labels)


def _vector(x: X) -> Vector:
    if isinstance(x, Matrix):
        raise TypeError("entropic weights score labels of one vector, not a list of items")
    return x
