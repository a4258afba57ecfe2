"""What dual ascent loses: 1 on a mistake, and a tie between a relevant and another label is one."""

from __future__ import annotations

import numpy as np

from ...instances import Floats, Ints
from ...tasks.one_class import Multiclass
from ...tasks.permutations import Ranking
from .updates import is_mistake

__all__ = ["OneRelevant", "Relevant", "TwoLabels"]


class OneRelevant(Multiclass):
    """Multiclass as label ranking with Y = {y}."""

    def judge(self, t: Floats, y: int) -> float:
        # The first of the highest is another, or another stands as high.
        return float(t.argmax() != y or np.count_nonzero(t == t[y]) > 1)


class TwoLabels(OneRelevant):
    """Binary: the positive label is shown with t = (t_1 - t_0) / 2, the negative one with -t."""

    view: Floats | None = np.array([[0.5, -0.5], [-0.5, 0.5]])
    argmax = False


class Relevant(Ranking):
    """Label ranking: every relevant label (grade above 0) must stand above all others."""

    parts = True

    def loss(self, sigma: Ints, y: Floats) -> float:
        relevant = y[sigma] > 0.0
        return float(not relevant[: np.count_nonzero(relevant)].all())

    def judge(self, t: Floats, y: Floats) -> float:
        return float(is_mistake(t, y > 0.0))

    def grades(self, y: Floats) -> Floats:
        return (y > 0.0).astype(np.float64)

    def augmented(self, y: Floats, t: Floats) -> Ints:
        """The best wrong order, which gains 1, or the best of all: the order of the scores."""
        order, rival = self.decide(t), self.rival(y, t)
        if rival is None:
            return order
        behind = float(((self.rep(order, t.size) - self.rep(rival, t.size)) * t).sum())
        return rival if behind < 1.0 else order
