"""From theta = g(x) to a decision: z = argmin_z <F_z, theta>, Eq. (22), one function a loss, with scores and the
margin of Eq. (18).

Scores are gaps of the estimated risk, so that they mean the same for every loss:

    sets       score_j = min_{z without j} risk(z) - min_{z with j} risk(z): above 0 for what is in, and the margin
    is min_j |score_j| orders     what a ranking sorts by
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...instances import Floats, Ints, Mask
from ...kernel import times
from ...tasks.task import lead
from .orders import contributions, search

__all__ = [
    "Optimum",
    "average_precision",
    "block_zero_one",
    "f_score",
    "f_sets",
    "hamming",
    "pairwise_disagreement",
    "precision_set",
    "seen_sets",
    "sorted_order",
    "weighted_zero_one",
]


@dataclass(slots=True)
class Optimum:
    """A decision; a score for each label or item; the margin, None where there is no other decision; the objective
    of a search.
    """

    sigma: Any
    scores: Floats
    margin: float | None
    objective: float | None = None


def weighted_zero_one(g: Floats, costs: Floats) -> Optimum:
    """risk(z) = sum_y cost_y g_y - cost_z g_z, with g_y the estimate of P(y | x): the largest cost_z g_z."""
    scores = costs * g
    return Optimum(int(scores.argmax()) if len(g) else -1, scores, lead(scores))


def block_zero_one(g: Floats, groups: Ints) -> Optimum:
    """risk = sum g - (sum of g over the block): the block with the largest sum, and the likeliest label in it.

    Labels of one block are the same decision to this loss, so the margin is the gap to another block. A label
    scores its block's sum, less what it lacks to the best of the block.
    """
    if not len(g):
        return Optimum(-1, g, None)
    sums = np.bincount(groups, weights=g).astype(np.float64)
    leaders = np.full(len(sums), -math.inf)
    np.maximum.at(leaders, groups, g)
    scores = sums[groups] + g - leaders[groups]
    return Optimum(int(scores.argmax()), scores, lead(sums))


def hamming(g: Floats, one: float) -> Optimum:
    """Mean Hamming: score_j = (2 g_j - g_1) / m, the sign of the regression on 2 y_j - 1; `one` = g_1 is that on
    1.
    """
    scores = (2.0 * g - one) / max(1, len(g))
    return Optimum(scores > 0.0, scores, float(np.abs(scores).min()) if len(g) else None)


def precision_set(g: Floats, k: int) -> Optimum:
    """Prec@k over the sets of k labels: the k largest g_j; the best swap of one label gives scores and margin."""
    order = np.argsort(-g, kind="stable")
    sigma = np.zeros(len(g), dtype=bool)
    sigma[order[:k]] = True
    if len(g) <= k:
        return Optimum(sigma, g / k, None)
    last, first = g[order[k - 1]], g[order[k]]
    return Optimum(sigma, (g - np.where(sigma, first, last)) / k, float(last - first) / k)


def f_score(P: Floats, empty: float) -> Optimum:
    """F-score: P[j, s - 1] estimates P(j in y, |y| = s | x), `empty` P(y = 0 | x). The best set of size k is the
    top k of P W.

    value(z) = sum_{j in z} (P W)[j, k], W[s, k] = 2 / (s + k), and value(0) = empty, all in O(m^2 (s + log m)).
    """
    m = len(P)
    if not m:
        return Optimum(np.zeros(0, dtype=bool), np.zeros(0), None, None)
    into, without, totals, order = _f_marginals(P)
    k = int(np.concatenate(([empty], totals)).argmax())
    sigma = np.zeros(m, dtype=bool)
    sigma[order[:k, k - 1]] = True
    scores = into.max(axis=1) - np.maximum(without.max(axis=1), empty)
    return Optimum(sigma, scores, float(np.abs(scores).min()))


def f_gains(P: Floats) -> Floats:
    """P W, of shape (labels, sizes of z)."""
    s, k = np.arange(1, P.shape[1] + 1), np.arange(1, len(P) + 1)
    return times(P, 2.0 / (s[:, None] + k))  # type: ignore[no-any-return]


def _f_marginals(P: Floats) -> tuple[Floats, Floats, Floats, Ints]:
    """The best value of a set of size k with j and of one without j, the best of size k, and the order of labels
    for each k.
    """
    m = len(P)
    gains = f_gains(P)
    order = np.argsort(-gains, axis=0, kind="stable")
    ranked = np.take_along_axis(gains, order, axis=0)
    totals = np.cumsum(ranked, axis=0).diagonal()
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(m)[:, None], axis=0)
    inside = places < np.arange(1, m + 1)
    last = ranked.diagonal()
    first = np.append(np.diagonal(ranked, offset=-1), -math.inf)  # no set of m labels leaves one out
    into = totals + np.where(inside, 0.0, gains - last)
    without = totals - np.where(inside, gains - first, 0.0)
    return into, without, totals, order


def f_sets(P: Floats, empty: float) -> tuple[Mask, Mask]:
    """For each label j the best set with j and the best one without j, as rows of two masks."""
    m = len(P)
    into, without, _, order = _f_marginals(P)
    sets = np.zeros((2, m, m), dtype=bool)
    for j in range(m):
        k = int(into[j].argmax()) + 1
        others = order[:, k - 1][order[:, k - 1] != j]
        sets[0, j, np.append(others[: k - 1], j)] = True
        if without[j].max() > empty:
            k = int(without[j].argmax()) + 1
            sets[1, j, order[:, k - 1][order[:, k - 1] != j][:k]] = True
    return sets[0], sets[1]


def seen_sets(w: Floats, member: Mask, h: Floats) -> Optimum:
    """0-1 over sets: risk(z) = g_1 - w_z, where w_z estimates P(y = z | x) for the sets seen (rows of `member`), 0
    for all others.

    The heaviest set seen, in order of joining, if it weighs more than 0. Else every unseen set is at least as good
    by Eq. (9), and the one nearest to the Hamming decision, by the scores h, is taken.
    """
    m = member.shape[1]
    best_in, best_out = seen_marginals(w, member)
    top = int(w.argmax()) if len(w) else -1
    if top >= 0 and (w[top] > 0.0 or not _unseen(len(w), m)):
        sigma = member[top].copy()
    else:
        taken = {member[i].tobytes() for i in np.flatnonzero(w < 0.0)}
        sigma = _nearest(h, taken)
    scores = best_in - best_out
    return Optimum(sigma, scores, float(np.abs(scores).min()) if m else None)


def _unseen(seen: int, m: int) -> bool:
    return m >= 63 or seen < 1 << m


def seen_marginals(w: Floats, member: Mask) -> tuple[Floats, Floats]:
    """max w_z over the sets with j, and over those without j; 0 where one of them is still unseen."""
    m = member.shape[1]
    order = np.argsort(-w, kind="stable")
    ranked = member[order]
    marginals = []
    for chosen in (ranked, ~ranked):
        best, free = np.full(m, -math.inf), np.ones(m, dtype=bool)
        if len(w):
            first = chosen.argmax(axis=0)
            best = np.where(chosen[first, np.arange(m)], w[order[first]], -math.inf)
        if m < 63:
            free = np.count_nonzero(chosen, axis=0) < 1 << max(0, m - 1)
        marginals.append(np.where(free, np.maximum(best, 0.0), best))
    return marginals[0], marginals[1]


def _nearest(h: Floats, taken: set[bytes]) -> Mask:
    """The set with the least sum of |h| over its differences from {h > 0} that is not taken; by increasing sums
    from a heap.
    """
    start = h > 0.0
    order = np.argsort(np.abs(h), kind="stable")
    costs = np.abs(h)[order].tolist()
    heap: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    while True:
        cost, flips = heapq.heappop(heap)
        sigma = start.copy()
        sigma[order[list(flips)]] ^= True
        if sigma.tobytes() not in taken:
            return sigma
        # Each subset of places comes once: extend by the next place, or move the last place on.
        last = flips[-1] if flips else -1
        if last + 1 < len(costs):
            heapq.heappush(heap, (cost + costs[last + 1], (*flips, last + 1)))
            if flips:
                heapq.heappush(heap, (cost - costs[last] + costs[last + 1], (*flips[:-1], last + 1)))


def sorted_order(v: Floats, steps: Floats) -> Optimum:
    """risk = - sum_j v_j D_{place of j}: by falling v. `steps`[p] = D_p - D_{p+1} >= 0; places of equal D are one
    decision.

    Every other order can be sorted by swaps of neighbours that each lower the risk, the last of them into this
    order: the margin is the least (v_p - v_{p+1}) (D_p - D_{p+1}).
    """
    order = np.argsort(-v, kind="stable")
    gaps = (v[order[:-1]] - v[order[1:]]) * steps[: max(0, len(v) - 1)]
    gaps = gaps[steps[: len(gaps)] > 0.0]
    return Optimum(order, v, float(gaps.min()) if len(gaps) else None)


def pairwise_disagreement(D: Floats, constant: float) -> Optimum:
    """risk = constant + sum_{j < l} D[j, l] 1[l above j]: minimum feedback arc set on the upper triangle D."""
    a, Q, f = disagreement_terms(D)
    return _best_order(a, Q, f, Q.sum(axis=1) - Q.sum(axis=0), constant)


def disagreement_terms(D: Floats) -> tuple[Floats, Floats, Floats]:
    """a, Q, f of the search."""
    return np.zeros(len(D)), np.triu(D, 1), np.ones(len(D))


def average_precision(A: Floats, constant: float) -> Optimum:
    """risk = constant - sum_p (1/p) (A[j, j] + sum_{l above j} A[j, l]) for j at place p; A symmetric: a quadratic
    assignment.
    """
    a, Q, f = ap_terms(A)
    return _best_order(a, Q, f, a + Q.sum(axis=1), constant)


def ap_terms(A: Floats) -> tuple[Floats, Floats, Floats]:
    """a, Q, f of the search."""
    a = A.diagonal().copy()
    return a, A - np.diag(a), -1.0 / np.arange(1, len(A) + 1)


def _best_order(a: Floats, Q: Floats, f: Floats, start: Floats, constant: float) -> Optimum:
    """The search from the order of falling `start`."""
    order, value, gap = search(a, Q, f, np.argsort(-start, kind="stable"))
    return Optimum(order, swap_scores(order, a, Q, f), gap, constant + value)


def swap_scores(order: Ints, a: Floats, Q: Floats, f: Floats) -> Floats:
    """Scores that fall along the order: the last is 0, and each lies above the next by what it costs to swap the
    two.
    """
    scores = np.zeros(len(a))
    scores[order[:-1]] = np.cumsum(swaps(order, a, Q, f)[::-1])[::-1]
    return scores


def swaps(order: Ints, a: Floats, Q: Floats, f: Floats) -> Floats:
    """What it costs to swap each two neighbours: at least 0 at an optimum."""
    u, v, p = order[:-1], order[1:], np.arange(max(0, len(order) - 1))
    own = contributions(order, a, Q)
    lifted = own[1:] - Q[v, u]  # of the lower neighbour, without the upper one above it
    return (f[p] - f[p + 1]) * (lifted - own[:-1]) + f[p + 1] * (Q[u, v] - Q[v, u])
