"""SLAM: the perceptron for ranking lists (Chaudhuri and Tewari, Algorithm 2).

    phi(t, y) = sum_i v_i max(0, max_{j: y_j < y_i} (Delta + t_j - t_i)),   a bound on 1 - NDCG_k or 1 - AP

Items are placed by grade, equal grades by score, equal scores by index; v_i goes with the place of item i.
Only the top scorer among strictly lower grades can attain the inner maximum, and it is one item a level:
O(m log m) in all.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..instances import Floats, Ints
from ..losses.rankings import ap_loss, discounts, gains, ndcg_loss
from .rates import Rate, constant

Judge = Callable[[Ints, Floats], float]


def judge(measure: str, cutoff: int | None = None) -> Judge:
    """RML(order, y): the loss that makes a round a mistake, 1 - NDCG_k or 1 - AP."""
    if measure == "ap":
        return ap_loss
    return lambda order, y: ndcg_loss(order, y, cutoff)


def ranked(t: Floats) -> Ints:
    """The decision on scores: best first, ties to the item listed first."""
    return np.argsort(-t, kind="stable")


def rivals(grades: Floats) -> Ints:
    """For each position of an order, where the first item of a strictly lower grade stands (m if there is none).

    `grades` are read along the order, so that item is the top scorer among all of lower grade.
    """
    falling = -grades
    return np.maximum.accumulate(falling).searchsorted(falling, "right")


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
        self.judge = judge(measure, cutoff)
        self.rate = rate or constant(1.0)

    def direction(
        self,
        t: Floats,
        y: Floats,
        x: Any = None,
        weights: object = None,
        order: Ints | None = None,
        loss: float | None = None,
    ) -> Floats | None:
        """g times the learning rate, or None. `order` is that of the scores and `loss` its own, where known already."""
        order = ranked(t) if order is None else order
        if (self.judge(order, y) if loss is None else loss) <= 0.0:
            return None
        # Everything below is indexed by position in the order; `by` lists the positions by grade, then by score.
        grades = y[order]
        if self.binary:
            grades = (grades > 0.0).astype(np.float64)
        by = (-grades).argsort(kind="stable")
        v = gains(grades)[by[: self.cutoff]]
        if not self.binary:
            v *= discounts(len(v))
        v /= np.add.reduce(v)
        rival = rivals(grades)[by[: len(v)]]
        count = int(rival.searchsorted(len(t)))  # the lowest grade stands last and has no rival
        better, rival, score = by[:count], rival[:count], t[order]
        active = v[:count] * (score[rival] - score[better] > -self.margin)
        push = np.bincount(rival, weights=active, minlength=len(t)).astype(np.float64, copy=False)
        push[better] -= active
        g: Floats = np.empty(len(t))
        g[order] = push
        g *= self.rate(x, v)
        return g
