"""Exact searches over orders: maximise sum_i [ s(i, p_i) + F(p_i) t_i ] over the places p of the items.

assignment   any s: the linear assignment problem of Lemma 3, O(m^3)
merge        s sees two classes of items only: a merge of two sorted lists, O(R (m - R)) for R items in the upper class
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from .task import Array

__all__ = ["Order", "assignment", "by_score", "merge"]

Order = NDArray[np.intp]

# From this many items on, the assignment solver is given prices to start from.
LONG = 150


def by_score(t: Array) -> Order:
    """The order of falling scores; ties to the lower index."""
    return (-t).argsort(kind="stable")


def assignment(value: Array, *keys: Array) -> Order:
    """The order that puts item i at place p with the largest sum of value[i, p].

    A price for each place, taken off its column, changes every order's sum by the same: the answer stays exact, and the
    solver is fast where the prices nearly decide it. Long lists get the prices of a sample: every so many items
    against every so many places. Items are sampled along `keys`, the last counting most, where neighbours are alike.
    """
    m = len(value)
    if m >= LONG:
        value = value - _prices(value, np.lexsort(keys), m // max(LONG // 3, m // 10))
    items, places = linear_sum_assignment(value, maximize=True)
    order = np.empty(m, dtype=np.intp)
    order[places] = items
    return order


def _prices(value: Array, guide: Order, stride: int) -> Array:
    """v with value[i, p] - v_p largest at the place that i has in the sample's best order, between samples a line.

    The least such v is the longest path over swaps, v_q = max_p v_p + value[i, q] - value[i, p], i the item at p.
    """
    m = len(value)
    sampled = np.arange(stride // 2, m, stride)
    sample = value[np.ix_(guide[sampled], sampled)]
    items, places = linear_sum_assignment(sample, maximize=True)
    swaps = np.empty_like(sample)
    swaps[places] = sample - sample[items, places][:, None]
    v = np.zeros(len(sampled))
    for _ in range(len(sampled)):
        longer = (v[:, None] + swaps).max(axis=0)
        if np.array_equal(longer, v):
            break
        v = longer
    return np.interp(np.arange(m), sampled, v)


def merge(upper: Order, lower: Order, t: Array, F: Array, bonus: Array) -> Order:
    """The best order when items of one class keep their order of score.

    `upper` and `lower` are the two classes, each by falling score, and F(1) > F(2) > ... . `bonus[a, b]` is what it gives
    to place item a of `upper` (from 0) below b items of `lower`. Exchanging two items of one class that stand against their
    scores never pays, so the best order is a merge, told by b_1 <= ... <= b_R, the numbers of lower items above each
    upper one. The sum splits over a:

        H_a(b) = bonus(a, b) + F(a + b) t_a + sum_{j > b} (F(j + a) - F(j + a - 1)) t_j    (a, j from 1)

    because lower item j stands at place j + a for the last a above it. Where the rows' own maxima rise with a they are
    the answer; elsewhere V_a(b) = H_a(b) + max_{b' <= b} V_{a-1}(b') is.
    """
    R, N = len(upper), len(lower)
    H = sliding_window_view(F, N + 1) * t[upper][:, None]
    H += bonus
    drops = sliding_window_view(F[1:] - F[:-1], N) * t[lower]
    H[:, :N] += np.cumsum(drops[:, ::-1], axis=1)[:, ::-1]
    above = H.argmax(axis=1)
    if R > 1 and (above[1:] < above[:-1]).any():
        for a in range(1, R):
            H[a] += np.maximum.accumulate(H[a - 1])
        last = N
        for a in range(R - 1, -1, -1):
            last = int(H[a, : last + 1].argmax())
            above[a] = last
    order = np.empty(R + N, dtype=np.intp)
    places = above + np.arange(R)
    order[places] = upper
    free = np.ones(R + N, dtype=bool)
    free[places] = False
    order[free] = lower
    return order
