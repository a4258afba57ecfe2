"""What is counted of every feature, and a vector scaled by it: the specification of `normalize: auto` and of naive Bayes.

scale(...)   u and z of an instance              (formulas: scaling.py)
tally(...)   one more event in the rows (count, mean, squared deviations, log(1 + count)) of its features, in place
recount(...) L <- log(exp(L) + more), one column of a matrix of logarithms, in place
word_scores(...)   what naive Bayes makes of an instance       (formulas: algorithms/auto/naive_bayes.py)
"""

import math
from typing import Any

import numpy as np

from .elementary import LOGS, Floats, Mask, exp, exp_of, log, log_of, total
from .reference import Ints, Vector
from .theta import Weights

CLIP = 2.0
FLAT = 1e-9
ENOUGH = 2  # events before a value that all of them named counts as a constant
_ONE, _ZERO, _TRUE = np.ones(1), np.zeros(1), np.ones(1, dtype=bool)  # u, z and dense of the bias


def scale(
    rows: Any,
    raw: Floats,
    rest: Floats,
    statistics: Floats,
    bias: int,
    idf: int,
    events: int,
) -> tuple[Floats, Floats, Floats, Mask, Floats]:
    """(u, u of the unseen, z, dense, z of the unseen); `statistics` has a row for every feature."""
    rows, raw = rows[bias:], raw[bias:]
    counts, means, deviations, logarithms = statistics.take(rows, axis=0).T
    variances = deviations / np.maximum(counts, 1.0)
    sizes = means * means
    sizes += variances
    np.sqrt(sizes, out=sizes)
    if np.count_nonzero(sizes) < len(sizes):
        sizes[sizes == 0.0] = 1.0
    z = raw / sizes
    dense = np.zeros(len(rows), dtype=bool)
    dense_count = 0
    if events:
        often = 20.0 * counts >= 19.0 * events
        if np.count_nonzero(often):
            spreads = np.sqrt(variances)
            dense = often & (spreads > FLAT * np.abs(means))
            dense_count = int(np.count_nonzero(dense))
            if dense_count:
                z = np.where(dense, (raw - means) / np.where(dense, spreads, 1.0), z)
            if bias and events >= ENOUGH:
                z[(counts == events) & ~dense & (np.abs(raw - means) <= FLAT * np.abs(means))] = 0.0
    if np.count_nonzero(counts) < len(counts):
        new = counts == 0.0
        z[new] = np.sign(raw[new])
    z = np.minimum(np.maximum(z, -CLIP), CLIP)
    unseen_z = np.sign(rest)
    words, unseen = z, unseen_z
    if idf:
        most = 1.0 + log_of(1.0 + events)
        words, unseen = z * (most - logarithms), unseen_z * most
    squares = words * words
    if dense_count:
        squares[dense] = 0.0
    length = math.sqrt(total(squares) + (total(unseen * unseen) if len(unseen) else 0.0)) or 1.0
    values = words / length
    if dense_count:
        values = np.where(dense, z / np.sqrt(float(dense_count)), values)
    if bias:
        values, z = np.concatenate((_ONE, values)), np.concatenate((_ZERO, z))
        dense = np.concatenate((_TRUE, dense))
    return values, unseen / length, z, dense, unseen_z


def tally(rows: Any, raw: Floats, statistics: Floats, bias: int) -> Floats:
    """One more event with these features; what the statistics were in rows[bias:]."""
    rows, raw = rows[bias:], raw[bias:]
    before: Floats = statistics.take(rows, axis=0)
    after = np.empty_like(before)
    counts, means, deviations, _ = before.T
    now = counts + 1.0
    off = raw - means
    mean = off / now
    mean += means
    off *= raw - mean
    off += deviations
    after[:, 0], after[:, 1], after[:, 2], after[:, 3] = now, mean, off, _log_of_counts(now)
    statistics[rows] = after
    return before


def _log_of_counts(counts: Floats) -> Floats:
    if len(counts) and np.minimum.reduce(counts) >= 0.0 and np.maximum.reduce(counts) < len(LOGS):
        return np.asarray(LOGS.take(counts.astype(np.intp)))
    return log(1.0 + counts)


class Ladder:
    """0, log(exp(0) + more), ...: where an entry goes that was only ever raised by the same `more`."""

    def __init__(self, more: float) -> None:
        self.more = more
        self.steps: Floats = np.zeros(1)

    def climb(self, old: Floats) -> Floats:
        """log(exp(old) + more)."""
        at = self.steps.searchsorted(old)
        highest = int(np.maximum.reduce(at)) if len(at) else 0
        if highest + 1 >= len(self.steps) < 4096:
            self._extend(min(highest + 64, 4096))
        at = np.minimum(at, len(self.steps) - 2)
        after: Floats = self.steps.take(at + 1)
        other = self.steps.take(at) != old
        if np.count_nonzero(other):
            after[other] = log(exp(old[other]) + self.more)
        return after

    def _extend(self, count: int) -> None:
        steps = self.steps.tolist()
        while len(steps) <= count:
            steps.append(log_of(exp_of(steps[-1]) + self.more))
        self.steps = np.array(steps)


ONCE = Ladder(1.0 / 0.1)  # naive Bayes with its smoothing, and an event that counts once


def recount(L: Floats, rows: Any, column: int, more: float) -> Floats:
    """L_j <- log(exp(L_j) + more) for the rows j of one column; the old entries."""
    old: Floats = L[rows, column]
    L[rows, column] = ONCE.climb(old) if more == ONCE.more else log(exp(old) + more)
    return old


def word_scores(
    weights: Weights, x: tuple[Ints, Floats, Mask, Floats], words: Floats, events: Floats, room: float
) -> tuple[Ints, Floats, float, Floats]:
    """(rows and u of the words, their length with the unseen ones, s) of `x`: rows, u, dense, and u of the unseen.

    s_k = sum_j u_j L_jk + log(events_k + 1/2) - length log(words_k + room)
    """
    rows, u, dense, unseen = x
    mask = (u > 0.0) > dense
    at, values = rows[mask], u[mask]
    size = total(values) + (total(np.maximum(unseen, 0.0)) if len(unseen) else 0.0)
    labels = weights.labels
    logs = log(np.concatenate((words[:labels] + room, events[:labels] + 0.5)))
    return at, values, size, weights.scores(Vector(at, values)) + (logs[labels:] - size * logs[:labels])
