"""`normalize: blocks`: features in blocks by name, each block's share of the length learned.

The block of `subject:hotel` is `subject`; a name without a colon is in the block of plain features. With v the weighted
features of an instance, v_b those of block b, and b over the blocks that it has,

    x_j = v_j sqrt(1/2 / |v|^2 + 1/2 s_b / |v_b|^2),    s_b = w_b / sum_b w_b,    w_b = ((1 + right_b) / (1 + wrong_b))^2

so |x| = 1: half of the length goes to all features alike, as in `unit`, half to the blocks by what they are worth. When the
weights take a step along -g, a block was right if its part of the scores pointed there already, wrong if the other way:

    a_b = - sum_{j in b} sum_r g_r x_j W_jr;    right_b += 1 if a_b > 0,    wrong_b += 1 if a_b < 0

The counts are state. They change by learning only; a block that is new has (1 + 0) / (1 + 0) = 1.
"""

from collections.abc import Sequence

import numpy as np

from .growth import grown
from .instances import EMPTY, Floats, Ints
from .kernel import Table
from .kernel.elementary import total
from .names import Names

__all__ = ["Blocks", "block_of"]

# A block whose squares, beside the largest feature of 1, are no more than this has only the length that all have alike.
TINY = 1e-200

_NO_ROWS: Ints = np.empty(0, dtype=np.intp)


def block_of(name: str) -> str:
    """What stands before the first colon; empty for a plain feature."""
    return name.partition(":")[0] if ":" in name else ""


def _sums(blocks: Ints, values: Floats, count: int) -> Floats:
    """The sum of each block's values, from the first to the last."""
    return np.asarray(np.bincount(blocks, values, count), dtype=np.float64)


BlocksMark = tuple[int, Floats, Floats, int]


class Blocks:
    """The blocks in order of joining, and how often each was right and wrong."""

    alike = 0.5
    """The part of the length that goes to all features alike."""

    def __init__(self) -> None:
        self.names = Names()
        self.right: Floats = EMPTY
        self.wrong: Floats = EMPTY
        self._of_row: Ints = _NO_ROWS  # with room behind
        self._rows = 0

    def grow(self, features: Table) -> None:
        """Take in the blocks of the features that have joined."""
        start, end = self._rows, len(features)
        if end > start:
            index, add = self.names.index, self.names.add
            new = []
            for row in range(start, end):
                block = block_of(features[row])
                at = index.get(block)
                new.append(add(block) if at is None else at)
            self._of_row, self._rows = grown(self._of_row, end), end
            self._of_row[start:end] = new
            self.right = grown(self.right, len(self.names))
            self.wrong = grown(self.wrong, len(self.names))

    def mark(self) -> BlocksMark:
        """What `rewind` needs: there are few blocks."""
        return len(self.names), self.right.copy(), self.wrong.copy(), self._rows

    def rewind(self, mark: BlocksMark) -> None:
        """All as it was at the mark."""
        count, self.right, self.wrong, self._rows = mark
        self.names.forget(count)

    def scaled(
        self, rows: Ints, values: Floats, unknown: Sequence[str], rest: Floats
    ) -> tuple[Floats, Floats]:
        """x on known and unknown features."""
        # Known and unknown go together: a call of NumPy costs more than what it does on a few hundred numbers.
        own, v = self._of_row[rows], values
        if len(unknown):
            own, v = np.concatenate((own, self._numbers(unknown))), np.concatenate((values, rest))
        top = np.abs(v).max(initial=0.0)
        if not top > 0:
            return values, rest
        # Scaled by the largest first, so that squares of large numbers do not overflow.
        v = v / top
        squares = _sums(own, v * v, len(self.names))
        there = squares > TINY
        worth = np.where(there, self._worth(len(squares)), 0.0)
        safe = np.where(there, squares, 1.0)
        shares = worth * ((1.0 - self.alike) / total(worth)) / safe
        v *= np.sqrt(self.alike / total(squares) + shares)[own]
        return v[: len(values)], v[len(values) :]

    def _numbers(self, names: Sequence[str]) -> Ints:
        """The blocks of unknown features; those that are new stand behind the known ones."""
        index = self.names.index
        late: dict[str, int] = {}
        numbers = []
        for name in names:
            block = block_of(name)
            at = index.get(block)
            numbers.append(late.setdefault(block, len(index) + len(late)) if at is None else at)
        return np.array(numbers, dtype=np.intp)

    def _worth(self, count: int) -> Floats:
        known = len(self.names)
        worth = np.ones(max(count, known))
        odds = (1.0 + self.right[:known]) / (1.0 + self.wrong[:known])
        worth[:known] = self.worth_of(odds)
        return worth[:count]

    def worth_of(self, odds: Floats) -> Floats:
        """w of blocks that were right so many times as often as wrong."""
        return odds * odds

    def judge(self, rows: Ints, parts: Floats, g: Floats) -> None:
        """Count who was right: `parts` are the contributions of the features in `rows` to the scores, -g the step."""
        agreement = np.zeros(len(rows))
        for r in g.nonzero()[0].tolist():
            agreement -= g[r] * parts[: len(rows), r]
        count = len(self.names)
        sums = _sums(self._of_row[rows], agreement, count)
        self.right[:count] += sums > 0.0
        self.wrong[:count] += sums < 0.0

    def arrays(self) -> dict[str, Floats]:
        """The state."""
        count = len(self.names)
        return {"right": self.right[:count], "wrong": self.wrong[:count]}

    def restore(self, features: Table, right: Floats, wrong: Floats) -> None:
        """Take the state back."""
        self.grow(features)
        if right.shape != (len(self.names),) or wrong.shape != right.shape:
            raise ValueError("the blocks of the features and their counts differ in number")
        if not (
            np.isfinite(right).all()
            and np.isfinite(wrong).all()
            and min(right.min(initial=0.0), wrong.min(initial=0.0)) >= 0
        ):
            raise ValueError("the counts of the blocks must be numbers of at least 0")
        self.right, self.wrong = right.copy(), wrong.copy()
