"""Features that are words of the labels' names, in NumPy, to the bit: the labels that each matches, and what it adds.

The word of `subject:hotel` is `hotel`, what stands behind the block; a feature without a block is a word as a whole. With
k_j labels that have the word of feature j in their names, and none where k_j is above `MOST`,

    m_b(x, l) = sum of x_j / sqrt(k_j) over the features j of block b whose word is in the name of label l
    t_l      += sum_b s_b m_b(x, l)                     s_b <- s_b - eta sum_l g_l m_b(x, l)

one weight s_b a block, which all labels share: a folder that is new has what the names of the others taught. It is linear
in (x, m): with phi(x, l) the x of label l beside m(x, l), a step along alpha = -g moves the scores by K alpha,
K = |x|^2 I + M'M, M the matrix m_b(x, l), and alpha' K alpha <= h |alpha|^2 with

    h = |x|^2 + sum_b sum_l m_b(x, l)^2                 the trace of M'M is not below its largest eigenvalue

Dual ascent with this h in place of |x|^2 solves its problem for a bound on the dual from below. Features that have not
joined match too. Sums run over the features from the first to the last, blocks stand in the order in which they are met.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..growth import grown
from ..names import Names
from .elementary import Floats, total
from .reference import Ints
from .table import Table

if TYPE_CHECKING:
    from .feature_blocks import FeatureBlocks

Match = tuple[int, int, list[int]]
"""A feature that matches: its place in x, its block, the labels."""
MOST = 16
"""Labels that a word may match: one that more labels have tells none of them apart, and would make a round slow."""


def word_of(name: str) -> str:
    """What stands behind the first colon; all of a name that has none."""
    return name.partition(":")[2] if ":" in name else name


class LabelWords:
    """The words of all labels, the labels that have each, and the word of every row of a table, -1 where it is none."""

    def __init__(self) -> None:
        self.labels: int = 0
        self._words = Names()
        self._labels: list[list[int]] = []
        self._rows: Ints = np.empty(0, dtype=np.intp)
        self.shared: Floats = np.empty(0)

    def find(self, word: object) -> int:
        """The number of a word, -1 if no label had it yet."""
        return self._words.index.get(word, -1)  # type: ignore[call-overload, no-any-return]

    def of(self, word: int) -> list[int]:
        """The labels that a word matches."""
        labels = self._labels[word]
        return labels if len(labels) <= MOST else []

    def rows(self, count: int) -> Ints:
        """The word of each of the first `count` rows."""
        return self._rows[:count]

    def grow(self, table: Table, start: int, blocks: int) -> None:
        """Take in the features that have joined from row `start` on, and so many blocks."""
        end = len(table)
        self._rows = grown(self._rows, end)
        self._rows[start:end] = [self.find(word_of(table[row])) for row in range(start, end)]
        self.shared = grown(self.shared, blocks)

    def name(self, table: Table, blocks: Sequence[str], words: Sequence[str]) -> None:
        """One more label joins, with these words, each once."""
        # A word that no label has says nothing: those that joined may stay whatever fails.
        for word in words:
            if self._words.add(word) == len(self._labels):
                self._labels.append([])
            for row in _rows_of(table, blocks, word):
                self._rows[row] = self.find(word)
        label = self.labels
        try:
            for word in words:
                self._labels[self.find(word)].append(label)
        except BaseException:
            for word in words:
                if self._labels[self.find(word)][-1:] == [label]:
                    self._labels[self.find(word)].pop()
            raise
        self.labels = label + 1

    def unname(self, words: Sequence[str]) -> None:
        """The label that joined last, with these words, leaves."""
        for word in words:
            self._labels[self.find(word)].pop()
        self.labels -= 1


def _rows_of(table: Table, blocks: Sequence[str], word: str) -> list[int]:
    """The features whose word it is."""
    names = [f"{block}:{word}" for block in blocks]
    if ":" not in word:
        names.append(word)
    return [row for row in map(table.find, names) if row >= 0]


@dataclass(slots=True)
class NameMatches:
    """m_b(x, l) of one x: a row for each of `blocks`, those that have not joined behind the others."""

    blocks: list[int]
    M: Floats

    def squared_norm(self) -> float:
        """The trace of M'M."""
        return total((self.M * self.M).reshape(-1))

    def add_to(self, t: Floats, shared: Floats) -> Floats:
        """t with what the matches add."""
        for b, m in zip(self.blocks, self.M, strict=True):
            if b < len(shared):
                t = t + shared[b] * m
        return t

    def along(self, g: Floats) -> list[float]:
        """sum_l g_l m_b(x, l) of each block."""
        return [total(g * m) for m in self.M]

    def agree(self, sums: Floats, shared: Floats, g: Floats) -> None:
        """Take from the sums of all blocks that have joined what the matches add, along g."""
        for b, part in zip(self.blocks, self.along(g), strict=True):
            if b < len(sums):
                sums[b] -= shared[b] * part

    def step(self, shared: Floats, g: Floats, eta: float) -> None:
        """s <- s - eta M g; all blocks have joined."""
        for b, part in zip(self.blocks, self.along(g), strict=True):
            shared[b] -= eta * part


def find_matches(
    blocks: "FeatureBlocks", rows: Ints, unknown: Sequence[str], late: Sequence[int]
) -> list[Match]:
    """The features that match; `late` are the blocks of the unknown ones."""
    words, numbers = blocks.words[rows], blocks.numbers
    known = (words >= 0).nonzero()[0].tolist()
    matches = [(i, int(numbers[rows[i]]), blocks.labels_of(int(words[i]))) for i in known]
    for i, (name, b) in enumerate(zip(unknown, late, strict=True), len(rows)):
        word = blocks.find_word(word_of(name))
        if word >= 0:
            matches.append((i, b, blocks.labels_of(word)))
    return [one for one in matches if one[2]]


def match_matrix(matches: Sequence[Match], values: Floats, count: int) -> NameMatches:
    """What an x of `values`, on known rows and behind them on unknown features, says of `count` labels."""
    places = {b: i for i, b in enumerate(dict.fromkeys(b for _, b, _ in matches))}
    M = np.zeros((len(places), count))
    for i, b, labels in matches:
        M[places[b], labels] += values[i] / np.sqrt(float(len(labels)))
    return NameMatches(list(places), M)
