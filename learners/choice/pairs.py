"""Numbers for pairs of a row and a column, kept only for the pairs that were met: an open-addressed index in NumPy.

    key    row * 2^32 + column
    slot   the first of h, h + 1, ... (modulo the size, a power of 2) that is empty or has the key, h = (key * ODD) >> shift
    index  slot -> number of the pair, -1 if empty; numbers count up as pairs join

A whole block of rows and columns is looked up at once, a probe of all that are still open at a time. At most `LOAD` of the
slots are taken, so some two probes find most. Where a key stands in the index depends on the order of joining; what is
found does not.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from ..instances import Ints

LOAD = 0.6
LEAST = 64
ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / the golden ratio: neighbouring keys go far apart
Keys = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64 | np.float32]


class Pairs:
    """`weights` and `precision` have a row for each memory, a column for each pair.

    Of several memories the numbers are kept in float32, of one in float64: so they take half as much room each.
    """

    memories: int
    prior: float

    def __init__(self, memories: int, prior: float) -> None:
        self.memories, self.prior = memories, prior
        self.dtype: type[np.floating[Any]] = np.float64 if memories == 1 else np.float32
        self.count: int = 0
        self.keys: Keys = np.zeros(LEAST // 2, dtype=np.int64)
        self.weights: Numbers = np.zeros((memories, LEAST // 2), dtype=self.dtype)
        self.precision: Numbers = np.full((memories, LEAST // 2), prior, dtype=self.dtype)
        self.index: npt.NDArray[np.int32] = np.full(LEAST, -1, dtype=np.int32)
        self._joining = False  # whether the index may have pairs of the present event

    def find(self, rows: Ints, columns: Ints) -> Ints:
        """The number of every pair of the block, -1 where it was never met."""
        return self._find(keys_of(rows, columns).ravel()).reshape(len(rows), len(columns))

    def _find(self, keys: Keys) -> Ints:
        found = np.full(len(keys), -1, dtype=np.intp)
        if not self.count:
            return found
        slots, left = self._home(keys), np.arange(len(keys))
        mask = len(self.index) - 1
        while len(left):
            numbers = self.index[slots]
            hit = self.keys[numbers] == keys
            taken = numbers >= 0
            found[left[taken & hit]] = numbers[taken & hit]
            on = taken & ~hit
            left, keys, slots = left[on], keys[on], (slots[on] + 1) & mask
        return found

    def _home(self, keys: Keys) -> Ints:
        shift = np.uint64(64 - (len(self.index).bit_length() - 1))
        home: Ints = ((keys.view(np.uint64) * ODD) >> shift).astype(np.intp)
        return home

    def join(self, rows: Ints, columns: Ints) -> Ints:
        """The same, with every pair known from now on: 0 at the prior's precision."""
        keys = keys_of(rows, columns).ravel()
        found = self._find(keys)
        fresh = np.flatnonzero(found < 0)
        if len(fresh):
            first = self.count
            self._room(first + len(fresh))
            self.keys[first : first + len(fresh)] = keys[fresh]
            self.weights[:, first : first + len(fresh)] = 0.0
            self.precision[:, first : first + len(fresh)] = self.prior
            numbers = np.arange(first, first + len(fresh))
            self._joining = True
            insert(self.index, self._home(keys[fresh]), numbers)
            found[fresh] = numbers
            self.count = first + len(fresh)
        return found.reshape(len(rows), len(columns))

    def _room(self, count: int) -> None:
        """Room for so many pairs."""
        if count > len(self.keys):
            size = max(count, len(self.keys) * 5 // 4)
            keys, weights = np.zeros(size, dtype=np.int64), np.zeros((self.memories, size), dtype=self.dtype)
            precision = np.full((self.memories, size), self.prior, dtype=self.dtype)
            keys[: self.count] = self.keys[: self.count]
            weights[:, : self.count] = self.weights[:, : self.count]
            precision[:, : self.count] = self.precision[:, : self.count]
            self.keys, self.weights, self.precision = keys, weights, precision
        if count > LOAD * len(self.index):
            self._rebuild(1 << max(0, int(count / LOAD)).bit_length())

    def _rebuild(self, size: int) -> None:
        index = np.full(size, -1, dtype=np.int32)
        self.index, older = index, self.index
        try:
            insert(index, self._home(self.keys[: self.count]), np.arange(self.count))
        except BaseException:
            self.index = older
            raise

    def mark(self) -> None:
        """An event begins."""
        self._joining = False

    def rewind(self, count: int) -> None:
        """Only the first so many pairs stay; those behind may be in the index or not."""
        self.count = count
        if self._joining:
            self._rebuild(len(self.index))
        self._joining = False

    def of(self, rows: Ints, columns: Ints) -> npt.NDArray[np.bool_]:
        """Which pairs have one of these rows, or one of these columns."""
        keys = self.keys[: self.count]
        gone: npt.NDArray[np.bool_] = np.isin(keys >> 32, rows) | np.isin(keys & 0xFFFFFFFF, columns)
        return gone

    def without(self, gone: npt.NDArray[np.bool_]) -> "Pairs":
        """The others; these pairs stay as they are."""
        rest, kept = Pairs(self.memories, self.prior), ~gone
        count = self.count
        rest.restore(
            self.keys[:count][kept], self.weights[:, :count][:, kept], self.precision[:, :count][:, kept]
        )
        return rest

    def restore(self, keys: Keys, weights: Numbers, precision: Numbers) -> None:
        """These pairs, which have each key once."""
        self.keys, self.weights, self.precision = keys, weights, precision
        self.count = len(keys)
        self._rebuild(max(LEAST, 1 << int(self.count / LOAD).bit_length()))

    def nbytes(self) -> int:
        """Memory taken, roughly: each pair, and its part of the index."""
        return self.count * (8 + 2 * self.weights.itemsize * self.memories + int(8 / LOAD))


def keys_of(rows: Ints, columns: Ints) -> Keys:
    """The keys of a block."""
    return (rows.astype(np.int64)[:, None] << 32) | columns.astype(np.int64)


def insert(index: npt.NDArray[np.int32], slots: Ints, numbers: Ints) -> None:
    """Give each number the first empty slot from its own on. All try at once; who is overwritten tries the next."""
    mask = len(index) - 1
    while len(numbers):
        empty = index[slots] < 0
        index[slots[empty]] = numbers[empty]
        on = index[slots] != numbers
        slots, numbers = (slots[on] + 1) & mask, numbers[on]
