"""Boosted oblivious trees on a window of the last events: features that decide together. How they grow: kernel/forest.py.

    s = sum over trees of leaf[code(x)],  code = one bit a level: x_j > cut

It sees raw values, as float32, 0 for a feature that is not there: no scaling can hurt it, nor can a wrong cell. With more
than 300 features or 32 columns it leaves for good. Two labels of which one is right share a column: s = (-f / 2, f / 2).

A score is explained level by level: the mean of the leaves below a prefix of the code, less that of the prefix one shorter,
goes to the feature of that level, and what is decided by features that are not there is part of the constant.
"""

from typing import Any

import numpy as np

from ... import kernel
from ...instances import Floats
from ...kernel import Forest, forest
from ...weights.base import Arrays, Counters
from .expert_registry import ExpertEntry, Setting, register_expert
from .experts import Expert, Inputs, Target
from .forest_state import restored

MOST, MOST_COLUMNS = 300, 32
LARGEST = 3e38  # of float32
FEWEST_ROWS = 64


class Trees(Expert):
    """See above. `forest` has room for more features and rows than there are; `features` and `labels` count them."""

    features: int
    labels: int
    present: bool
    forest: Forest

    name = "trees"
    kind = 6
    scale: float = 1.0

    def __init__(self, setting: Setting) -> None:
        self.link: int = forest.BITS if setting.bits else forest.SHARED if setting.shared else forest.SOFTMAX
        self.bias: int = setting.bias
        self.features = self.labels = 0
        self._before: list[tuple[Any, Any, Any]] = []
        self._start()

    def _start(self) -> None:
        self.forest = _forest(0, 0, 0, self.link)

    @property
    def columns(self) -> int:
        """Of the forest."""
        return 1 if self.link == forest.SOFTMAX and self.labels <= 2 else self.labels

    @property
    def rows(self) -> int:
        """Events in the window."""
        return min(int(self.forest.clock[forest.EVENTS]), forest.WINDOW)

    # ---- what joins

    def grow(self, features: int, columns: int) -> None:
        self.features, self.labels = features - self.bias, columns
        if self.present and not self.stays(features, columns):
            self.present = False
            self._start()
        if not self.present or not columns:
            return
        width, room = self.forest.X.shape
        if self.columns != self.forest.F.shape[1]:
            self.forest = _widened(self.forest, self.columns)
        if self.features > width or not room:
            self._make_room(max(self.features, min(2 * width, MOST)), max(room, FEWEST_ROWS))

    def stays(self, features: int, columns: int) -> bool:
        return features - self.bias <= MOST and columns <= MOST_COLUMNS

    def _make_room(self, width: int, room: int) -> None:
        """New arrays, with room for so many features and rows."""
        old = self.forest
        wide, long = old.X.shape
        new = _forest(width, room, self.columns, self.link)
        for name in ("X", "B"):
            getattr(new, name)[:wide, :long] = getattr(old, name)
        new.edges[:wide] = old.edges
        for name in ("Y", "weights", "F", "gradients", "code"):
            getattr(new, name)[:long] = getattr(old, name)
        same = {name: getattr(old, name) for name in _TREES}
        self.forest = new._replace(**same)

    def mark(self) -> Any:
        """References, and copies of the clock; `learn` keeps what else it changes."""
        self._before = []
        now = self.forest
        return now, now.clock.copy(), now.numbers.copy(), self.features, self.labels, self.present

    def rewind(self, mark: Any) -> None:
        for array, where, old in reversed(self._before):
            array[where] = old
        self.forest, clock, numbers, self.features, self.labels, self.present = mark
        self.forest.clock[:], self.forest.numbers[:] = clock, numbers

    # ---- scores

    def _values(self, inputs: Inputs) -> Any:
        """The raw value of every feature."""
        x = np.zeros(self.features, dtype=np.float32)
        scaled = inputs.scaled
        rows, raw = scaled.rows[self.bias :] - self.bias, scaled.raw[self.bias :]
        x[rows] = np.minimum(np.maximum(raw, -LARGEST), LARGEST)
        x += np.float32(0.0)  # no -0
        return x

    def scores(self, inputs: Inputs) -> Floats:
        if not self.present or not self.labels:
            return np.zeros(self.labels)
        return self._of_labels(kernel.forest_scores(self.forest, self._values(inputs)))

    def _of_labels(self, scores: Floats) -> Floats:
        if len(scores) == self.labels and self.link != forest.SOFTMAX:
            return scores
        return np.array([-0.5, 0.5])[: self.labels] * scores if len(scores) == 1 else scores

    # ---- learning

    def learn(self, inputs: Inputs, scored: Inputs, s: Floats, target: Target) -> None:
        if not self.present or not self.labels:
            return
        events, (width, room) = int(self.forest.clock[forest.EVENTS]), self.forest.X.shape
        if events == room < forest.WINDOW:
            self._make_room(width, 2 * room)
        row, now = events % forest.WINDOW, self.forest
        here = (slice(None), row)
        for array, where in ((now.X, here), (now.B, here), *((getattr(now, name), row) for name in _ROWS)):
            self._keep(array, where)
        kernel.forest_insert(now, self._values(inputs), self._truth(target), target.weight)
        kept: set[str] = set()
        for _ in range(kernel.forest_due(now, self.features)):
            for name in _CHANGED[int(now.clock[forest.PHASE])]:
                if name not in kept:
                    kept.add(name)
                    self._keep(getattr(now, name), slice(None))
            kernel.forest_step(now, self.features)

    def _keep(self, array: Any, where: Any) -> None:
        self._before.append((array, where, array[where].copy()))

    def _truth(self, target: Target) -> int:
        """The bits of the columns that are right."""
        if self.columns == 1 and self.link == forest.SOFTMAX:
            return int(target.only == 1)
        return sum(1 << k for k in target.relevant.nonzero()[0].tolist())

    def fused(self) -> tuple[Any, ...]:
        return self.present, self.scale, 0.0, tuple(self.forest)

    def reset(self) -> None:
        if self.present:
            self._start()
            self.grow(self.features + self.bias, self.labels)

    # ---- telling

    def parts(self, inputs: Inputs) -> tuple[Floats, Floats, Floats]:
        rows = inputs.scaled.rows
        every, constant = np.zeros((len(rows), self.labels)), np.zeros(self.labels)
        if not self.present or not self.labels or len(inputs.scaled.raw) < len(rows):
            return every, constant, np.zeros(self.labels)
        place = {j: i for i, j in enumerate((rows - self.bias).tolist()) if i >= self.bias}
        x = self._values(inputs)
        for t in range(forest.TREES):
            leaves, sizes = self.forest.leaves[t], self.forest.sizes[t]
            depth = int(self.forest.depths[t])
            first, count = 0, 1 << depth
            mean = _mean(leaves[:count], sizes[:count])
            constant += self._of_labels(mean)
            for level in range(depth):
                j, count = int(self.forest.splits[t, level]), count // 2
                first += count * bool(x[j] > self.forest.cuts[t, level])
                below = _mean(leaves[first : first + count], sizes[first : first + count])
                part = self._of_labels(below - mean)
                if j in place:
                    every[place[j]] += part
                else:
                    constant += part
                mean = below
        return every, constant, np.zeros(self.labels)

    def arrays(self) -> Arrays:
        now, rows = self.forest, self.rows
        window = {name: getattr(now, name)[:rows] for name in ("Y", "weights", "gradients", "code")}
        features = {"X": now.X[: self.features, :rows], "edges": now.edges[: self.features]}
        return features | window | {name: getattr(now, name) for name in _TREES}

    def counters(self) -> Counters:
        return {"present": self.present}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        if not counters["present"]:
            self.present = False
            self._start()
        if not self.present or not self.labels:
            if any(not np.array_equal(arrays[name], own) for name, own in self.arrays().items()):
                raise ValueError("trees that are not there have a state")
            return
        events = int(arrays["clock"][forest.EVENTS]) if arrays["clock"].size else 0
        width, room = self.forest.X.shape[0], _room(min(max(events, 0), forest.WINDOW))
        self.forest = restored(arrays, _forest(width, room, self.columns, self.link), self.features)

    def nbytes_for(self, features: int, columns: int) -> int:
        if not self.present or features - self.bias > MOST or columns > MOST_COLUMNS:
            return 0
        rows = _room(self.rows)
        per_row = 5 * (features - self.bias) + 8 * columns + 4 * forest.lanes_of(columns) + 17
        return rows * per_row + 8 * forest.TREES * forest.LEAVES * (columns + 1)


_ROWS = ("Y", "weights", "F", "gradients", "code")
_TREES = ("splits", "cuts", "leaves", "depths", "sizes", "clock", "numbers")
# What a step of each phase changes, beside the clock.
_CHANGED = {
    forest.START: ("gradients", "code"),
    forest.SEARCH: (),
    forest.SPLIT: ("code", "splits", "cuts"),
    forest.FINISH: ("F", "splits", "cuts", "leaves", "depths", "sizes"),
    forest.BIN: ("edges", "B"),
}


def _room(rows: int) -> int:
    return max(FEWEST_ROWS, 1 << max(0, rows - 1).bit_length())


def _forest(width: int, room: int, columns: int, link: int) -> Forest:
    trees = forest.TREES
    clock = np.zeros(forest.CLOCK, dtype=np.int64)
    clock[forest.PHASE] = forest.BIN
    return Forest(
        X=np.zeros((width, room), dtype=np.float32),
        B=np.zeros((width, room), dtype=np.uint8),
        edges=np.full((width, forest.EDGES), forest.NONE, dtype=np.float32),
        Y=np.zeros(room, dtype=np.int64),
        weights=np.zeros(room),
        F=np.zeros((room, columns)),
        gradients=np.zeros((room, forest.lanes_of(columns)), dtype=np.int32),
        code=np.zeros(room, dtype=np.uint8),
        splits=np.zeros((trees + 1, forest.DEPTH), dtype=np.int64),
        cuts=np.zeros((trees + 1, forest.DEPTH), dtype=np.float32),
        leaves=np.zeros((trees, forest.LEAVES, columns)),
        depths=np.zeros(trees, dtype=np.int64),
        sizes=np.zeros((trees, forest.LEAVES), dtype=np.int64),
        clock=clock,
        numbers=np.zeros(forest.NUMBERS),
        link=link,
    )


def _widened(old: Forest, columns: int) -> Forest:
    """The same trees and window with more columns; the tree that was being grown is begun again."""
    new, before = _forest(0, len(old.Y), columns, old.link), old.F.shape[1]
    F, leaves, Y = new.F, new.leaves, old.Y
    if before == 1 and columns > 1 and old.link == forest.SOFTMAX:
        halves = np.array([-0.5, 0.5])
        F[:, :2], leaves[..., :2], Y = old.F * halves, old.leaves * halves, 1 << old.Y
    else:
        F[:, :before], leaves[..., :before] = old.F, old.leaves
    clock = old.clock.copy()
    if clock[forest.PHASE] != forest.BIN:
        clock[forest.PHASE], clock[forest.CURSOR] = forest.START, 0
    gradients = new.gradients
    return old._replace(F=F, leaves=leaves, Y=Y, clock=clock, gradients=gradients)


def _mean(leaves: Floats, sizes: Any) -> Floats:
    """The mean of leaves by their rows; by themselves where none has any."""
    weights = sizes.astype(np.float64) if sizes.any() else np.ones(len(sizes))
    sums = np.add.accumulate(weights[:, None] * leaves, axis=0)[-1]
    return np.asarray(sums / np.add.accumulate(weights)[-1])


register_expert(
    ExpertEntry("trees", Trees, 0.2, "boosted trees on the last 4,096 events, for at most 300 features")
)
