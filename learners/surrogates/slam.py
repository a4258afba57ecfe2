"""SLAM: the perceptron for ranking lists (Chaudhuri and Tewari, Algorithm 2).

    phi(t, y) = sum_i v_i max(0, max_{j: y_j < y_i} (Delta + t_j - t_i)),   a bound on 1 - NDCG_k or 1 - AP

Items are placed by grade, equal grades by score, equal scores by index; v_i goes with the place of item i. Only
the top scorer among strictly lower grades can attain the inner maximum, so all of it takes O(m log m).
"""

from typing import Any

import numpy as np

from ..instances import Floats, Ints
from ..losses.rankings import ap_loss, discounts, gains
from .rates import Rate, constant

# RML; the gains along the order, negated; the positions by place; v by place before its division by Z; Z.
Judged = tuple[float, Floats, Ints, Floats, float]


def ranked(t: Floats) -> Ints:
    """The decision on scores: best first, ties to the item listed first."""
    return (-t).argsort(kind="stable")


def rivals(falling: Floats, by: Ints) -> Ints:
    """For each place above the lowest grade, the position of the top scorer among strictly lower grades.

    `falling` are the grades along the order, negated, and `by` sorts them. The first item of a grade below y stands where
    the running minimum of the grades falls below y.
    """
    lowest = np.maximum.accumulate(falling)
    levels = falling[by]
    return lowest.searchsorted(levels[: levels.searchsorted(lowest[-1])], "right")


class Slam:
    """g = sum_i v_i (e_k(i) - e_i), i the items whose hinge is on, k(i) their rivals; None on a round without loss.

        NDCG_k   v_i = G(y_i) D(place i) / Z_k on the first k places, Eq. (11) and (24)
        AP       v_i = 1/r on the r relevant items, Eq. (10)

    `rate` multiplies g, so the learner's own step is 1.
    """

    def __init__(
        self, measure: str = "ndcg", cutoff: int | None = None, margin: float = 1.0, rate: Rate | None = None
    ) -> None:
        self.cutoff, self.margin = cutoff, margin
        self.binary = measure == "ap"
        self.rate = rate or constant(1.0)

    def judge(self, order: Ints, y: Floats) -> Judged:
        """RML(order, y) = 1 - NDCG_k or 1 - AP, as in `losses.rankings`, and what the direction needs again."""
        gain: Floats = (y[order] > 0.0).astype(np.float64) if self.binary else gains(y)[order]
        falling = -gain
        by = falling.argsort(kind="stable")
        best = gain[by[: self.cutoff]]
        if self.binary:
            return ap_loss(order, y), falling, by, best, float(np.count_nonzero(best))
        D = discounts(len(best))
        Z = float(best.dot(D))
        loss = max(0.0, float((best - gain[: self.cutoff]).dot(D)) / Z) if Z > 0.0 else 0.0
        best *= D
        return loss, falling, by, best, Z

    def direction(
        self,
        t: Floats,
        y: Floats,
        x: Any = None,
        weights: object = None,
        order: Ints | None = None,
        judged: Judged | None = None,
    ) -> Floats | None:
        """g times the learning rate, or None. `order` and `judged` are those of the scores, where known already."""
        order = ranked(t) if order is None else order
        loss, falling, by, v, Z = judged or self.judge(order, y)
        if loss <= 0.0:
            return None
        v = v / Z
        rival = order[rivals(falling, by)[: self.cutoff]]
        better = order[by[: len(rival)]]
        active = v[: len(rival)] * (t[rival] - t[better] > -self.margin)
        g: Any = np.bincount(rival, active, len(t))
        g[better] -= active
        g *= self.rate(x, v)
        return g  # type: ignore[no-any-return]
