"""The minimax perceptron for ranking lists (Chaudhuri and Tewari, Algorithm 3)."""

import numpy as np

from ..instances import Floats
from .slam import judge, ranked, rivals


class Minimax:
    """g = e_j - e_i of the pair with y_i > y_j that maximises t_j - t_i; None on a round without loss.

    Ties go to the lowest i, then the lowest j. Scores times a constant choose the same pair, so that
    decisions do not depend on a learning rate: the step is 1.
    """

    def __init__(self, measure: str = "ndcg", cutoff: int | None = None) -> None:
        self.measure = measure
        self.judge = judge(measure, cutoff)

    def direction(self, t: Floats, y: Floats, x: object = None, weights: object = None) -> Floats | None:
        """e_j - e_i, or None."""
        order = ranked(t)
        if self.judge(order, y) <= 0.0:
            return None
        if self.measure == "ap":
            y = (y > 0.0).astype(np.float64)
        by, rival = rivals(y, order)
        gap = np.full(len(t), -np.inf)
        gap[by[: len(rival)]] = t[rival] - t[by[: len(rival)]]
        i = int(np.argmax(gap))
        g = np.zeros(len(t))
        g[i] = -1.0
        g[rival[np.flatnonzero(by == i)[0]]] = 1.0
        return g
