"""One round of the automatic learner of lists: the specification. The formulas are in algorithms/auto/list_pool.py.

    list_inputs   values scaled within the list -> C, two columns a feature: the value and the rank, each minus its mean
    list_scores   C -> the scores of the four scorers, theirs brought to one spread, the six members', and the pool's
    list_round    one round of learning, in place: the last thing that can fail has not changed anything yet

Sums run from the first to the last, so that plain loops give the same bits. `w` has a row an input (2 j the value of
feature j, 2 j + 1 its rank) and a column a scorer: ridge, list, pair, coin.
"""

from typing import NamedTuple

import numpy as np

from .elementary import Floats, exp, row_total, softmax, total
from .products import times
from .reference import Ints
from .trust import gap_after, hedge, solve

KAPPA = np.array([1.0, 1.0, 0.5])
RIDGE = np.array([3.0, 0.1, 0.3])
CAUTION = 4.0
STEPS = 2  # of conjugate gradients
PAIRED = 512  # partners of an item, about: a longer list takes every second, third, ... item as one
TOP = 10  # of NDCG
FLAT = 1e-12  # a spread below it is none
MEMBERS = 6
EVERYBODY = np.ones(MEMBERS - 1, dtype=bool)
PRIOR = np.full(MEMBERS, 1.0 / MEMBERS)
NOBODY = np.zeros(MEMBERS - 1)
DOUBT = float.fromhex("0x1.cab0bfa2a2002p+0")  # ln 6


class ListState(NamedTuple):
    """What a round changes. `A` is a matrix, or the bounds on its rows; `shares` are the members' in the pool."""

    w: Floats  # (inputs, 4)
    r: Floats  # (inputs, 3): what is left of the equations that w solves
    A: Floats  # (inputs, inputs), or (inputs,)
    coin: Floats  # (features, 4): theta, sum |g|, largest |g|, reward
    a: Floats  # (4,): the stack's
    S: Floats  # (4, 4)
    losses: Floats  # (6,)
    shares: Floats  # (6,)


def list_inputs(values: Floats) -> Floats:
    """C: v - mean v, and (number below - number above) / (2 (m - 1)) of v as float32, whose mean is 0."""
    count, features = values.shape
    C = np.empty((count, 2 * features))
    C[:, 0::2] = values - (row_total(values) / count + 0.0 if features else 0.0)
    with np.errstate(over="ignore"):  # beyond float32 they are equal: infinite
        rounded = values.astype(np.float32)
    order = rounded.argsort(axis=0, kind="stable")
    ordered = np.take_along_axis(rounded, order, axis=0)
    places = np.arange(count)[:, None]
    begins = np.ones((count, features), dtype=bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=0)
    ends = np.ones((count, features), dtype=bool)
    ends[:-1] = begins[1:]
    last = np.minimum.accumulate(np.where(ends, places, count)[::-1], axis=0)[::-1]
    ranks = np.empty((count, features))
    np.put_along_axis(ranks, order, (first + last - (count - 1)).astype(np.float64), axis=0)
    C[:, 1::2] = ranks * (0.5 / max(count - 1, 1))
    return C


def places_of(rows: Ints) -> Ints:
    """The inputs of features: 2 j and 2 j + 1."""
    return np.stack([2 * rows, 2 * rows + 1], axis=1).reshape(-1)


def one_spread(s: Floats) -> Floats:
    """(s - mean s) / sd s; zeros where they are all alike. No zero has a sign."""
    off = s - total(s) / len(s)
    spread = float(np.sqrt(total(off * off) / len(s)))
    return off / spread + 0.0 if spread > FLAT else np.zeros(len(s))


def list_scores(C: Floats, rows: Ints, w: Floats, a: Floats, shares: Floats) -> tuple[Floats, Floats, Floats]:
    """(t, E, score): (4, m) scores of the scorers, (6, m) of the members, the first four of them the z, and the pool's."""
    t = np.ascontiguousarray(times(C, w[places_of(rows)]).T) if len(rows) else np.zeros((4, len(C)))
    E = np.zeros((MEMBERS, len(C)))
    for k in range(4):
        E[k] = one_spread(t[k])
    E[4] = one_spread(row_total(E[:4]) * 0.25)
    E[5] = one_spread(row_total(E[:4] * np.where(a > 0.0, a, 0.0)[:, None]))
    return t, E, row_total(E * shares[:, None])


def top_losses(E: Floats, gain: Floats, discounts: Floats) -> list[float]:
    """1 - NDCG at 10 of the order of every row of scores; ties go to the item listed first."""
    best = -np.sort(-gain)[: len(discounts)]
    ideal = total(best * discounts)
    losses = []
    for scores in E:
        order = (-scores).argsort(kind="stable")[: len(discounts)]
        losses.append(max(0.0, total((best - gain[order]) * discounts) / ideal))
    return losses


def pair_push(s: Floats, gain: Floats) -> Floats:
    """sum_j l_ij - sum_j l_ji, l_ij = W_ij / (1 + e^(s_i - s_j)), W_ij = max(G_i - G_j, 0) / their sum.

    1 / (1 + e^(s_i - s_j)) = e_j / (e_i + e_j) with e_i = e^(s_i - max s): as many exponentials as there are items.
    """
    count = len(s)
    e = exp(s - s.max())
    stride = -(-count // PAIRED)
    gaps, push = np.zeros(count), np.zeros(count)
    for first in range(min(stride, count)):
        own = slice(first, count, stride)
        G, p = gain[own], e[own]
        over = np.maximum(G[:, None] - G, 0.0)
        gaps[own] = np.add.accumulate(over, axis=1)[:, -1]
        pushed = over * (p / (p[:, None] + p))
        push[own] = np.add.accumulate(pushed, axis=1)[:, -1] - row_total(pushed)
    whole = total(gaps)
    return push / whole if whole > 0.0 else np.zeros(count)


def list_round(
    inputs: tuple[Floats, Floats, Ints],
    truth: tuple[Floats, Floats, Floats],
    looked: tuple[Floats, Floats],
    weight: float,
    state: ListState,
    gaps: float,
) -> tuple[float, float]:
    """(the loss of a member drawn by its share, D after the round).

    `inputs` are C, the values and the features of its columns; `truth` the gains, the grades, and NDCG's discounts;
    `looked` t and E of `list_scores`.
    """
    C, values, rows = inputs
    gain, grades, discounts = truth
    t, E = looked
    count, share = len(C), gain / total(gain)
    losses = top_losses(E, gain, discounts)
    mean = 0.0
    for trust, loss in zip(state.shares.tolist(), losses, strict=True):
        mean += trust * loss
    d = np.stack(
        [
            ((gain - total(gain) / count) - t[0]) / count,
            share - softmax(t[1]),
            pair_push(t[2], gain),
        ],
        axis=1,
    )
    gaps = gap_after(losses, state.losses, state.shares, EVERYBODY, DOUBT, gaps)
    spent = state.losses + losses
    shares, _ = hedge(PRIOR, EVERYBODY, spent, DOUBT, gaps, NOBODY)
    S, a = _stacked(E[:4], share, weight, state)
    coin, bets = _bet(values, rows, grades, weight, state)
    w, r, A = _solved(C, rows, d, weight, state)
    w[2 * rows, 3] = bets
    for old, new in zip(state, (w, r, A, coin, a, S, spent, shares), strict=True):
        old[...] = new
    return mean, gaps


def _stacked(Z: Floats, share: Floats, weight: float, state: ListState) -> tuple[Floats, Floats]:
    """S += Z Z' / m; a += S^{-1} Z (share - softmax(a' Z))."""
    S = state.S + times(Z, np.ascontiguousarray(Z.T)) * (weight / Z.shape[1])
    g = times(Z, share - softmax(row_total(Z * state.a[:, None]))) * weight
    return S, state.a + solve(S.tolist(), g.tolist())


def _bet(
    values: Floats, rows: Ints, grades: Floats, weight: float, state: ListState
) -> tuple[Floats, Floats]:
    """The coin's state and weights after all items, one after the other."""
    coin, w = state.coin.copy(), state.w[2 * rows, 3]
    theta, sums, largest, reward = coin[rows].T.copy()
    for f, grade in zip(values, grades.tolist(), strict=True):
        g = f * (weight * (_in_lanes(f * w) - grade))
        size = np.abs(g)
        largest = np.maximum(largest, size)
        sums = sums + size
        reward = np.maximum(reward - g * w, 0.0)
        theta = theta - g
        with np.errstate(over="ignore"):  # nothing is bet against an infinite floor
            floor = np.maximum(sums + largest, CAUTION * largest) * largest
        bet = floor > 0.0
        w = np.where(bet, theta / np.where(bet, floor, 1.0) * (largest + reward), 0.0)
    coin[rows] = np.stack([theta, sums, largest, reward], axis=1)
    return coin, w


def _in_lanes(products: Floats) -> float:
    """Their sum: of every eighth from the first on, from the second on, ..., and of these eight."""
    whole = len(products) // 8 * 8
    sums = np.zeros(8)
    for eight in products[:whole].reshape(-1, 8):
        sums += eight
    sums[: len(products) - whole] += products[whole:]
    return total(sums)


def _solved(
    C: Floats, rows: Ints, d: Floats, weight: float, state: ListState
) -> tuple[Floats, Floats, Floats]:
    """r += C' d; then w goes along r: by conjugate gradients, or by the bounds."""
    places, scale = places_of(rows), weight / len(C)
    w, r, A = state.w.copy(), state.r.copy(), state.A.copy()
    if not len(rows):
        return w, r, A
    pull = times(np.ascontiguousarray(C.T), d) * weight
    if A.ndim == 1:
        size = np.abs(C)
        A[places] += times(np.add.accumulate(size, axis=1)[:, -1], size) * scale
        w[places, :3] += pull / (A[places][:, None] * KAPPA + RIDGE)
        return w, r, A
    A[np.ix_(places, places)] += times(np.ascontiguousarray(C.T), C) * scale
    r[places] += pull
    diagonal = np.diagonal(A)[:, None] * KAPPA + RIDGE
    z = r / diagonal
    p, rho = z, row_total(r * z)
    for _ in range(STEPS):
        q = times(A, p) * KAPPA + p * RIDGE
        curve = row_total(p * q)
        step = np.where(curve > 0.0, rho / np.where(curve > 0.0, curve, 1.0), 0.0)
        w[:, :3] += p * step
        r -= q * step
        z = r / diagonal
        before, rho = rho, row_total(r * z)
        p = z + p * np.where(before > 0.0, rho / np.where(before > 0.0, before, 1.0), 0.0)
    return w, r, A
