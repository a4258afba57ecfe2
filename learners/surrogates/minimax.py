"""The minimax perceptron for ranking lists (Chaudhuri and Tewari, Algorithm 3)."""

import numpy as np

from ..instances import Floats, Ints
from .slam import judge, ranked, rivals


class Minimax:
    """g = e_j - e_i of the pair with y_i > y_j that maximises t_j - t_i; None on a round without loss.

    Ties go to the lowest i, then the lowest j. Scores times a constant choose the same pair, so that
    decisions do not depend on a learning rate: the step is 1.
    """

    def __init__(self, measure: str = "ndcg", cutoff: int | None = None) -> None:
        self.binary = measure == "ap"
        self.judge = judge(measure, cutoff)

    def direction(
        self,
        t: Floats,
        y: Floats,
        x: object = None,
        weights: object = None,
        order: Ints | None = None,
        loss: float | None = None,
    ) -> Floats | None:
        """e_j - e_i, or None. `order` is that of the scores and `loss` its own, where known already."""
        order = ranked(t) if order is None else order
        if (self.judge(order, y) if loss is None else loss) <= 0.0:
            return None
        grades = y[order] > 0.0 if self.binary else y[order]
        rival = rivals(grades.astype(np.float64))
        score = t[order]
        gap = np.empty(len(t))
        # An item of the lowest grade has no rival: it is the better one of no pair.
        gap[order] = np.where(rival < len(t), score.take(rival, mode="clip") - score, -np.inf)
        i = int(gap.argmax())
        g = np.zeros(len(t))
        g[i] = -1.0
        g[order[rival[(order == i).argmax()]]] = 1.0
        return g
