"""The weights of the hot round in NumPy, to the bit: t = W' x and W <- W - eta x g'."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ..growth import columns_for
from .elementary import Floats, row_product
from .reference import Ints, Vector
from .welford import recount

HIGHEST = float(np.finfo(np.float32).max)  # where weights of float32 stop


class Weights:
    """W of features by labels: t = W' x, W <- W - eta x g'. `single` keeps float32; the arithmetic is float64.

    Above `brief` columns, unless that is 0, a kernel that has them may keep lists instead of rows; here all rows are long.
    """

    features: int
    labels: int

    short_rows = False

    def __init__(self, single: bool = False, brief: int = 0) -> None:
        self.features = self.labels = 0
        self.single = single
        self._theta: npt.NDArray[Any] = np.zeros((0, 0), dtype=np.float32 if single else np.float64)
        self._last: tuple[Any, ...] = (None, None, 0, None, None)

    @property
    def theta(self) -> npt.NDArray[Any]:
        """The weights (features, labels), on the same memory until they grow."""
        return self._theta[: self.features, : self.labels]

    def grow(self, features: int, labels: int) -> None:
        """Zero rows and columns for what is new."""
        if features < self.features or labels < self.labels:
            raise ValueError("weights only grow")
        if labels == self.labels and features <= len(self._theta):
            self.features = features
            return
        room, width = len(self._theta), columns_for(labels)
        if features > room:
            room = max(features, 2 * room, 16)
        if (room, width) != self._theta.shape:
            wider = np.zeros((room, width), dtype=self._theta.dtype)
            wider[: self.features, : self.labels] = self.theta
            self._theta = wider
        self.features, self.labels = features, labels

    def shrink(self, features: int, labels: int) -> None:
        """Take growth back: what leaves is zeroed, so that it can join again."""
        if features > self.features or labels > self.labels:
            raise ValueError("weights cannot shrink to more than they have")
        self._theta[features : self.features] = 0.0
        self._theta[:, labels : self.labels] = 0.0
        self.features, self.labels = features, labels

    def scores(self, x: Vector) -> Floats:
        """t = W' x."""
        block = self._theta.take(x.rows, axis=0)
        if self.single:
            block = block.astype(np.float64)
        return row_product(x.values, block)[: self.labels]

    def step(self, x: Vector, g: Floats, eta: float) -> None:
        """W <- W - eta x g', in the rows of x and the columns in which g is not 0."""
        flat, places, columns = self._places(x, g)
        steps = g.take(columns)
        moved = np.multiply.outer(steps if eta == 1.0 else eta * steps, x.values).ravel()
        if self.single:
            np.subtract(flat.take(places), moved, out=moved)
            flat[places] = np.minimum(np.maximum(moved, -HIGHEST), HIGHEST)
        else:
            np.subtract.at(flat, places, moved)

    def recount(self, rows: Ints, column: int, more: float) -> Floats:
        """L <- log(exp(L) + more) in these rows of a column; the old numbers."""
        return recount(self.theta, rows, column, more)

    def columns(self, rows: Ints, one: int, other: int) -> Floats:
        """Two columns in these rows, side by side: a copy."""
        return np.asarray(self.theta[rows][:, [one, other]])

    def set_column(self, rows: Ints, column: int, numbers: Floats) -> None:
        """Numbers in these rows of a column."""
        self.theta[rows, column] = numbers

    def ends(self) -> tuple[float, float]:
        """The least and the largest number, and 0 among them; NaN where one is not finite."""
        ends = float(np.min(self.theta, initial=0.0)), float(np.max(self.theta, initial=0.0))
        return ends if np.isfinite(ends).all() else (np.nan, np.nan)

    def _places(self, x: Vector, g: Floats) -> tuple[npt.NDArray[Any], Ints, Ints]:
        """All weights in one row, and where those are that a step along g touches, in these columns."""
        # The cells are asked for just before the step: their places are kept from one to the other.
        rows, along, width, places, columns = self._last
        if rows is not x.rows or along is not g or width != self._theta.shape[1]:
            width, columns = self._theta.shape[1], g.nonzero()[0]
            # Column by column: few long rows are quicker to make than many short ones.
            places = np.add.outer(columns, x.rows * width).ravel()
            self._last = x.rows, g, width, places, columns
        return self._theta.reshape(-1), places, columns

    def cells(self, x: Vector, g: Floats, cells: Floats | None = None) -> Floats | None:
        """The cells that a step along g touches; `cells` puts them back. Of float64 only."""
        flat, places, _ = self._places(x, g)
        if cells is None:
            return np.asarray(flat.take(places))
        flat[places] = cells
        return None

    def rows(self, first: int, stop: int) -> npt.NDArray[Any]:
        """A copy of the rows from one to before another."""
        return self.theta[first:stop].copy()

    def take(self, rows: Ints) -> npt.NDArray[Any]:
        """A copy of the rows of these numbers."""
        return self.theta[rows]  # `take` of NumPy would copy all of theta first: its rows are padded

    def put(self, first: int, rows: npt.NDArray[Any]) -> None:
        """Rows in the place of those that are there."""
        self.theta[first : first + len(rows)] = rows

    def nbytes(self) -> int:
        """Bytes of the weights in use, as long rows: where rows are short it is mostly less."""
        return self._theta.itemsize * self.features * columns_for(self.labels)
