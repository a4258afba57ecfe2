"""Blocks of features by name, in NumPy, to the bit: which block a feature is in, and what the block makes of its value.

    x_j = v_j sqrt(alike / |v|^2 + (1 - alike) s_b / |v_b|^2),    s_b = w_b / sum_b w_b
    w_b = ((1 + right_b) / (1 + wrong_b))^2
    a_b = - sum_{j in b} sum_r g_r x_j W_jr;    right_b += 1 if a_b > 0,    wrong_b += 1 if a_b < 0

`FeatureBlocks` is the state, of which the native kernel has its own; `scaled` and `judge` are the formulas, on arrays of
either. Sums run over the features of a block, and over the blocks, from the first to the last. With `named`, features that
are words of labels' names count for these labels, and a_b has their part too (label_words.py).
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..growth import grown
from ..names import Names
from .elementary import Floats, total
from .label_words import LabelWords, Match, NameMatches, find_matches, match_matrix
from .reference import EMPTY, Ints, Vector
from .table import Table

ALIKE = 0.5
# A block whose squares, beside the largest feature of 1, are no more than this has only the length that all have alike.
TINY = 1e-200


def block_of(name: str) -> str:
    """What stands before the first colon; empty for a plain feature."""
    return name.partition(":")[0] if ":" in name else ""


class FeatureBlocks:
    """The blocks in order of joining, how often each was right and wrong, and the block of every row of a table.

    `named`: also the words of labels' names, that of every row, and the weights that all labels share, one a block.
    """

    def __init__(self, named: bool = False) -> None:
        self.rows: int = 0
        self._matches = LabelWords() if named else None
        self._names = Names()
        self._numbers: Ints = np.empty(0, dtype=np.intp)  # with room behind, as the counts
        self._right: Floats = EMPTY
        self._wrong: Floats = EMPTY

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __getitem__(self, number: int) -> str:
        return self._names[number]

    def find(self, name: object) -> int:
        """The number of a block, -1 if it has not joined."""
        return self._names.index.get(name, -1)  # type: ignore[call-overload, no-any-return]

    @property
    def numbers(self) -> Ints:
        """The block of every row, on the same memory until there are more."""
        return self._numbers[: self.rows]

    @property
    def right(self) -> Floats:
        """How often each block was right, on the same memory until there are more."""
        return self._right[: len(self._names)]

    @property
    def wrong(self) -> Floats:
        """How often each block was wrong, on the same memory until there are more."""
        return self._wrong[: len(self._names)]

    @property
    def named(self) -> bool:
        """Whether words of labels' names count for them."""
        return self._matches is not None

    @property
    def _label_words(self) -> LabelWords:
        if self._matches is None:
            raise ValueError("these blocks do not look at the names of labels")
        return self._matches

    @property
    def labels(self) -> int:
        """The labels whose names are known."""
        return self._label_words.labels

    @property
    def words(self) -> Ints:
        """The word of every row, -1 where it is none, on the same memory until there are more."""
        return self._label_words.rows(self.rows)

    @property
    def shared(self) -> Floats:
        """The weights that all labels share, on the same memory until there are more blocks."""
        return self._label_words.shared[: len(self._names)]

    def find_word(self, word: str) -> int:
        """The number of a word, -1 if no label had it yet."""
        return self._label_words.find(word)

    def labels_of(self, word: int) -> list[int]:
        """The labels that a word matches."""
        return self._label_words.of(word)

    def name(self, table: Table, words: Sequence[str]) -> None:
        """One more label joins, with these words, each once. The table is the one that was taken in last."""
        self._label_words.name(table, self._names.names, words)

    def unname(self, words: Sequence[str]) -> None:
        """The label that joined last, with these words, leaves."""
        self._label_words.unname(words)

    def grow(self, table: Table) -> None:
        """Take in the blocks of the features that have joined."""
        start, end = self.rows, len(table)
        if end > start:
            numbers = [self._names.add(block_of(table[row])) for row in range(start, end)]
            self._numbers = grown(self._numbers, end)
            self._numbers[start:end] = numbers
            self._right = grown(self._right, len(self._names))
            self._wrong = grown(self._wrong, len(self._names))
            if self._matches is not None:
                self._matches.grow(table, start, len(self._names))
            self.rows = end

    def shrink(self, rows: int, count: int) -> None:
        """Take growth back: so many rows and blocks stay, and what leaves can join again."""
        if rows > self.rows or count > len(self._names):
            raise ValueError("blocks cannot shrink to more than they are")
        self._right[count:] = 0.0
        self._wrong[count:] = 0.0
        if self._matches is not None:
            self._matches.shared[count:] = 0.0
        self._names.forget(count)
        self.rows = rows


def squared(odds: Floats) -> Floats:
    """w of blocks that were right so many times as often as wrong."""
    return odds * odds


def _sums(numbers: Ints, values: Floats, count: int) -> Floats:
    """The sum of each block's values, from the first to the last."""
    return np.asarray(np.bincount(numbers, values, count), dtype=np.float64)


def _late(blocks: FeatureBlocks, names: Sequence[str]) -> list[int]:
    """The blocks of unknown features; those that are new stand behind the known ones."""
    late: dict[str, int] = {}
    numbers = []
    for name in names:
        block = block_of(name)
        number = blocks.find(block)
        numbers.append(late.setdefault(block, len(blocks) + len(late)) if number < 0 else number)
    return numbers


def scaled(
    blocks: FeatureBlocks,
    rows: Ints,
    v: Floats,
    unknown: Sequence[str],
    alike: float = ALIKE,
    worth_of: Callable[[Floats], Floats] = squared,
) -> Floats:
    """x of the values `v` on known rows, and behind them on unknown features."""
    own = blocks.numbers[rows]
    if len(unknown):
        own = np.concatenate((own, np.array(_late(blocks, unknown), dtype=np.intp)))
    top = np.abs(v).max(initial=0.0)
    if not top > 0:
        return v
    # Scaled by the largest first, so that squares of large numbers do not overflow.
    v = v / top
    known = len(blocks)
    squares = _sums(own, v * v, known)
    there = squares > TINY
    worth = np.ones(len(squares))  # what is new was never wrong
    worth[:known] = worth_of((1.0 + blocks.right) / (1.0 + blocks.wrong))
    worth = np.where(there, worth, 0.0)
    shares = worth * ((1.0 - alike) / total(worth)) / np.where(there, squares, 1.0)
    v *= np.sqrt(alike / total(squares) + shares)[own]
    return v


def find_matches_of(blocks: FeatureBlocks, x: Vector, first: int) -> list[Match]:
    """The features of x behind the first ones that are words of labels' names."""
    unknown = x.unknown if len(x.unseen) else ()  # type: ignore[attr-defined]
    return find_matches(blocks, x.rows[first:], unknown, _late(blocks, unknown))


def match_matrix_of(blocks: FeatureBlocks, x: Vector, first: int, count: int) -> NameMatches:
    """What the features of x behind the first ones say of `count` labels."""
    values = np.concatenate((x.values[first:], x.unseen)) if len(x.unseen) else x.values[first:]
    return match_matrix(find_matches_of(blocks, x, first), values, count)


def judge(
    blocks: FeatureBlocks, rows: Ints, parts: Floats, g: Floats, matches: NameMatches | None = None
) -> None:
    """Count who was right: `parts` are what the weights of features in `rows` add to the scores, -g the step."""
    agreement = np.zeros(len(rows))
    for r in g.nonzero()[0].tolist():
        agreement -= g[r] * parts[: len(rows), r]
    right, wrong = blocks.right, blocks.wrong
    sums = _sums(blocks.numbers[rows], agreement, len(right))
    if matches is not None:
        matches.agree(sums, blocks.shared, g)
    right += sums > 0.0
    wrong += sums < 0.0
