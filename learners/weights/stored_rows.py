"""A matrix of weights that is not kept as one array: it is read and written by slices of its rows."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from .. import kernel
from ..kernel.elementary import Floats


def stored(weights: kernel.Weights) -> Floats:
    """The weights as a snapshot takes them: what it asks of an array, stored rows have too."""
    return cast(Floats, StoredRows(weights)) if weights.short_rows else weights.theta


def restore_stored(weights: kernel.Weights, numbers: Floats) -> None:
    """All numbers as they were, unless they were read into the weights already."""
    if not weights.short_rows:
        weights.theta[:] = numbers
    elif getattr(numbers, "weights", None) is not weights:
        weights.put(0, np.ascontiguousarray(numbers))


class StoredRows:
    """(features, labels) of weights whose rows may be short, as a snapshot takes it: of a gigabyte, a piece at a time."""

    ndim = 2
    flags: SimpleNamespace = SimpleNamespace(writeable=True)

    def __init__(self, weights: kernel.Weights) -> None:
        self.weights = weights
        self.dtype: np.dtype[Any] = weights.rows(0, 0).dtype

    @property
    def shape(self) -> tuple[int, int]:
        return self.weights.features, self.weights.labels

    @property
    def size(self) -> int:
        return self.weights.features * self.weights.labels

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * self.size

    def min(self, initial: float) -> float:
        """The least number, at most `initial`; no copy is made."""
        return float(np.minimum(initial, self.weights.ends()[0]))

    def max(self, initial: float) -> float:
        """The largest number, at least `initial`."""
        return float(np.maximum(initial, self.weights.ends()[1]))

    def __len__(self) -> int:
        return self.weights.features

    def __getitem__(self, rows: slice) -> npt.NDArray[Any]:
        first, stop, _ = rows.indices(len(self))
        return self.weights.rows(first, max(first, stop))

    def __setitem__(self, rows: slice, values: npt.NDArray[Any]) -> None:
        self.weights.put(rows.indices(len(self))[0], np.ascontiguousarray(values, self.dtype))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self.weights.theta, dtype)
