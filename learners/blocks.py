"""`normalize: blocks`: features in blocks by name, each block's share of the length learned.

The block of `subject:hotel` is `subject`; a name without a colon is in the block of plain features. With v the weighted
features of an instance, v_b those of block b, and b over the blocks that it has,

    x_j = v_j sqrt(1/2 / |v|^2 + 1/2 s_b / |v_b|^2),    s_b = w_b / sum_b w_b,    w_b = ((1 + right_b) / (1 + wrong_b))^2

so |x| = 1: half of the length goes to all features alike, as in `unit`, half to the blocks by what they are worth. When the
weights take a step along -g, a block was right if its part of the scores pointed there already, wrong if the other way:

    a_b = - sum_{j in b} sum_r g_r x_j W_jr;    right_b += 1 if a_b > 0,    wrong_b += 1 if a_b < 0

The counts are state, kept by the kernel. They change by learning only; a block that is new has (1 + 0) / (1 + 0) = 1. Whole
rounds of the kernel do all of this; here it is done for a round by pieces, with the same bits.

`label_words: true`: features that are words of labels' names count for these labels, with one weight a block that all
labels share (`kernel/label_words.py` has the formulas). The weights are state; the words are a function of the names.
"""

import re
from collections.abc import Sequence

import numpy as np

from . import kernel
from .instances import Floats, Ints, Vector
from .kernel import Table
from .kernel.feature_blocks import (
    ALIKE,
    TINY,
    block_of,
    find_matches_of,
    judge,
    match_matrix_of,
    scaled,
    squared,
)
from .kernel.label_words import NameMatches
from .text import tokens

__all__ = ["TINY", "Blocks", "block_of", "words_of"]

BlocksMark = tuple[int, dict[str, Floats]]
WORDS = 32
"""Words that a label's name may have: of a longer one the first."""
NAME = 256
# Where a word begins within a run of letters and digits: `eolAccess`, `HPLGas`, `press1`.
_WITHIN = re.compile(
    r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])"
)


def words_of(label: str) -> list[str]:
    """The words of a label's name, each once: the name as it is, what `words-1` makes of it, and of its parts.

    A single letter or digit is none.
    """
    start = label[:NAME]
    words = [*tokens(start), *tokens(_WITHIN.sub(" ", start))]
    telling = (word for word in words if len(word) > 1 or not word.isascii())
    return list(dict.fromkeys((label, *telling)))[:WORDS]


class Blocks:
    """The blocks of a learner's features. One with another `alike` or `worth_of` takes every round by pieces."""

    alike = ALIKE
    """The part of the length that goes to all features alike."""

    def __init__(self, named: bool = False, bias: bool = False) -> None:
        self.kernel: kernel.FeatureBlocks = kernel.FeatureBlocks(named)
        self.bias = bias
        self._words: list[list[str]] = []
        self._last_matches: tuple[Vector, int, NameMatches] | None = None

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
        return self.kernel.rows, {name: array.copy() for name, array in self.arrays().items()}

    def rewind(self, mark: BlocksMark) -> None:
        """All as it was at the mark, but for the names of labels."""
        rows, before = mark
        self._last_matches = None
        self.kernel.shrink(rows, len(before["right"]))
        for name, array in self.arrays().items():
            array[:] = before[name]

    def name_labels(self, names: Sequence[str], features: Table) -> None:
        """These are the labels by now: some more, or, where an event failed, fewer."""
        if not self.kernel.named or self.kernel.labels == len(names):
            return
        self._last_matches = None
        while self.kernel.labels > len(names):
            self.kernel.unname(self._words[self.kernel.labels - 1])
        del self._words[self.kernel.labels :]
        while self.kernel.labels < len(names):
            self._words.append(words_of(names[self.kernel.labels]))
            self.kernel.name(features, self._words[-1])

    def scaled(
        self, rows: Ints, values: Floats, unknown: Sequence[str], rest: Floats
    ) -> tuple[Floats, Floats]:
        """x on known and unknown features."""
        # Known and unknown go together: a call of NumPy costs more than what it does on a few hundred numbers.
        v = np.concatenate((values, rest)) if len(unknown) else values
        x = scaled(self.kernel, rows, v, unknown, self.alike, self.worth_of)
        return x[: len(values)], x[len(values) :]

    def name_matches(self, x: Vector) -> NameMatches | None:
        """The matches of x with labels' names; None where these do not count."""
        if not self.kernel.named:
            return None
        # A round asks for the same x to score, to bound its step and to judge it; that its features join changes nothing.
        last, labels = self._last_matches, self.kernel.labels
        if last is None or last[0] is not x or last[1] != labels:
            last = self._last_matches = (x, labels, match_matrix_of(self.kernel, x, int(self.bias), labels))
        return last[2]

    def add_name_matches(self, x: Vector, parts: Floats) -> None:
        """Add to the contributions of all features of x, unknown ones last, what each adds by its word."""
        first, shared = int(self.bias), self.kernel.shared
        values = np.concatenate((x.values, x.unseen))
        for i, b, labels in find_matches_of(self.kernel, x, first):
            if b < len(shared):
                parts[i + first, labels] += shared[b] * (values[i + first] / np.sqrt(float(len(labels))))

    def judge(self, x: Vector, parts: Floats, g: Floats) -> None:
        """Count who was right: `parts` are what the weights of the features of x add to the scores, -g the step."""
        first = int(self.bias)
        judge(self.kernel, x.rows[first:], parts[first:], g, self.name_matches(x))

    def arrays(self) -> dict[str, Floats]:
        """The state."""
        shared = {"shared": self.kernel.shared} if self.kernel.named else {}
        return {"right": self.right, "wrong": self.wrong, **shared}

    def restore(self, features: Table, arrays: dict[str, Floats]) -> None:
        """Take the state back."""
        self.grow(features)
        for name, own in self.arrays().items():
            array = arrays[name]
            if array.shape != own.shape or array.dtype != own.dtype:
                raise ValueError("the blocks of the features and their counts differ in number")
            if not np.isfinite(array).all() or (name != "shared" and array.min(initial=0.0) < 0):
                raise ValueError("the counts of the blocks must be numbers of at least 0")
            own[:] = array
