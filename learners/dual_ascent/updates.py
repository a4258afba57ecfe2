"""The three updates of Section 3: alpha, the dual variables of one round, by label.

    max  gamma sum_{r in Y} alpha_r - sum_r G(theta_r + alpha_r x)                                            Eq. (11)
    s.t. sum_r alpha_r = 0,  sum_{r in Y} alpha_r <= C,  alpha >= 0 on Y,  alpha <= 0 off Y

  I    C on the pair (r', s') that is most wrong, on mistakes only
  II   the best amount on that pair, whenever it lacks the margin gamma
  III  the optimum of (11)

A round changes weights by theta_r <- theta_r + alpha_r x: the direction is g = -alpha. None stands for no update.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .interior import interior_point
from .responses import Array, Leveled, Response, Tilted, root

__all__ = ["UPDATES", "is_mistake", "update_I", "update_II", "update_III", "water_fill", "worst_pair"]

Mask = NDArray[np.bool_]
Update = Callable[[Response, Mask, float, float], Array | None]


def worst_pair(scores: Array, relevant: Mask) -> tuple[int, int]:
    """(r', s') of Eq. (7): the lowest relevant label and the highest other one; of equals, what joined first."""
    r = int(np.where(relevant, scores, np.inf).argmin())
    s = int(np.where(relevant, -np.inf, scores).argmax())
    return r, s


def is_mistake(scores: Array, relevant: Mask) -> bool:
    """True where some relevant label does not stand above every other; an empty or full set has no pair to fail."""
    r, s = worst_pair(scores, relevant)
    return bool(relevant[r] and not relevant[s] and scores[r] <= scores[s])


def update_I(response: Response, relevant: Mask, C: float, gamma: float) -> Array | None:
    """alpha_{r'} = C, alpha_{s'} = -C on a mistake."""
    del gamma
    r, s = worst_pair(response.scores, relevant)
    return _on_pair(response, r, s, C) if response.scores[r] <= response.scores[s] else None


def update_II(response: Response, relevant: Mask, C: float, gamma: float) -> Array | None:
    """alpha_{r'} = tau, alpha_{s'} = -tau, tau the maximum over [0, C] of the dual objective."""
    r, s = worst_pair(response.scores, relevant)
    if response.scores[r] - response.scores[s] >= gamma:
        return None
    return _on_pair(response, r, s, response.pair(r, s, gamma, C))


def update_III(response: Response, relevant: Mask, C: float, gamma: float) -> Array | None:
    """The optimum of Eq. (11): exact where labels share a curve, else by the interior point method."""
    r, s = worst_pair(response.scores, relevant)
    if response.scores[r] - response.scores[s] >= gamma:
        return None
    if not isinstance(response, Tilted):
        return water_fill(response, relevant, C, gamma)  # type: ignore[arg-type]
    return interior_point(response, relevant, C, gamma).alpha


UPDATES: dict[str, Update] = {"I": update_I, "II": update_II, "III": update_III}


def _on_pair(response: Response, r: int, s: int, tau: float) -> Array:
    alpha = np.zeros(len(response.scores))
    alpha[r], alpha[s] = tau, -tau
    return alpha


class _Side:
    """Pouring an amount S over one side: it lifts the lowest levels to a common one, U(S). Sorting makes it exact.

    With levels l_1 <= l_2 <= ... and P_i = l_1 + ... + l_i, label i + 1 is reached at S = i l_{i+1} - P_i, and
    U(S) = (S + P_i) / i while i labels are under water.
    """

    def __init__(self, levels: Array) -> None:
        self.levels = np.sort(levels)
        self.sums = self.levels.cumsum()
        self.joins = np.arange(1.0, len(levels)) * self.levels[1:] - self.sums[:-1]

    def level(self, amount: float) -> tuple[float, int]:
        """U(S) and the number of labels under water."""
        i = int(self.joins.searchsorted(amount, side="right"))
        return (amount + float(self.sums[i])) / (i + 1), i + 1


def water_fill(response: Leveled, relevant: Mask, C: float, gamma: float) -> Array:
    """Update III in O(k log k): lift the lowest relevant labels to one level, press the highest others down to another.

    By the KKT conditions of (11) the labels that change on one side end at one score, and either the two scores are gamma
    apart or the amount moved is C. The gap between the two grows with the amount, so: pour C; if that is too much, find
    the stretch between two labels joining in which the gap passes gamma (bisection), and solve inside it.
    """
    levels = response.levels
    up, down = _Side(levels[relevant]), _Side(-levels[~relevant])

    def gap(amount: float) -> float:
        return response.value(up.level(amount)[0]) - response.value(-down.level(amount)[0]) - gamma

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
        _, i = up.level(low)
        _, j = down.level(low)
        lifted, pressed = float(up.sums[i - 1]), float(down.sums[j - 1])

        def inside(amount: float) -> tuple[float, float]:
            u, v = (amount + lifted) / i, -(amount + pressed) / j
            slope = response.slope(u) / i + response.slope(v) / j
            return response.value(u) - response.value(v) - gamma, slope

        amount = root(inside, low, high)
    top, bottom = up.level(amount)[0], -down.level(amount)[0]
    return np.where(relevant, np.maximum(top - levels, 0.0), np.minimum(bottom - levels, 0.0))
