"""`normalize: blocks`: features in blocks by name, each block's share of the length learned.

The block of `subject:hotel` is `subject`; a name without a colon is in the block of plain features. With v the weighted
features of an instance, v_b those of block b, and b over the blocks that it has,

    x_j = v_j sqrt(1/2 / |v|^2 + 1/2 s_b / |v_b|^2),    s_b = w_b / sum_b w_b,    w_b = ((1 + right_b) / (1 + wrong_b))^2

so |x| = 1: half of the length goes to all features alike, as in `unit`, half to the blocks by what they are worth. When the
weights take a step along -g, a block was right if its part of the scores pointed there already, wrong if the other way:

    a_b = - sum_{j in b} sum_r g_r x_j W_jr;    right_b += 1 if a_b > 0,    wrong_b += 1 if a_b < 0

The counts are state, kept by the kernel. They change by learning only; a block that is new has (1 + 0) / (1 + 0) = 1. Whole
rounds of the kernel do all of this; here it is done for a round by pieces, with the same bits.
"""

from collections.abc import Sequence

import numpy as np

from . import kernel
from .instances import Floats, Ints
from .kernel import Table
from .kernel.feature_blocks import ALIKE, TINY, block_of, judge, scaled, squared

__all__ = ["TINY", "Blocks", "block_of"]

BlocksMark = tuple[int, Floats, Floats]


class Blocks:
    """The blocks of a learner's features. One with another `alike` or `worth_of` takes every round by pieces."""

    alike = ALIKE
    """The part of the length that goes to all features alike."""

    def __init__(self) -> None:
        self.kernel = kernel.FeatureBlocks()

    def worth_of(self, odds: Floats) -> Floats:
        """w of blocks that were right so many times as often as wrong."""
        return squared(odds)

    @property
    def names(self) -> list[str]:
        """The blocks in order of joining."""
        return list(self.kernel)

    @property
    def right(self) -> Floats:
        """How often each was right."""
        return self.kernel.right

    @property
    def wrong(self) -> Floats:
        """How often each was wrong."""
        return self.kernel.wrong

    def grow(self, features: Table) -> None:
        """Take in the blocks of the features that have joined."""
        self.kernel.grow(features)

    def mark(self) -> BlocksMark:
        """What `rewind` needs: there are few blocks."""
        return self.kernel.rows, self.right.copy(), self.wrong.copy()

    def rewind(self, mark: BlocksMark) -> None:
        """All as it was at the mark."""
        rows, right, wrong = mark
        self.kernel.shrink(rows, len(right))
        self.right[:], self.wrong[:] = right, wrong

    def scaled(
        self, rows: Ints, values: Floats, unknown: Sequence[str], rest: Floats
    ) -> tuple[Floats, Floats]:
        """x on known and unknown features."""
        # Known and unknown go together: a call of NumPy costs more than what it does on a few hundred numbers.
        v = np.concatenate((values, rest)) if len(unknown) else values
        x = scaled(self.kernel, rows, v, unknown, self.alike, self.worth_of)
        return x[: len(values)], x[len(values) :]

    def judge(self, rows: Ints, parts: Floats, g: Floats) -> None:
        """Count who was right: `parts` are the contributions of the features in `rows` to the scores, -g the step."""
        judge(self.kernel, rows, parts, g)

    def arrays(self) -> dict[str, Floats]:
        """The state."""
        return {"right": self.right, "wrong": self.wrong}

    def restore(self, features: Table, right: Floats, wrong: Floats) -> None:
        """Take the state back."""
        self.grow(features)
        if right.shape != (len(self.kernel),) or wrong.shape != right.shape:
            raise ValueError("the blocks of the features and their counts differ in number")
        if not (
            np.isfinite(right).all()
            and np.isfinite(wrong).all()
            and min(right.min(initial=0.0), wrong.min(initial=0.0)) >= 0
        ):
            raise ValueError("the counts of the blocks must be numbers of at least 0")
        self.right[:], self.wrong[:] = right, wrong
