"""Searching orders for pairwise disagreement and average precision, which is NP-hard in general.

Both objectives, to be minimised over orders sigma (best first), have the form

    sum_p f_p ( a[sigma_p] + sum_{q < p} Q[sigma_p, sigma_q] ):

what an item adds depends on its place and on WHICH items stand above it, not on their order. So a table over
subsets is exact in O(2^m m), for at most EXACT items; beyond, `insertion`: from a start, one item after the other
to its best place until none moves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ...instances import Floats, Ints

__all__ = ["EXACT", "Even", "Weighed", "contributions", "exact", "insertion", "objective", "search"]

EXACT = 10
# Turns of `insertion` through all items; a few are enough in practice.
TURNS = 20


def objective(order: Ints, a: Floats, Q: Floats, f: Floats) -> float:
    """The sum above."""
    return float((f * contributions(order, a, Q)).sum())


def contributions(order: Ints, a: Floats, Q: Floats) -> Floats:
    """a[sigma_p] + sum_{q < p} Q[sigma_p, sigma_q] for each place p."""
    own: Floats = a[order] + np.tril(Q[np.ix_(order, order)], -1).sum(axis=1)
    return own


def search(a: Floats, Q: Floats, f: Floats, start: Ints) -> tuple[Ints, float, float | None]:
    """The best order, its objective, and the gap to the next best order (beyond EXACT: to the best neighbour)."""
    return exact(a, Q, f) if len(a) <= EXACT else insertion(a, Q, f, start)


def exact(a: Floats, Q: Floats, f: Floats) -> tuple[Ints, float, float | None]:
    """The best order, its objective, and the exact gap to the second best; ties keep lower indices above."""
    m = len(a)
    if m == 0:
        return np.zeros(0, dtype=np.intp), 0.0, None
    subsets = np.arange(1 << m)
    size = np.zeros(1 << m, dtype=np.intp)
    above = np.zeros((m, 1 << m))  # sum of Q[j, l] over l in the subset
    for i in range(m):
        half = 1 << i
        size[half : 2 * half] = size[:half] + 1
        above[:, half : 2 * half] = above[:, :half] + Q[:, i : i + 1]
    # The two least sums over the orders of each subset: best[0] and, of another order, best[1].
    best = np.full((2, 1 << m), np.inf)
    best[0, 0] = 0.0
    last = np.zeros(1 << m, dtype=np.intp)
    for p in range(1, m + 1):
        layer = subsets[size == p]
        options = np.full((2, m, len(layer)), np.inf)
        for j in range(m):
            at = np.flatnonzero(layer >> j & 1)
            before = layer[at] ^ (1 << j)
            options[:, j, at] = best[:, before] + f[p - 1] * (a[j] + above[j, before])
        # The highest index among equals goes last, so that ties keep lower indices above.
        last[layer] = m - 1 - options[0, ::-1].argmin(axis=0)
        best[:, layer] = np.partition(options.reshape(2 * m, -1), 1, axis=0)[:2]
    order = np.empty(m, dtype=np.intp)
    rest = (1 << m) - 1
    for p in range(m - 1, -1, -1):
        order[p] = last[rest]
        rest ^= 1 << int(order[p])
    gap = float(best[1, -1] - best[0, -1])
    return order, objective(order, a, Q, f), gap if m > 1 else None


def insertion(a: Floats, Q: Floats, f: Floats, start: Ints) -> tuple[Ints, float, float | None]:
    """A local optimum under moves of one item, its objective, and the gap to the best neighbour.

    Items are taken in turn, each to its best place, in O(m) an item, until a whole turn moves none.
    """
    m = len(start)
    if m < 2:
        return start, objective(start, a, Q, f), None
    # A move must pay more than rounding can fake, else two orders of equal value could alternate.
    least = 1e-12 * float(np.abs(f).max()) * float(np.abs(Q).sum() + np.abs(a).sum())
    search: Search = Even(Q, start) if f.min() == f.max() == 1.0 else Weighed(a, Q, f, start)
    gap = 0.0
    for _ in range(TURNS):
        gap, still = np.inf, True
        for item in range(m):
            p = int(np.flatnonzero(search.order == item)[0])
            delta = search.moves(p)
            q = int(delta.argmin())
            gap = min(gap, float(delta[q]))
            if delta[q] < -least:
                search.move(p, q)
                still = False
        if still:
            break
    return search.order, objective(search.order, a, Q, f), max(0.0, gap)


class Search(ABC):
    """An order on its way to an optimum."""

    order: Ints

    @abstractmethod
    def moves(self, p: int) -> Floats:
        """delta[q]: what it adds to the objective to move the item at place p to place q; inf at p."""

    @abstractmethod
    def move(self, p: int, q: int) -> None:
        """Move the item at place p to place q."""


class Even(Search):
    """f = 1: places count alike. To pass item l upwards, u adds W[l, u] = Q[l, u] - Q[u, l], whatever their places."""

    def __init__(self, Q: Floats, start: Ints) -> None:
        self.order: Ints = start.copy()
        self.W = Q - Q.T

    def moves(self, p: int) -> Floats:
        passed = np.cumsum(self.W[self.order[p]].take(self.order))  # of all above, and itself, which is 0
        delta: Floats = passed - passed[p]
        delta[1 : p + 1] = delta[:p]  # upwards it passes the item at place q too
        delta[0] = -passed[p]
        delta[p] = np.inf
        return delta

    def move(self, p: int, q: int) -> None:
        order, u = self.order, self.order[p]
        if q < p:
            order[q + 1 : p + 1] = order[q:p].copy()
        else:
            order[p:q] = order[p + 1 : q + 1].copy()
        order[q] = u


class Weighed(Search):
    """Any f, in O(m) a move: `own` is contributions(order), brought up to date with every move."""

    a: Floats
    f: Floats

    def __init__(self, a: Floats, Q: Floats, f: Floats, start: Ints) -> None:
        self.order = start.copy()
        self.a, self.Q, self.f = a, Q, f
        self.own: Floats = contributions(start, a, Q)

    def moves(self, p: int) -> Floats:
        a, Q, f = self.a, self.Q, self.f
        u, others = self.order[p], np.delete(self.order, p)
        without = np.delete(self.own, p)
        without[p:] -= Q[others[p:], u]
        # With u at place q, the first q of the others stand above it, at their places, and the rest one place lower.
        above = np.concatenate(([0.0], np.cumsum(f[:-1] * without)))
        below = np.concatenate((np.cumsum((f[1:] * (without + Q[others, u]))[::-1])[::-1], [0.0]))
        totals = above + below + f * (a[u] + np.concatenate(([0.0], np.cumsum(Q[u, others]))))
        delta: Floats = totals - totals[p]
        delta[p] = np.inf
        return delta

    def move(self, p: int, q: int) -> None:
        Q, item = self.Q, self.order[p]
        others, without = np.delete(self.order, p), np.delete(self.own, p)
        without[p:] -= Q[others[p:], item]
        without[q:] += Q[others[q:], item]
        self.own = np.insert(without, q, self.a[item] + Q[item, others[:q]].sum())
        self.order: Ints = np.insert(others, q, item)
