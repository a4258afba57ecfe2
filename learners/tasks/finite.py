"""A finite problem from two matrices alone: what every prediction costs on every label, and where it lies in R^d."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..instances import Floats
from ..kernel import times
from .task import Task, lead

__all__ = ["Finite"]


class Finite(Task):
    """L (k x l), one row a prediction and one column a label; `reps` (k x d), one unit vector a prediction.

    Predictions and labels are row and column indices. Every label needs a correct prediction: a 0 in its column.
    All searches are one product with `reps`, O(k d).
    """

    def __init__(self, loss: ArrayLike, reps: ArrayLike) -> None:
        self.L: Floats = np.asarray(loss, dtype=np.float64)
        self.reps: Floats = np.asarray(reps, dtype=np.float64)
        if self.L.ndim != 2 or self.reps.ndim != 2 or len(self.L) != len(self.reps):
            raise ValueError("the loss and the representation need one row per prediction each")
        if not (self.L >= 0.0).all() or not np.isfinite(self.L).all():
            raise ValueError("losses must be finite numbers of at least 0")
        if not (self.L == 0.0).any(axis=0).all():
            raise ValueError("every label needs a correct prediction: a 0 in its column of the loss")
        if not np.allclose(np.sqrt((self.reps * self.reps).sum(axis=1)), 1.0):
            raise ValueError("every row of the representation must have length 1")

    @property
    def d(self) -> int:
        """The dimension of the scores."""
        return int(self.reps.shape[1])

    def decide(self, t: Floats) -> int:
        return int((times(self.reps, t)).argmax())

    def loss(self, sigma: int, y: int) -> float:
        return float(self.L[sigma, y])

    def judge(self, t: Floats, y: int) -> float:
        return self.loss(self.decide(t), y)

    def rep(self, sigma: int, d: int) -> Floats:
        unit: Floats = self.reps[sigma]
        return unit

    def correct(self, y: int, t: Floats) -> int:
        return int(np.where(self.L[:, y] == 0.0, times(self.reps, t), -math.inf).argmax())

    def augmented(self, y: int, t: Floats) -> int:
        return int((self.L[:, y] + times(self.reps, t)).argmax())

    def rival(self, y: int, t: Floats) -> int | None:
        wrong = self.L[:, y] > 0.0
        return int(np.where(wrong, times(self.reps, t), -math.inf).argmax()) if wrong.any() else None

    def margin(self, t: Floats) -> float | None:
        return lead(times(self.reps, t))
