"""Exact searches over orders: maximise sum_i [ s(i, p_i) + F(p_i) t_i ] over the places p of the items.

assignment   any s: the linear assignment problem of Lemma 3, O(m^3)
merge        s sees two classes of items only: a merge of two sorted lists, O(R (m - R)) for R items in the upper class
even_merge   the same where F falls evenly and s pays less and less for every place further down: O(m log m)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ..instances import Floats, Ints

__all__ = ["assignment", "by_score", "even_merge", "merge"]

# Of the numbers of upper items down to here, and of lower items above.
Bonus = Callable[[Floats, Floats], Floats]
# Of a lower item (from 1) and the number of upper items above it: what the upper items below it gain by its rise.
Falls = Callable[[NDArray[np.intp], NDArray[np.intp]], Floats]

# From this many items on, the assignment solver is given prices to start from.
LONG = 150
# So many cells of a merge, or of costs, are made at a time.
CELLS = 1 << 18


def by_score(t: Floats) -> Ints:
    """The order of falling scores; ties to the lower index."""
    return (-t).argsort(kind="stable")


def _assigned(cost: Floats) -> tuple[Ints, Ints]:
    # Imported on first use: it takes as long as all the rest of the core, and few learners need it.
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    items, places = linear_sum_assignment(cost)
    return items, places


def assignment(t: Floats, F: Floats, gain: Floats, D: Floats) -> Ints:
    """The order that puts item i at place p with the largest sum of t_i F_p - gain_i D_p.

    A price for each place, taken off its column, changes every order's sum by the same: the answer stays exact, and the
    solver is fast where the prices nearly decide it. Long lists get the prices of a sample: every so many items
    against every so many places. Items are sampled along their gains, and their scores among equal ones, where neighbours
    are alike. There is one m x m matrix, of costs, since the solver copies one of values.
    """
    m = len(t)
    prices = np.zeros(m)
    if m >= LONG:
        guide, stride = np.lexsort((t, gain)), m // max(LONG // 3, m // 10)
        sampled = np.arange(stride // 2, m, stride)
        chosen = guide[sampled]
        sample = np.multiply.outer(t[chosen], F[sampled]) - np.multiply.outer(gain[chosen], D[sampled])
        prices = np.interp(np.arange(m), sampled, _prices(sample))
    cost, some = np.empty((m, m)), max(1, CELLS // m)
    for first in range(0, m, some):
        rows = slice(first, first + some)
        part = np.multiply.outer(t[rows], F)
        part -= np.multiply.outer(gain[rows], D)
        part -= prices
        np.negative(part, out=cost[rows])
    items, places = _assigned(cost)
    order = np.empty(m, dtype=np.intp)
    order[places] = items
    return order


def _prices(sample: Floats) -> Floats:
    """v with sample[i, p] - v_p largest at the place that i has in the best order.

    The least such v is the longest path over swaps, v_q = max_p v_p + sample[i, q] - sample[i, p], i the item at p.
    """
    items, places = _assigned(-sample)
    swaps = np.empty_like(sample)
    swaps[places] = sample - sample[items, places][:, None]
    v = np.zeros(len(sample))
    for _ in range(len(sample)):
        longer = (v[:, None] + swaps).max(axis=0)
        if np.array_equal(longer, v):
            break
        v = longer
    return v


def merge(upper: Ints, lower: Ints, t: Floats, F: Floats, bonus: Bonus) -> Ints:
    """The best order when items of one class keep their order of score.

    `upper` and `lower` are the two classes, each by falling score, and F(1) > F(2) > ... . `bonus(a, b)` is what it gives
    to place item a of `upper` (from 1) below b items of `lower`. Exchanging two items of one class that stand against their
    scores never pays, so the best order is a merge: b_1 <= ... <= b_R, the numbers of lower items above each upper
    one. The sum splits over a:

        H_a(b) = bonus(a, b) + F(a + b) t_a + sum_{j > b} (F(j + a) - F(j + a - 1)) t_j    (a, j from 1)

    because lower item j stands at place j + a for the last a above it. Where the rows' own maxima rise with a they are
    the answer; elsewhere V_a(b) = H_a(b) + max_{b' <= b} V_{a-1}(b') is. Rows are made some at a time: what is kept of
    each is where its maximum down to b stands.
    """
    R, N = len(upper), len(lower)
    places, drops, falls = sliding_window_view(F, N + 1), sliding_window_view(F[1:] - F[:-1], N), t[lower]
    some = max(1, CELLS // (N + 1))

    def rows(first: int) -> Floats:
        at = slice(first, min(R, first + some))
        H: Floats = places[at] * t[upper[at], None]
        H += bonus(np.arange(at.start + 1.0, at.stop + 1.0)[:, None], np.arange(N + 1.0))
        H[:, :N] += np.cumsum((drops[at] * falls)[:, ::-1], axis=1)[:, ::-1]
        return H

    above = np.concatenate([rows(first).argmax(axis=1) for first in range(0, R, some)])
    if (above[1:] < above[:-1]).any():
        tops = np.empty((R, N + 1), dtype=np.int32)
        steps, best = np.arange(N + 1, dtype=np.int32), np.zeros(N + 1)
        for first in range(0, R, some):
            for a, row in enumerate(rows(first), first):
                best = np.maximum.accumulate(row + best)
                tops[a, 0] = 0
                tops[a, 1:] = np.where(best[1:] > best[:-1], steps[1:], 0)
                np.maximum.accumulate(tops[a], out=tops[a])
        last = N
        for a in range(R - 1, -1, -1):
            last = above[a] = tops[a, last]
    return _placed(upper, lower, above + np.arange(R))


def even_merge(upper: Ints, lower: Ints, t: Floats, fall: float, bonus: Falls) -> Ints:
    """`merge` where F(p) = F(1) - fall (p - 1), and an upper item gains the less by one more lower item above it the more
    there are already: as average precision and the discounts of NDCG are.

    The merge is x_1 <= ... <= x_N, the numbers of upper items above each lower one. Lower item j rises past upper item
    k, above which j - 1 lower ones stand, for delta_j(k) = fall (t_j - t_k) + what the bonus of k changes by. That falls
    with j, so the best x of each j by itself rises with j, and the answer of one j bounds those on either side:

        x_j = argmax_x sum_{k > x} delta_j(k) = fall ((R - x) t_j - sum_{k > x} t_k) + bonus(j, x).
    """
    R, N = len(upper), len(lower)
    behind = np.append(np.cumsum(t[upper][::-1])[::-1], 0.0)
    own = t[lower]
    x = np.zeros(N, dtype=np.intp)
    step = 1 << N.bit_length()
    while step > 1:
        step >>= 1
        j = np.arange(step - 1, N, 2 * step)
        low = np.where(j >= step, x[j - step], 0)
        high = np.where(j + step < N, x[np.minimum(j + step, N - 1)], R)
        counts = high - low + 1
        starts = np.cumsum(counts) - counts
        rows = np.repeat(j, counts)
        columns = np.arange(len(rows)) - np.repeat(starts - low, counts)
        cells = fall * ((R - columns) * own[rows] - behind[columns]) + bonus(rows + 1, columns)
        best = cells == np.repeat(np.maximum.reduceat(cells, starts), counts)
        x[j] = np.maximum.reduceat(np.where(best, columns, -1), starts)
    return _placed(lower, upper, x + np.arange(N))


def _placed(items: Ints, others: Ints, places: NDArray[np.intp]) -> Ints:
    """The order with `items` at `places`, from 0, and the others in what is left, as they come."""
    order = np.empty(len(items) + len(others), dtype=np.intp)
    order[places] = items
    free = np.ones(len(order), dtype=bool)
    free[places] = False
    order[free] = others
    return order
