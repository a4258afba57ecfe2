"""One round of the automatic learner's pool, in place: the specification. The formulas are in algorithms/auto/pool.py."""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from .elementary import Floats, exp, exp_of, log, log_of
from .products import times
from .reference import Ints

FORGET = 0.998
DAMPING = 3.0


def log_losses(T: Floats, Y: Floats, bits: bool) -> tuple[Floats, Floats]:
    """-sum_k Y_k log p_k of every row of T, for bits the mean of the bits' log losses; and p of the first row."""
    if bits:
        wrong = np.where(Y > 0.5, -T, T)
        small = exp(-np.abs(wrong))
        each = np.maximum(wrong, 0.0) + log(1.0 + small)
        p = np.where(T[0] >= 0.0, 1.0, small[0]) / (1.0 + small[0])
        return _sums(each) / T.shape[1], p
    top = T.max(axis=1)
    powers = exp(T - top[:, None])
    sums = _sums(powers)
    # A few numbers: one by one they take less than arrays do.
    logs = np.array([log_of(each) for each in sums.tolist()])
    return logs + top - times(T, Y), powers[0] / sums[0]


def _sums(rows: Floats) -> Floats:
    return np.asarray(np.add.accumulate(rows, axis=1)[:, -1] + 0.0)


def hedge(
    prior: Floats, present: NDArray[np.bool_], losses: Floats, doubt: float, gaps: float, a: Floats
) -> tuple[Floats, Floats]:
    """w, the trust in Newton's weights and in every expert alone; and what each expert's log-odds count with it."""
    each, here = losses.tolist(), [True, *present.tolist()]
    least = min(loss for loss, one in zip(each, here, strict=True) if one)
    eta = doubt / gaps if gaps > 0.0 else math.inf
    w, whole = [], 0.0
    for loss, own, one in zip(each, prior.tolist(), here, strict=True):
        behind = loss - least
        share = own if one else 0.0
        if one and not behind <= 0.0:
            share = own * exp_of(-(eta * behind)) if gaps > 0.0 else 0.0
        w.append(share)
        whole += share
    trust = np.array(w) / whole
    return trust, trust[0] * a + trust[1:]


def pool_round(
    Z: Floats,
    Y: Floats,
    weight: float,
    bits: int,
    teaches: int,
    state: tuple[Floats, Floats, Floats, Floats, Floats],
    prior: Floats,
    present: NDArray[np.bool_],
    doubt: float,
    gaps: float,
) -> tuple[float, float]:
    """(the pool's log loss, D after it); `state` is a, A, the losses, w and the weights, which are changed.

    Who is not present has log-odds of 0.
    """
    a, A, losses, w, weights = state
    here = present.nonzero()[0]
    live = Z if len(here) == len(Z) else Z.take(here, axis=0)
    # Who has left is one row of zeros at the end, whatever their number; its softmax needs no powers.
    left, zeros = len(here) < len(Z), 1 if bits and len(here) < len(Z) else 0
    T = np.zeros((2 + len(here) + zeros, Z.shape[1]))
    T[0] = times(a.take(here), live)
    T[1] = times(weights.take(here), live)
    T[2 : 2 + len(here)] = live
    each, p = log_losses(T, Y, bool(bits))
    every = np.full(1 + len(Z), log_of(float(Z.shape[1])) if left and not bits else each[-1])
    every[0], every[1 + here] = each[0], each[2 : 2 + len(here)]
    gaps = _gap(every, losses, w, present, doubt, gaps)
    losses += every
    if teaches:
        _newton(Z, Y, p, weight, bool(bits), a, A, present)
    w[:], weights[:] = hedge(prior, present, losses, doubt, gaps, a)
    return float(each[1]), gaps


def _gap(
    losses: Floats, before: Floats, w: Floats, present: NDArray[np.bool_], doubt: float, gaps: float
) -> float:
    """D and one more: the gap is <w, l> + ln <w, exp(-eta l)> / eta, l the losses of this round.

    With eta infinite it is <w, l> - (min (L + l) - min L), L the losses before: who is behind weighs 0, and may lead next.
    """
    pairs = list(zip(w.tolist(), losses.tolist(), strict=True))
    mean = share = 0.0
    for trust, loss in pairs:
        mean += trust * loss
    if gaps > 0.0:
        eta, least = doubt / gaps, min(loss for trust, loss in pairs if trust > 0.0)
        for trust, loss in pairs:
            if trust > 0.0:
                share += trust * exp_of(-(eta * (loss - least)))
        least -= log_of(share) / eta
    else:
        live = np.concatenate(([True], present))
        least = float((losses + (before - before[live].min()))[live].min())
    return float(gaps + max(mean - least, 0.0))


def _newton(
    Z: Floats,
    Y: Floats,
    p: Floats,
    weight: float,
    bits: bool,
    a: Floats,
    A: Floats,
    present: NDArray[np.bool_],
) -> None:
    here, rows, columns, places = _places(tuple(present.tolist()))
    live = Z.take(here, axis=0)
    curve = p * (1.0 - p) if bits else p
    every = np.concatenate((Z.take(rows, axis=0) * Z.take(columns, axis=0) * curve, live * (p - Y), live * p))
    sums = np.zeros(len(every) + 1)
    np.multiply(_sums(every), weight, out=sums[:-1])
    placed = sums.take(places)
    H, g = placed[:-2], placed[-2]
    if not bits:
        means = placed[-1]
        H = H - np.multiply.outer(means, means) / weight
    grown = FORGET * A + H + _damping(len(Z))
    step = a - solve(grown.tolist(), g.tolist())
    A[:] = grown
    a[:] = np.where(present, np.maximum(step, 0.0), 0.0)


@cache
def _places(present: tuple[bool, ...]) -> tuple[Ints, Ints, Ints, Ints]:
    """Who is present, the rows and columns of their matrix on and below its diagonal, and where sums over them go.

    Of sums over these pairs, then two for everyone present, then a 0: a row of the matrix for each, g, and the means.
    """
    count, here = len(present), [i for i, one in enumerate(present) if one]
    pairs = [(i, j) for i in here for j in here if j <= i]
    every = [*pairs, *((count, i) for i in here), *((count + 1, i) for i in here)]
    places = np.full((count + 2, count), len(every), dtype=np.intp)
    for at, (i, j) in enumerate(every):
        places[i, j] = at
        if i < count:
            places[j, i] = at
    first, second = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    return np.array(here, dtype=np.intp), first, second, places


@cache
def _damping(count: int) -> Floats:
    return (1.0 - FORGET) * DAMPING * np.eye(count)


def solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """x of A x = b, A symmetric and positive definite, by Cholesky's factors, entry by entry."""
    n = len(right)
    lower = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            value = matrix[i][j]
            for k in range(j):
                value -= lower[i][k] * lower[j][k]
            if i == j and value <= 0.0:
                raise ValueError("the matrix is not positive definite")
            lower[i][j] = math.sqrt(value) if i == j else value / lower[j][j]
    x = list(right)
    for i in range(n):
        for k in range(i):
            x[i] -= lower[i][k] * x[k]
        x[i] /= lower[i][i]
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            x[i] -= lower[k][i] * x[k]
        x[i] /= lower[i][i]
    return x
