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


def rivals(y: Floats, order: Ints) -> tuple[Ints, Ints]:
    """All items by place, and for those above the lowest grade the top scorer among strictly lower grades."""
    by = order[np.argsort(-y[order], kind="stable")]
    grade = y[by]
    starts = np.flatnonzero(grade[1:] != grade[:-1]) + 1
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    # Within a level the first is the top scorer, so the best of all lower levels is a running best over
    # level heads.
    top = np.minimum.accumulate(position[by[starts]][::-1])[::-1]
    return by, order[np.repeat(top, np.diff(starts, prepend=0))]


def ndcg_weights(y: Floats, by: Ints, cutoff: int | None = None) -> Floats:
    """v_i = G(y_i) D(i) / Z_k for the first k places, Eq. (11) and (24); they sum to 1."""
    v: Floats = gains(y)[by[:cutoff]]
    v *= discounts(len(v))
    v /= v.sum()
    return v


def ap_weights(y: Floats, by: Ints) -> Floats:
    """v_i = 1/r for the r relevant items, which stand first, Eq. (10)."""
    r = int(np.count_nonzero(y > 0.0))
    return np.full(r, 1.0 / r)


class Slam:
    """g = sum_i v_i (e_k(i) - e_i), i the items whose hinge is on, k(i) their rivals; None on a round
    without loss.

    `rate` multiplies g, so the learner's own step is 1.
    """

    def __init__(
        self, measure: str = "ndcg", cutoff: int | None = None, margin: float = 1.0, rate: Rate | None = None
    ) -> None:
        self.measure, self.cutoff, self.margin = measure, cutoff, margin
        self.judge = judge(measure, cutoff)
        self.rate = rate or constant(1.0)

    def direction(self, t: Floats, y: Floats, x: Any = None, weights: object = None) -> Floats | None:
        """g times the learning rate, or None."""
        order = ranked(t)
        if self.judge(order, y) <= 0.0:
            return None
        g, v = self.gradient(t, y, order)
        g *= self.rate(x, v)
        return g

    def gradient(self, t: Floats, y: Floats, order: Ints) -> tuple[Floats, Floats]:
        """The subgradient of phi in t on a mistake round, and the weights v of the places."""
        if self.measure == "ap":
            y = (y > 0.0).astype(np.float64)
        by, rival = rivals(y, order)
        v = ap_weights(y, by) if self.measure == "ap" else ndcg_weights(y, by, self.cutoff)
        count = min(len(v), len(rival))
        better, rival = by[:count], rival[:count]
        active = v[:count] * (t[rival] - t[better] > -self.margin)
        g: Floats = np.bincount(rival, weights=active, minlength=len(t)).astype(np.float64, copy=False)
        g[better] -= active
        return g, v
