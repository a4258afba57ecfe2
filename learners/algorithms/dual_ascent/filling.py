"""Update III without an interior point: by pouring.

By the KKT conditions of Eq. (11), the relevant labels that change end at one score, the others that change at another, and
either the two are gamma apart or the amount moved is C. So an amount S is poured over each side: it lifts the lowest
relevant labels and presses the highest others. The gap between the sides grows with S, which leaves a search for S.

  water_fill   exact, O(k log k), where all labels share one curve
  newton_fill  otherwise: every label's curve is replaced by its tangent, and the solution of that is the next point
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...instances import Floats, Mask
from .interior import contenders, interior_point
from .responses import Leveled, Tilted, root

__all__ = ["newton_fill", "water_fill"]


GAP = 1e-9
NEWTON_STEPS = 25
FLAT = 1e-9  # a curve this much flatter than the steepest is taken to be no flatter


class _Side:
    """One side's level U after an amount S. Labels have a level and a width; sorting makes it exact.

    With levels l_1 <= l_2 <= ..., H_i = width_1 + ... + width_i and P_i = width_1 l_1 + ... + width_i l_i, label i + 1 is
    reached at S = H_i l_{i+1} - P_i, and U(S) = (S + P_i) / H_i while i labels are under water.
    """

    def __init__(self, levels: Floats, widths: Floats | None = None) -> None:
        if widths is None:
            levels = np.sort(levels)
            self.widths = np.arange(1.0, len(levels) + 1.0)
            self.sums = levels.cumsum()
        else:
            order = levels.argsort()
            levels, widths = levels[order], widths[order]
            self.widths = widths.cumsum()
            self.sums = (widths * levels).cumsum()
        self.joins = self.widths[:-1] * levels[1:] - self.sums[:-1]

    def under(self, amount: float) -> tuple[float, float]:
        """P and H of the labels that are under water."""
        i = int(self.joins.searchsorted(amount, side="right"))
        return float(self.sums[i]), float(self.widths[i])

    def level(self, amount: float) -> float:
        """U(S)."""
        P, H = self.under(amount)
        return (amount + P) / H


Curve = Callable[[float], float]


def _pour(up: _Side, down: _Side, C: float, gamma: float, value: Curve, slope: Curve) -> tuple[float, float]:
    """The two levels at which the gap is gamma, or at which C is used up. `down` holds negated levels.

    Pour C; if that is too much, bisect for the stretch between two labels joining in which the gap passes gamma, where both
    levels are linear in S, and solve there.
    """

    def gap(amount: float) -> float:
        return value(up.level(amount)) - value(-down.level(amount)) - gamma

    amount = C
    if gap(C) > 0.0:
        joins = np.concatenate((up.joins, down.joins))
        joins = np.sort(joins[(joins > 0.0) & (joins < C)])
        first, last = 0, len(joins)
        while first < last:
            middle = (first + last) // 2
            if gap(float(joins[middle])) < 0.0:
                first = middle + 1
            else:
                last = middle
        low = float(joins[first - 1]) if first else 0.0
        high = float(joins[first]) if first < len(joins) else C
        (p, h), (p_, h_) = up.under(low), down.under(low)

        def inside(amount: float) -> tuple[float, float]:
            u, v = (amount + p) / h, -(amount + p_) / h_
            return value(u) - value(v) - gamma, slope(u) / h + slope(v) / h_

        amount = root(inside, low, high)
    return up.level(amount), -down.level(amount)


def water_fill(response: Leveled, relevant: Mask, C: float, gamma: float) -> Floats:
    """alpha of Eq. (11), exact: a step of a moves the level of its label by a."""
    levels = response.levels
    up, down = _Side(levels[relevant]), _Side(-levels[~relevant])
    top, bottom = _pour(up, down, C, gamma, response.value, response.slope)
    return np.where(relevant, np.maximum(top - levels, 0.0), np.minimum(bottom - levels, 0.0))


def newton_fill(response: Tilted, relevant: Mask, C: float, gamma: float) -> Floats:
    """alpha of Eq. (11), for a round with a positive hinge loss, to a duality gap of 1e-9 of what the round gains.

    The gap is that of the linear problem at alpha: C times the hinge loss there, minus what alpha collects at these scores.
    """
    near = contenders(response.scores, relevant, gamma)
    hinge = gamma + float(response.scores[~relevant].max() - response.scores[relevant].min())
    some, inside = response.only(near), relevant[near]
    alpha, step, best = np.zeros(len(near)), np.zeros(len(near)), np.inf
    for _ in range(NEWTON_STEPS):
        trial = alpha + step
        growth, scores, bends = some.moments(trial)
        lost = float(growth.sum()) - gamma * float(trial[inside].sum())
        if lost > best + 1e-15 * C * hinge:
            step = 0.5 * step  # the tangents promised too much
            continue
        alpha, best = trial, lost
        shortfall = max(0.0, gamma - float(scores[inside].min() - scores[~inside].max()))
        gap = C * shortfall - gamma * float(alpha[inside].sum()) + float((alpha * scores).sum())
        if gap <= GAP * max(-best, 1e-4 * C * hinge):
            break
        step = _tangent(alpha, scores, np.maximum(bends, FLAT * bends.max()), inside, C, gamma) - alpha
    else:
        alpha = _settled(interior_point(some, inside, C, gamma).alpha, inside, C)
    whole = np.zeros(len(relevant))
    whole[near] = alpha
    return whole


def _tangent(alpha: Floats, scores: Floats, bends: Floats, inside: Mask, C: float, gamma: float) -> Floats:
    """alpha of Eq. (11) if every score moved along its tangent: score + bend (alpha' - alpha)."""
    levels = scores - bends * alpha
    up, down = _Side(levels[inside], 1.0 / bends[inside]), _Side(-levels[~inside], 1.0 / bends[~inside])
    top, bottom = _pour(up, down, C, gamma, lambda level: level, lambda level: 1.0)
    return np.where(inside, np.maximum(top - levels, 0.0), np.minimum(bottom - levels, 0.0)) / bends


def _settled(alpha: Floats, inside: Mask, C: float) -> Floats:
    """An interior solution moved to the boundary: what is as good as 0 becomes 0, and the sides balance again."""
    alpha = np.where(np.abs(alpha) > 1e-7 * C, alpha, 0.0)
    up, down = float(alpha[inside].sum()), -float(alpha[~inside].sum())
    return np.where(inside, alpha, alpha * (up / down)) if down > 0.0 and up > 0.0 else np.zeros(len(alpha))
