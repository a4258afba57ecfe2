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


def rivals(grades: Floats, order: Ints) -> tuple[Ints, Ints]:
    """The items by place, and for all above the lowest grade the top scorer among strictly lower grades.

    Along the order, the first item of a grade below y is where the running minimum of the grades falls below y.
    """
    falling = -grades[order]
    by = falling.argsort(kind="stable")
    lowest = np.maximum.accumulate(falling)
    levels = falling[by]
    levels = levels[: levels.searchsorted(lowest[-1])]
    return order[by], order[lowest.searchsorted(levels, "right")]


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
        if self.binary:
            y = (y > 0.0).astype(np.float64)
        places, rival = rivals(y, order)
        v = gains(y)[places[: self.cutoff]]
        if not self.binary:
            v *= discounts(len(v))
        v /= np.add.reduce(v)
        rival = rival[: self.cutoff]
        better = places[: len(rival)]
        active = v[: len(rival)] * (t[rival] - t[better] > -self.margin)
        g: Any = np.bincount(rival, active, len(t))
        g[better] -= active
        g *= self.rate(x, v)
        return g  # type: ignore[no-any-return]
