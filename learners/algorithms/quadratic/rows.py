"""Sparse rows that are only ever appended: the events of the dual form, and the landmarks of a kernel."""

from __future__ import annotations

import numpy as np

from ... import sparse
from ...growth import grown
from ...instances import Floats, Ints
from ...sparse import Csr
from ...weights.base import Arrays

__all__ = ["Rows"]


RowsMark = tuple[int, Ints, Ints, Floats]


class Rows:
    """A matrix by rows: `indices` and `values` of row i stand at starts[i]:starts[i + 1]."""

    def __init__(self) -> None:
        self.count: int = 0
        self._starts: Ints = np.zeros(1, dtype=np.intp)
        self._indices: Ints = np.zeros(0, dtype=np.intp)
        self._values: Floats = np.zeros(0)

    def append(self, indices: Ints, values: Floats) -> None:
        """One more row; indices are distinct."""
        used = int(self._starts[self.count])
        end = used + len(indices)
        self._indices, self._values = grown(self._indices, end), grown(self._values, end)
        self._indices[used:end] = indices
        self._values[used:end] = values
        self.count += 1
        self._starts = grown(self._starts, self.count + 1)
        self._starts[self.count] = end

    def extend(self, indices: Ints, values: Floats | Csr) -> None:
        """A row for each row of `values`, dense or sparse, whose columns are `indices`."""
        if not isinstance(values, np.ndarray):
            for i in range(values.shape[0]):
                row = slice(values.indptr[i], values.indptr[i + 1])
                self.append(indices[values.indices[row]], values.data[row])
            return
        for row in values:
            filled = np.flatnonzero(row)
            self.append(indices[filled], row[filled])

    def keep(self, count: int) -> None:
        """The first rows only."""
        self.restore(self.arrays(count))

    def mark(self) -> RowsMark:
        """Rows are only appended: the arrays and their count are the way back."""
        return self.count, self._starts, self._indices, self._values

    def rewind(self, mark: RowsMark) -> None:
        """All as it was at the mark."""
        self.count, self._starts, self._indices, self._values = mark

    def matrix(self, columns: int) -> Csr:
        """All rows as CSR."""
        used = int(self._starts[self.count])
        return sparse.csr_array(
            (self._values[:used], self._indices[:used], self._starts[: self.count + 1]),
            shape=(self.count, columns),
        )

    def arrays(self, count: int | None = None) -> Arrays:
        count = self.count if count is None else count
        used = int(self._starts[count])
        return {
            "starts": self._starts[: count + 1].copy(),
            "indices": self._indices[:used].copy(),
            "values": self._values[:used].copy(),
        }

    def restore(self, arrays: Arrays) -> None:
        self._starts, self._indices, self._values = (
            arrays[name].copy() for name in ("starts", "indices", "values")
        )
        self.count = len(self._starts) - 1

    def nbytes(self) -> int:
        """What is used, whatever the room."""
        return 8 * (self.count + 1) + 16 * int(self._starts[self.count])
