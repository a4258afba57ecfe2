"""What is counted of every feature, and a vector scaled by it: the specification of `normalize: auto` and of naive Bayes.

scale(...)   u and z of an instance              (formulas: scaling.py)
tally(...)   one more event in the rows (count, mean, squared deviations, log(1 + count)) of its features, in place
recount(...) L <- log(exp(L) + more), one column of a matrix of logarithms, in place
word_scores(...)   what naive Bayes makes of an instance       (formulas: algorithms/auto/naive_bayes.py)
"""

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .elementary import LOGS, Floats, Mask, exp, exp_of, log, log_of, total
from .reference import EMPTY, Ints, Vector

if TYPE_CHECKING:
    from .theta import Weights

CLIP = 2.0
FLAT = 1e-9
_ONE = np.array(1.0)
REACH, SETTLED = 4.0, 5.0  # how many deviations from the mean a value may count, after how many events
ENOUGH = 2  # events before a value that all of them named counts as a constant


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
    every, rows, raw = len(rows), rows[bias:], raw[bias:]
    counts, means, deviations, logarithms = statistics.take(rows, axis=0).T
    fewest, most = (counts.item(counts.argmin()), counts.item(counts.argmax())) if len(rows) else (1.0, 0.0)
    variances = deviations / (counts if fewest >= 1.0 else np.maximum(counts, 1.0))
    sizes = means * means
    sizes += variances
    np.sqrt(sizes, out=sizes)
    if len(rows) and sizes.item(sizes.argmin()) == 0.0:
        sizes[sizes == 0.0] = 1.0
    z = raw / sizes
    # With the bias in front, of u = 1 and z = 0.
    all_u, all_z, all_dense = np.ones(every), np.zeros(every), np.zeros(every, dtype=bool)
    all_dense[:bias] = True
    dense, dense_count = all_dense[bias:], 0
    if events and 20.0 * most >= 19.0 * events:
        spreads = np.sqrt(variances)
        np.logical_and(20.0 * counts >= 19.0 * events, spreads > FLAT * np.abs(means), out=dense)
        dense_count = int(np.count_nonzero(dense))
        if dense_count:
            z = np.where(dense, (raw - means) / np.where(dense, spreads, 1.0), z)
        if bias and events >= ENOUGH:
            z[(counts == events) & ~dense & (np.abs(raw - means) <= FLAT * np.abs(means))] = 0.0
    if fewest == 0.0:
        new = counts == 0.0
        z[new] = np.sign(raw[new])
    z = np.minimum(np.maximum(z, -CLIP), CLIP, out=all_z[bias:])
    unseen_z = np.sign(rest) if len(rest) else rest
    words, unseen = z, unseen_z
    if idf:
        highest = 1.0 + _log_of_count(events)
        words, unseen = z * (highest - logarithms), unseen_z * highest
    squares = words * words
    if dense_count:
        squares[dense] = 0.0
    length = math.sqrt(total(squares) + (total(unseen * unseen) if len(unseen) else 0.0)) or 1.0
    values = np.divide(words, length, out=all_u[bias:])
    if dense_count:
        values[dense] = z[dense] / math.sqrt(dense_count)
    return all_u, unseen / length, all_z, all_dense, unseen_z


def tally(rows: Any, raw: Floats, statistics: Floats, bias: int) -> Floats:
    """One more event with these features; what the statistics were in rows[bias:].

    Values are taken to mean +- 4 deviations, or 4 means where all were equal.
    """
    rows, raw = rows[bias:], raw[bias:]
    before: Floats = statistics.take(rows, axis=0)
    after = before.copy()
    counts, means, deviations, logarithms = after.T
    if len(counts) and counts.item(counts.argmax()) >= SETTLED:
        spreads, sizes = np.sqrt(deviations / np.maximum(counts, 1.0)), np.abs(means)
        spreads = np.where(spreads > FLAT * sizes, spreads, sizes)
        reach = np.where((counts >= SETTLED) & (spreads > 0.0), REACH * spreads, np.inf)
        raw = np.minimum(np.maximum(raw, means - reach), means + reach)
    counts += 1.0
    off = raw - means
    means += off / counts
    off *= raw - means
    deviations += off
    logarithms[:] = _log_of_counts(counts)
    statistics[rows] = after
    return before


def _log_of_count(count: int) -> float:
    return LOGS.item(count) if count < len(LOGS) else log_of(1.0 + count)


def _log_of_counts(counts: Floats) -> Floats:
    if len(counts) and counts.item(counts.argmax()) < len(LOGS):
        return np.asarray(LOGS.take(counts.astype(np.intp)))
    return log(1.0 + counts)


class Ladder:
    """0, log(exp(0) + more), ...: where an entry goes that was only ever raised by the same `more`."""

    more: float
    count: int

    def __init__(self, more: float, count: int = 4096) -> None:
        self.more, self.count = more, count

    @cached_property
    def steps(self) -> tuple[Floats, Floats]:
        """What entries are, and what each becomes; NaN, which is none, at the end."""
        steps = [0.0]
        for _ in range(self.count):
            steps.append(log_of(exp_of(steps[-1]) + self.more))
        return np.array([*steps[:-1], math.nan]), np.array([*steps[1:], math.nan])

    def climb(self, old: Floats) -> Floats:
        """log(exp(old) + more)."""
        before, after = self.steps
        at = before.searchsorted(old)
        new: Floats = after.take(at, mode="clip")
        other = before.take(at, mode="clip") != old
        if np.count_nonzero(other):
            new[other] = log(exp(old[other]) + self.more)
        return new


ONCE = Ladder(1.0 / 0.1)  # naive Bayes with its smoothing, and an event that counts once


def recount(L: Floats, rows: Any, column: int, more: float) -> Floats:
    """L_j <- log(exp(L_j) + more) for the rows j of one column; the old entries."""
    old: Floats = L[rows, column]
    L[rows, column] = ONCE.climb(old) if more == ONCE.more else log(exp(old) + more)
    return old


def word_scores(
    weights: "Weights", x: tuple[Ints, Floats, Mask, Floats], words: Floats, events: Floats, room: float
) -> tuple[Ints, Floats, float, Floats]:
    """(rows and u of the words, their length with the unseen ones, s) of `x`: rows, u, dense, and u of the unseen.

    s_k = sum_j u_j L_jk + log(events_k + 1/2) - length log(words_k + room)
    """
    rows, u, dense, unseen = x
    at = ((u > 0.0) > dense).nonzero()[0]
    if len(at) < len(rows):
        rows, u = rows.take(at), u.take(at)
    size = total(u) + (total(np.maximum(unseen, 0.0)) if len(unseen) else 0.0)
    labels = weights.labels
    every = np.empty(2 * labels)
    np.add(words[:labels], room, out=every[:labels])
    np.add(events[:labels], 0.5, out=every[labels:])
    logs = log(every)
    s = weights.scores(Vector(rows, u, EMPTY))
    s += logs[labels:] - size * logs[:labels]
    return rows, u, size, s
