"""Dual ascent with the squared norm, in score space: updates I, II and III of Section 3 as plain loops.

    max  gamma sum_{r in Y} alpha_r - sum_r (alpha_r t_r + alpha_r^2 |x|^2 / 2)                               Eq. (11)
    s.t. sum_r alpha_r = 0,  sum_{r in Y} alpha_r <= C,  alpha >= 0 on Y,  alpha <= 0 off Y

By its KKT conditions, the relevant labels that change end at one score, the others that change at another, and either the
two are gamma apart or the amount moved is C: an amount S is poured over each side, lifting the lowest relevant labels and
pressing the highest others. No label ends beyond the worst pair's other side by more than gamma, so that only labels
within gamma of it take part, mostly a handful.
"""

import math
from typing import Any

import numpy as np

from .elementary import Floats, total

MANY = 1_000  # labels from which only those that are asked for are put in order
_ZERO = np.array(0.0)
MET = 1.0 - 1e-12  # a margin that lacks this little of gamma lacks nothing but rounding


def pour(up: list[float], down: list[float], most: float, gap: float) -> tuple[float, float]:
    """The two levels after S was poured: the least S that makes them `gap` apart, or `most`. `down` is negated and ascends.

    With H labels of sum P under water the level is (S + P) / H, and the next one joins at S = H level - P.
    """
    up.sort()
    P, H, Q, K = up[0], 1.0, down[0], 1.0
    i = j = 1
    ups, downs = len(up), len(down)
    one = up[1] - P if ups > 1 else math.inf
    other = down[1] - Q if downs > 1 else math.inf
    while True:
        amount = (gap - (P / H + Q / K)) / (1.0 / H + 1.0 / K)
        after = one if one <= other else other
        if after >= most or amount <= after:
            break
        if one <= other:
            P, H, i = P + up[i], H + 1.0, i + 1
            one = H * up[i] - P if i < ups else math.inf
        else:
            Q, K, j = Q + down[j], K + 1.0, j + 1
            other = K * down[j] - Q if j < downs else math.inf
    amount = 0.0 if amount < 0.0 else most if amount > most else amount
    return (amount + P) / H, -((amount + Q) / K)


def pour_one(up: float, down: list[float], most: float, gap: float) -> tuple[float, float]:
    """`pour` where one label is relevant: the same operations, but that P / 1 is P."""
    Q, K = down[0], 1.0
    amount = (gap - (up + Q)) / 2.0
    for level in down[1:]:
        after = K * level - Q
        if after >= most or amount <= after:
            break
        Q += level
        K += 1.0
        amount = (gap - (up + Q / K)) / (1.0 + 1.0 / K)
    amount = 0.0 if amount < 0.0 else most if amount > most else amount
    return amount + up, -((amount + Q) / K)


def ascend(
    t: Floats, relevant: Any, square: float, update: int, C: float, gamma: float
) -> tuple[bool, Floats | None, float, float]:
    """(mistake, g, total, growth) of one round on scores t of an x with |x|^2 = `square`.

    `relevant` is the one relevant label, or a mask. g = -alpha, None where no weight changes; total is the sum of alpha
    over Y, and growth = sum_r alpha_r t_r + |x|^2 alpha_r^2 / 2 what the step takes from the dual objective.
    """
    if update == 3 and type(relevant) is int:
        return ascend_to_one(t, relevant, square, C, gamma)
    mask = isinstance(relevant, np.ndarray)
    inside = relevant.nonzero()[0].tolist() if mask else [relevant]
    if not inside or len(inside) == len(t):
        return False, None, 0.0, 0.0
    scores = t[inside].tolist() if mask else [t.item(relevant)]
    others = t.copy()
    others[relevant] = -math.inf
    s = int(others.argmax())
    low, high = min(scores), t.item(s)
    mistake = low <= high
    if not square > 0.0 or (not mistake if update == 1 else low - high >= MET * gamma):
        return mistake, None, 0.0, 0.0
    if update == 3:
        reach = low - gamma, high + gamma
        g = _fill(t, others, list(zip(inside, scores, strict=True)), square, C, gamma, reach)
        if g is None:
            return mistake, None, 0.0, 0.0
    else:
        tau = C
        if update == 2:
            tau = (gamma - (low - high)) / (2.0 * square)
            tau = 0.0 if tau < 0.0 else C if tau > C else tau
        g = np.zeros(len(t))
        g[inside[scores.index(low)]], g[s] = -tau, tau
    amount = 0.0
    for r in inside:
        amount -= g.item(r)
    # Labels that do not change add zeros to both sums.
    return mistake, g, amount, 0.5 * square * total(g * g) - total(g * t)


def ascend_to_one(
    t: Floats, y: int, square: float, C: float, gamma: float
) -> tuple[bool, Floats | None, float, float]:
    """`ascend` by update III where the one label y is relevant: most rounds are of this kind."""
    if len(t) < 2:
        return False, None, 0.0, 0.0
    others = t.copy()
    others[y] = -math.inf
    low, high = t.item(y), t.item(others.argmax())
    mistake, above = low <= high, low - gamma
    if not square > 0.0 or low - high >= MET * gamma or not low <= high + gamma:
        return mistake, None, 0.0, 0.0
    # Mostly all labels are within reach, which the lowest says.
    near = None if t.item(t.argmin()) >= above else others >= above
    count = len(t) - 1 if near is None else int(np.count_nonzero(near))
    if not count:
        return mistake, None, 0.0, 0.0
    levels = others / -square  # negated
    down = levels.copy()
    down.sort()
    level = low / square
    top, bottom = pour_one(level, down[:count].tolist(), C, gamma / square)
    g: Floats = -bottom - levels
    np.maximum(g, _ZERO, out=g)
    if near is not None:
        g *= near
    amount = top - level
    if amount > 0.0:
        g[y] = -amount
    amount = 0.0 - g.item(y)
    return mistake, g, amount, 0.5 * square * total(g * g) - total(g * t)


def _fill(
    t: Floats,
    others: Floats,
    inside: list[tuple[int, float]],
    square: float,
    C: float,
    gamma: float,
    reach: tuple[float, float],
) -> Floats | None:
    """g of update III; None where scores are not finite. `reach`: where labels that take part end, below and above.

    `others` are the scores, minus infinity for those that are relevant, which are `inside` with their scores.
    """
    ups = [(r, score / square) for r, score in inside if score <= reach[1]]
    # Mostly all labels are within reach, which the lowest says.
    near = None if t.item(t.argmin()) >= reach[0] else others >= reach[0]
    count = len(t) - len(inside) if near is None else int(np.count_nonzero(near))
    if not ups or not count:
        return None
    levels = others / -square  # negated
    down = levels.copy()
    down.sort()
    top, bottom = pour([level for _, level in ups], down[:count].tolist(), C, gamma / square)
    g: Floats = np.maximum(-bottom - levels, _ZERO)
    if near is not None:
        g *= near
    for r, level in ups:
        if top - level > 0.0:
            g[r] = -(top - level)
    return g


def best(t: Floats, count: int) -> tuple[list[int], list[float]]:
    """The labels of the highest scores and those scores, best first; of equals, what joined first."""
    if 0 <= count < len(t):
        if len(t) > MANY:
            least = np.partition(t, len(t) - count)[len(t) - count] if count else math.inf
            among = (t >= least).nonzero()[0]
            order = among[(-t[among]).argsort(kind="stable")][:count]
            return order.tolist(), t[order].tolist()
        # A sort that keeps no order of equals takes a third of the time: it will do where no two of these are equal.
        order = t.argsort()[: -count - 2 : -1]
        scores = t.take(order).tolist()
        if len(set(scores)) == len(scores) and not math.isnan(scores[0]):
            return order[:count].tolist(), scores[:count]
    order = (-t).argsort(kind="stable")
    if count >= 0:
        order = order[:count]
    return order.tolist(), t.take(order).tolist()
