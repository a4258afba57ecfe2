"""What the learner asks of weights, whatever their form."""

from abc import ABC, abstractmethod
from typing import Any

import numpy.typing as npt

from ..instances import Floats, Matrix, Vector

X = Vector | Matrix
Arrays = dict[str, npt.NDArray[Any]]
Counters = dict[str, Any]


class Savable(ABC):
    """What a snapshot holds of a part of a learner: arrays, and plain numbers."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """The arrays, trimmed to what is used."""

    def counters(self) -> Counters:
        """The rest: plain numbers."""
        return {}

    @abstractmethod
    def restore(self, arrays: Arrays, counters: Counters) -> None:
        """Take the state back, bit for bit."""


MISFIT = "the weights do not fit the features and labels"


class Weights(Savable):
    """theta and W = link(theta), rows for features, columns for labels (one column for lists)."""

    # How many vectors are stored, where scores are sums over stored vectors.
    examples = 0

    @abstractmethod
    def grow(self, features: int, labels: int) -> None:
        """Make room: new rows and columns weigh as if they had always been there and never been updated."""

    @abstractmethod
    def mark(self) -> Any:
        """What `rewind` needs to take back every `grow` after this, as long as no step was taken."""

    @abstractmethod
    def rewind(self, mark: Any) -> None:
        """All as it was at the mark."""

    @abstractmethod
    def scores(self, x: X) -> Floats:
        """t = W x of a vector, or X w of a list."""

    def curvature(self, x: Vector) -> float:
        """h such that a step along g moves the scores by no more than h |g|^2, along g."""
        return x.squared_norm()

    @abstractmethod
    def step(self, x: X, g: Floats, eta: float) -> None:
        """theta <- theta - eta * (x outer g), or theta - eta * X' g. Every feature of x is known.

        The step is taken, or, whatever is raised, it is not.
        """

    @abstractmethod
    def contributions(self, x: X) -> Floats | None:
        """What each active feature adds to each score: (rows, labels), or (items, rows) of a list.

        None where a score is not a sum over features.
        """

    @abstractmethod
    def nbytes(self) -> int:
        """Memory in use: a function of the state, not of the room left for growth."""


def check_rows(starts: Any, columns: Any, values: Any, rows: int, width: int) -> None:
    """ValueError unless these are the rows of a sparse matrix of this shape."""
    if starts.shape != (rows + 1,) or starts.dtype.kind != "i" or columns.dtype.kind != "i":
        raise ValueError("the rows have other starts")
    if starts[0] != 0 or (starts[1:] < starts[:-1]).any() or columns.shape != values.shape:
        raise ValueError("the rows have other starts")
    if columns.shape != (int(starts[-1]),):
        raise ValueError("the rows have other starts")
    if columns.min(initial=0) < 0 or columns.max(initial=-1) >= width:
        raise ValueError("a row names a column that does not exist")
