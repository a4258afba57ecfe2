"""One round of the automatic learner's pool, in place: the specification. The formulas are in algorithms/auto/pool.py."""

import math
from functools import cache
from itertools import compress
from typing import NamedTuple

import numpy as np

from .elementary import Floats, Mask, exp, exp_of, exp_to_one, log, log_of, row_product
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
    powers = Powers.of(T)
    return np.array(powers.log_losses(_of_truth(T, Y))), powers.p(0)


class Powers(NamedTuple):
    """e^(T - top) of rows of log-odds, top the highest of each row, and the sums of the rows: all that softmax needs."""

    firsts: list[int]  # where the tops are
    tops: list[float]
    powers: Floats
    sums: list[float]

    @classmethod
    def of(cls, T: Floats) -> "Powers":
        firsts = T.argmax(axis=1).tolist()
        tops = [T.item(row, first) for row, first in enumerate(firsts)]
        powers = exp_to_one(T - np.array(tops)[:, None])
        return cls(firsts, tops, powers, np.add.accumulate(powers, axis=1)[:, -1].tolist())

    def p(self, row: int) -> Floats:
        """The softmax of a row."""
        p: Floats = self.powers[row] / self.sums[row]
        return p

    def log_losses(self, right: list[float]) -> list[float]:
        """-log p of the truth, whose log-odds are `right`, one a row."""
        # A few numbers: one by one they take less than arrays do.
        rows = zip(self.sums, self.tops, right, strict=True)
        return [log_of(whole) + top - own for whole, top, own in rows]


def _of_truth(T: Floats, Y: Floats) -> list[float]:
    """T Y; where one label is right, its column."""
    y = int(Y.argmax())
    ends = T.item(T.argmin()), T.item(T.argmax())
    if Y.item(y) == 1.0 and math.isfinite(ends[0]) and math.isfinite(ends[1]):
        return column(T, y)
    product: list[float] = times(T, Y).tolist()
    return product


def column(T: Floats, y: int) -> list[float]:
    """A column, where a zero has no sign."""
    return [T.item(row, y) + 0.0 for row in range(len(T))]


def _sums(rows: Floats) -> Floats:
    return np.asarray(np.add.accumulate(rows, axis=1)[:, -1] + 0.0)


def hedge(
    prior: Floats, present: Mask, losses: Floats, doubt: float, gaps: float, a: Floats
) -> tuple[Floats, Floats]:
    """w, the trust in Newton's weights and in every expert alone; and what each expert's log-odds count with it."""
    each, here = losses.tolist(), [True, *present.tolist()]
    least = min(compress(each, here))
    eta = doubt / gaps if gaps > 0.0 else math.inf
    w, whole = [], 0.0
    for loss, own, one in zip(each, prior.tolist(), here, strict=True):
        behind = loss - least
        share = own if one else 0.0
        if one and not behind <= 0.0:
            share = own * exp_of(-(eta * behind)) if gaps > 0.0 else 0.0
        w.append(share)
        whole += share
    w = [share / whole for share in w]
    first = w[0]
    return np.array(w), np.array([first * own + one for own, one in zip(a.tolist(), w[1:], strict=True)])


State = tuple[Floats, Floats, Floats, Floats, Floats]


def pool_round(
    Z: Floats,
    Y: Floats,
    weight: float,
    bits: int,
    teaches: int,
    state: State,
    prior: Floats,
    present: Mask,
    doubt: float,
    gaps: float,
) -> tuple[float, float]:
    """(the pool's log loss, D after it); `state` is a, A, the losses, w and the weights, which are changed.

    Who is not present has log-odds of 0.
    """
    here = members_of(present).here
    count, left = len(here), len(here) < len(Z)
    # Who has left is one row of zeros at the end, whatever their number; its softmax needs no powers.
    T = np.zeros((2 + count + (left and bool(bits)), Z.shape[1]))
    T[2 : 2 + count] = Z.take(here, axis=0) if left else Z
    pooled(T[: 2 + count], here, state)
    each, p = log_losses(T, Y, bool(bits))
    gone = None if left and bits else log_of(float(Z.shape[1])) if left else 0.0
    own, pools, *others = each.tolist()
    if gone is None:
        gone = others.pop()
    gaps, after = trust_after(
        [own, *others],
        gone,
        (T[2 : 2 + count], Y, p, weight, bool(bits)) if teaches else None,
        state,
        prior,
        present,
        doubt,
        gaps,
    )
    for array, changed in zip(state, after, strict=True):
        array[:] = changed
    return pools, gaps


def pooled(T: Floats, here: Ints, state: State) -> None:
    """The first rows of T are made of the others, the log-odds of who is present: a' Z, and the pool's own."""
    a, _, _, _, weights = state
    live = T[2:]
    T[0], T[1] = row_product(a.take(here), live), row_product(weights.take(here), live)


def trust_after(
    each: list[float],
    gone: float,
    newton: "NewtonInput | None",
    state: State,
    prior: Floats,
    present: Mask,
    doubt: float,
    gaps: float,
) -> tuple[float, State]:
    """(D, the state) after a round with the log losses `each` of a' Z and of who is present, `gone` of who has left.

    Without the input of `newton`, its weights take no step.
    """
    a, A, losses, w, _ = state
    members = members_of(present)
    every = [each[0], *[gone] * len(a)]
    for i, loss in zip(members.places, each[1:], strict=True):
        every[1 + i] = loss
    gaps = gap_after(every, losses, w, present, doubt, gaps)
    losses = losses + every
    if newton is not None:
        a, A = _newton(members, *newton, a, A, present)
    return gaps, (a, A, losses, *hedge(prior, present, losses, doubt, gaps, a))


NewtonInput = tuple[Floats, Floats, Floats, float, bool]
"""Z of who is present, Y, p of Newton's weights, the weight of the event, and whether Y are bits."""


def gap_after(
    losses: list[float], before: Floats, w: Floats, present: Mask, doubt: float, gaps: float
) -> float:
    """D and one more: the gap is <w, l> + ln <w, exp(-eta l)> / eta, l the losses of this round.

    With eta infinite it is <w, l> - (min (L + l) - min L), L the losses before: who is behind weighs 0, and may lead next.
    """
    pairs = list(zip(w.tolist(), losses, strict=True))
    mean = share = 0.0
    for trust, loss in pairs:
        mean += trust * loss
    if gaps > 0.0:
        eta, least = doubt / gaps, min([loss for trust, loss in pairs if trust > 0.0])
        for trust, loss in pairs:
            if trust > 0.0:
                share += trust * exp_of(-(eta * (loss - least)))
        least -= log_of(share) / eta
    else:
        live = np.concatenate(([True], present))
        least = float((losses + (before - before[live].min()))[live].min())
    return float(gaps + max(mean - least, 0.0))


def _newton(
    members: "Members",
    live: Floats,
    Y: Floats,
    p: Floats,
    weight: float,
    bits: bool,
    a: Floats,
    A: Floats,
    present: Mask,
) -> tuple[Floats, Floats]:
    """a and A after one step."""
    count, pairs = len(live), len(members.first)
    # Z_i Z_j curve of every pair, then g and the means: one row each, and one sum.
    every = np.empty((pairs + 2 * count + 1, len(p)))
    np.multiply(live.take(members.first, axis=0), live.take(members.second, axis=0), out=every[:pairs])
    every[:pairs] *= p * (1.0 - p) if bits else p
    np.multiply(live, p - Y, out=every[pairs : pairs + count])
    np.multiply(live, p, out=every[pairs + count : -1])
    every[-1] = 0.0  # of who has left
    sums = _sums(every)
    if weight != 1.0:
        sums *= weight
    placed = sums.take(members.cells)
    H, g, means = placed[:-2], placed[-2].tolist(), placed[-1]
    if not bits:
        products = means[:, None] * means
        H -= products if weight == 1.0 else products / weight
    grown = FORGET * A
    grown += H
    grown += _damping(len(a))
    steps = zip(present.tolist(), a.tolist(), solve(grown.tolist(), g), strict=True)
    after = [own - step if here else 0.0 for here, own, step in steps]
    return np.array([0.0 if own <= 0.0 else own for own in after]), grown


class Members(NamedTuple):
    """Who is present (`here`, `places`), their pairs i >= j, and where sums over them go: see `_newton`.

    Of sums over the pairs, then two for everyone present, then a 0, `cells` has the matrix, g and the means.
    """

    here: Ints
    places: list[int]
    first: Ints
    second: Ints
    cells: Ints


def members_of(present: Mask) -> Members:
    """Of the experts that are present."""
    return _members(present.tobytes())


@cache
def _members(present: bytes) -> Members:
    count, here = len(present), [i for i, one in enumerate(present) if one]
    pairs = [(i, j) for i in here for j in here if j <= i]
    every = [*pairs, *((count, i) for i in here), *((count + 1, i) for i in here)]
    cells = np.full((count + 2, count), len(every), dtype=np.intp)
    for at, (i, j) in enumerate(every):
        cells[i, j] = at
        if i < count:
            cells[j, i] = at
    number = {i: at for at, i in enumerate(here)}
    first = np.array([number[i] for i, _ in pairs], dtype=np.intp)
    second = np.array([number[j] for _, j in pairs], dtype=np.intp)
    return Members(np.array(here, dtype=np.intp), here, first, second, cells)


@cache
def _damping(count: int) -> Floats:
    return (1.0 - FORGET) * DAMPING * np.eye(count)


def solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """x of A x = b, A symmetric and positive definite, by Cholesky's factors, entry by entry."""
    lower: list[list[float]] = []
    x: list[float] = []
    for i, given in enumerate(matrix):
        row: list[float] = []
        for j in range(i):
            value, other = given[j], lower[j]
            for k in range(j):
                value -= row[k] * other[k]
            row.append(value / other[j])
        value, sought = given[i], right[i]
        for k in range(i):
            value -= row[k] * row[k]
            sought -= row[k] * x[k]
        if value <= 0.0:
            raise ValueError("the matrix is not positive definite")
        row.append(math.sqrt(value))
        lower.append(row)
        x.append(sought / row[i])
    for i in reversed(range(len(x))):
        for k in range(i + 1, len(x)):
            x[i] -= lower[k][i] * x[k]
        x[i] /= lower[i][i]
    return x
