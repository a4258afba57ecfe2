"""A matrix of weights that is not kept as one array: it is read and written by slices of its rows."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import kernel


class StoredRows:
    """(features, labels) of weights whose rows may be short, as a snapshot takes it: of a gigabyte, a piece at a time."""

    ndim = 2
    flags = SimpleNamespace(writeable=True)

    def __init__(self, weights: kernel.Weights) -> None:
        self._weights = weights
        self.dtype: np.dtype[Any] = weights.theta.dtype

    @property
    def shape(self) -> tuple[int, int]:
        return self._weights.features, self._weights.labels

    @property
    def size(self) -> int:
        return self._weights.features * self._weights.labels

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * self.size

    def __len__(self) -> int:
        return self._weights.features

    def __getitem__(self, rows: slice) -> npt.NDArray[Any]:
        first, stop, _ = rows.indices(len(self))
        return self._weights.rows(first, max(first, stop))

    def __setitem__(self, rows: slice, values: npt.NDArray[Any]) -> None:
        self._weights.put(rows.indices(len(self))[0], np.ascontiguousarray(values, self.dtype))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self._weights.theta, dtype)
