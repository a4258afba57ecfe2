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
        if self.binary:
            y = (y > 0.0).astype(np.float64)
        places, rival = rivals(y, order)
        better = places[: len(rival)]
        gap = t[rival] - t[better]
        worst = (gap == gap.max()).nonzero()[0]
        pair = worst[better[worst].argmin()]
        g = np.zeros(len(t))
        g[better[pair]] = -1.0
        g[rival[pair]] = 1.0
        return g
