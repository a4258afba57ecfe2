"""Boosted oblivious trees on a window of events, grown in slices: the specification.

The window has the last 4,096 events: raw values as float32 (0 for a feature that is not there), truths, weights, and F, the
scores of each under the trees as they are now. There are 30 trees; the one that is grown takes the place of the oldest.

    BIN      edges of a feature: between all its values, or 31 quantiles; the bins of its rows; when n has grown by 1/4
    START    g = w (Y - link(F)), h = w p (1 - p) of four fifths of the rows, by a hash of (tree, row), x 4,096, rounded
    SEARCH   one feature: the bin whose cut of ALL leaves has the largest sum, over leaves and columns, of
             G_L^2 / (H_L + 2) + G_R^2 / (H_R + 2); a leaf with fewer than 3 rows on a side is not cut
    SPLIT    code <- 2 code + [bin of x_j > bin], at most six times, while the sum grows
    FINISH   F -= the oldest tree; its place is the new one's, leaves 0.3 G / (H + 2); F += the new tree

G and H are sums of whole numbers, and leaves multiples of 2^-20, so that sums have the same bits in any order and F is what
the trees say of the rows, whenever it is asked for. Of more than 64 features a tree looks at a draw of about 64. What is
drawn is a function of the number of the tree, which is part of the state. A row that joins while a tree is grown has no
part in it. Steps are paid by `forest_due`: a tree every 2 % of the window, and so that no event takes long.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .elementary import Floats, exp, sigmoid

TREES, DEPTH, LEAVES, BINS, EDGES, WINDOW = 30, 6, 64, 32, 31, 4096
SOFTMAX, SHARED, BITS = range(3)
EVENTS, GROWN, PHASE, LEVEL, CURSOR, BEST_FEATURE, BEST_BIN, UPTO, BINNED, CLOCK = range(10)
CREDIT, BEST, BASE, NUMBERS = range(4)
START, SEARCH, SPLIT, FINISH, BIN = range(5)
NONE = np.finfo(np.float32).max  # an edge that is none
RATE, DAMPING, UNIT, FINE = 0.3, 8192.0, 4096.0, 2.0**20
HEAVIEST, PACE, FASTEST, BUDGET, FEWEST, WIDEST = 100.0, 0.02, 0.34, 2e5, 3, 64
FOUR_FIFTHS = 3435973837  # of 2^32

Singles = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.int64]


class Forest(NamedTuple):
    """The arrays, which are changed in place. A column is a feature, of `X` and `B` a row: (features, room)."""

    X: Singles
    B: Bytes
    edges: Singles  # (features, 31)
    Y: Words  # bits of the columns that are right
    weights: Floats
    F: Floats  # (room, columns)
    gradients: npt.NDArray[np.int32]  # (room, lanes): g and h of every column, whether the row counts, zeros
    code: Bytes  # of the rows in the tree that is grown
    splits: Words  # (31, 6): features; behind the trees, the one that is grown
    cuts: Singles  # (31, 6)
    leaves: Floats  # (30, 64, columns)
    depths: Words
    sizes: Words  # (30, 64): rows of each leaf when it was made
    clock: Words
    numbers: Floats
    link: int


def lanes_of(columns: int) -> int:
    """Numbers of `gradients` a row: a multiple of four."""
    return (2 * columns + 4) // 4 * 4


def forest_scores(forest: Forest, x: Singles) -> Floats:
    """The scores of an instance, which has a number for every feature."""
    scores = np.zeros(forest.F.shape[1])
    for t in range(TREES):
        code = 0
        for level in range(int(forest.depths[t])):
            code = 2 * code + bool(x[forest.splits[t, level]] > forest.cuts[t, level])
        scores += forest.leaves[t, code]
    return scores


def forest_insert(forest: Forest, x: Singles, truth: int, weight: float) -> None:
    """One more row: there must be room for it."""
    row = int(forest.clock[EVENTS] % WINDOW)
    forest.clock[EVENTS] += 1
    forest.X[: len(x), row] = x
    forest.B[: len(x), row] = (forest.edges[: len(x)] < x[:, None]).sum(axis=1)
    forest.Y[row], forest.weights[row], forest.code[row] = truth, min(weight, HEAVIEST), 0
    forest.F[row] = forest_scores(forest, x)
    forest.gradients[row] = 0


def forest_due(forest: Forest, features: int) -> int:
    """How many steps are due after a row was inserted."""
    rows, lanes = float(_rows(forest)), float(forest.gradients.shape[1])
    most = max(1.0, math.floor(BUDGET / (rows * lanes + 1000.0 * lanes)))
    steps = 3.0 + DEPTH * (1.0 + min(features, WIDEST))
    credit = min(float(forest.numbers[CREDIT]) + steps / max(PACE * rows, FASTEST), most)
    due = math.floor(credit)
    forest.numbers[CREDIT] = credit - due
    return due


def forest_step(forest: Forest, features: int) -> None:
    """One step of growth."""
    steps = (_start, _search, lambda forest, _: _split(forest), lambda forest, _: _finish(forest), _bin)
    steps[int(forest.clock[PHASE])](forest, features)


def _rows(forest: Forest) -> int:
    return min(int(forest.clock[EVENTS]), WINDOW)


_STEP, _ALL = 0x9E3779B97F4A7C15, 2**64 - 1


def _mixed(word: int) -> int:
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _ALL
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _ALL
    return word ^ (word >> 31)


def _draw(tree: int, number: int) -> int:
    """0 .. 2^32 - 1."""
    return _mixed((_mixed((tree * _STEP + 1) & _ALL) + number * _STEP) & _ALL) >> 32


def _candidates(forest: Forest, features: int) -> list[int]:
    """The features that a tree may look at: those that vary, and of many a draw."""
    varying = np.flatnonzero(forest.edges[:features, 0] < NONE).tolist()
    if features <= WIDEST:
        return varying
    tree = ~int(forest.clock[GROWN])
    return [j for j in varying if _draw(tree, j) * features < WIDEST << 32]


def _link(forest: Forest, F: Floats) -> Floats:
    if F.shape[1] == 1 or forest.link == BITS:
        return sigmoid(F)
    powers = exp(F - F.max(axis=1)[:, None])
    return np.asarray(powers / np.add.accumulate(powers, axis=1)[:, -1:])


def _start(forest: Forest, features: int) -> None:
    clock, columns = forest.clock, forest.F.shape[1]
    if not clock[CURSOR]:
        clock[UPTO] = _rows(forest)
    first, end = int(clock[CURSOR]), int(min(clock[CURSOR] + 8192 // columns, clock[UPTO]))
    forest.code[first:end] = 0
    forest.gradients[first:end] = 0
    tree = int(clock[GROWN])
    drawn = [row for row in range(first, end) if _draw(tree, row) < FOUR_FIFTHS]
    rows = np.array(drawn, dtype=np.intp)
    Y = (forest.Y[rows, None] >> np.arange(columns) & 1).astype(np.float64)
    if forest.link == SHARED:
        counts = Y.sum(axis=1)
        rows, Y = rows[counts > 0.0], Y[counts > 0.0] / counts[counts > 0.0, None]
    p, weights = _link(forest, forest.F[rows]), forest.weights[rows, None]
    forest.gradients[rows, :columns] = np.rint(weights * (Y - p) * UNIT)
    forest.gradients[rows, columns : 2 * columns] = np.maximum(np.rint(weights * (p * (1.0 - p)) * UNIT), 1.0)
    forest.gradients[rows, 2 * columns] = 1
    clock[CURSOR] = end
    if end == clock[UPTO]:
        clock[PHASE], clock[LEVEL], clock[CURSOR], clock[BEST_FEATURE] = SEARCH, 0, 0, -1
        forest.numbers[BEST] = 0.0


def _search(forest: Forest, features: int) -> None:
    clock, numbers, columns = forest.clock, forest.numbers, forest.F.shape[1]
    left = [j for j in _candidates(forest, features) if j >= clock[CURSOR]]
    if left:
        j, leaves, rows = left[0], 1 << int(clock[LEVEL]), _rows(forest)
        sums = _cells(forest, forest.code[:rows].astype(np.intp) * BINS + forest.B[j, :rows], leaves * BINS)
        cells = np.add.accumulate(sums.reshape(leaves, BINS, -1), axis=1)
        whole = cells[:, -1]
        if not clock[LEVEL] and clock[BEST_FEATURE] < 0:
            numbers[BASE] = np.add.accumulate(_worth(whole[0, :columns], whole[0, columns : 2 * columns]))[-1]
        gain = _gains(cells, columns)
        for bin in range(int(np.count_nonzero(forest.edges[j] < NONE))):
            if clock[BEST_FEATURE] < 0 or gain[bin] > numbers[BEST]:
                numbers[BEST], clock[BEST_FEATURE], clock[BEST_BIN] = gain[bin], j, bin
    clock[CURSOR] = left[0] + 1 if left else features
    if len(left) <= 1:
        better = clock[BEST_FEATURE] >= 0 and numbers[BEST] > numbers[BASE]
        clock[PHASE] = SPLIT if better else FINISH


def _cells(forest: Forest, at: npt.NDArray[np.intp], count: int) -> Floats:
    """The sums of the gradients by place: of whole numbers, hence exact."""
    lanes = range(2 * forest.F.shape[1] + 1)
    every = forest.gradients[: len(at)]
    return np.stack([np.bincount(at, every[:, lane], count) for lane in lanes], axis=1)


def _worth(G: Floats, H: Floats) -> Floats:
    return np.asarray(G * G / (H + DAMPING))


def _gains(cells: Floats, columns: int) -> Floats:
    """The sum over leaves, then columns, for a cut behind every bin."""
    left, whole = cells[:, :EDGES], cells[:, -1:]
    g, h, count = left[..., :columns], left[..., columns : 2 * columns], left[..., -1:]
    G, H = whole[..., :columns], whole[..., columns : 2 * columns]
    fits = (count >= FEWEST) & (whole[..., -1:] - count >= FEWEST)
    each = np.where(fits, _worth(g, h) + _worth(G - g, H - h), _worth(G, H))
    ordered = each.transpose(0, 2, 1).reshape(-1, EDGES)
    return np.asarray(np.add.accumulate(ordered, axis=0)[-1])


def _split(forest: Forest) -> None:
    clock, numbers, rows = forest.clock, forest.numbers, _rows(forest)
    level, j, bin = int(clock[LEVEL]), int(clock[BEST_FEATURE]), int(clock[BEST_BIN])
    forest.code[:rows] = 2 * forest.code[:rows] + (forest.B[j, :rows] > bin)
    forest.splits[TREES, level], forest.cuts[TREES, level] = j, forest.edges[j, bin]
    numbers[BASE] = numbers[BEST]
    clock[LEVEL], clock[CURSOR], clock[BEST_FEATURE] = level + 1, 0, -1
    clock[PHASE] = SEARCH if level + 1 < DEPTH else FINISH


def codes_of(forest: Forest, t: int, rows: int) -> npt.NDArray[np.intp]:
    """The leaf of every row in tree t."""
    codes = np.zeros(rows, dtype=np.intp)
    for level in range(int(forest.depths[t])):
        codes = 2 * codes + (forest.X[forest.splits[t, level], :rows] > forest.cuts[t, level])
    return codes


def _finish(forest: Forest) -> None:
    clock, rows, columns = forest.clock, _rows(forest), forest.F.shape[1]
    t = int(clock[GROWN] % TREES)
    forest.F[:rows] -= forest.leaves[t].take(codes_of(forest, t, rows), axis=0)
    sums = _cells(forest, forest.code[:rows].astype(np.intp), LEAVES)
    values = RATE * sums[:, :columns] / (sums[:, columns : 2 * columns] + DAMPING)
    forest.leaves[t] = np.rint(values * FINE) / FINE
    forest.sizes[t] = sums[:, -1]
    forest.splits[t], forest.cuts[t] = forest.splits[TREES], forest.cuts[TREES]
    forest.depths[t] = clock[LEVEL]
    forest.F[:rows] += forest.leaves[t].take(codes_of(forest, t, rows), axis=0)
    clock[GROWN] += 1
    clock[CURSOR] = 0
    quarter = min(int(clock[BINNED]), WINDOW) // 4
    clock[PHASE] = BIN if clock[EVENTS] > clock[BINNED] + quarter else START


def _bin(forest: Forest, features: int) -> None:
    clock, rows, j = forest.clock, _rows(forest), int(forest.clock[CURSOR])
    if not j:
        clock[BINNED] = clock[EVENTS]
    if j < features:
        edges = edges_of(np.sort(forest.X[j, :rows]))
        forest.edges[j] = NONE
        forest.edges[j, : len(edges)] = edges
        forest.B[j, :rows] = edges.searchsorted(forest.X[j, :rows], side="left")
        j += 1
    clock[CURSOR] = j if j < features else 0
    if j >= features:
        clock[PHASE] = START


def edges_of(x: Singles) -> Singles:
    """Edges between ascending values: all of them, or of the quantiles."""
    starts = np.flatnonzero(x[1:] != x[:-1]) + 1  # where another value begins
    if len(starts) <= EDGES:
        return _between(x[starts - 1], x[starts])
    low = np.arange(1, BINS) * len(x) // BINS - 1
    low = low[low >= 0]
    at = starts.searchsorted(low, side="right")
    low, at = low[at < len(starts)], at[at < len(starts)]
    return np.unique(_between(x[low], x[starts[at]]))


def _between(low: Singles, high: Singles) -> Singles:
    middle = (0.5 * (low.astype(np.float64) + high.astype(np.float64))).astype(np.float32)
    return np.where(middle < high, middle, low)
