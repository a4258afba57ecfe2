"""Instances in the hot round, in NumPy, to the bit. The native kernel repeats it; where none was built, this one runs.

    Features    names and values as they were read, and the vector beside them     Vector, LookedUp    x of them

Sums run from the first to the last, so that a plain loop gives the same bits: over rows of a matrix by `np.add.reduce`,
over one row by `np.add.accumulate`. No product is left to BLAS, no logarithm to a vector library.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .body_cost import check_body
from .elementary import Floats, row_product, total

Ints = npt.NDArray[np.intp]
EMPTY: Floats = np.empty(0)
BIAS = ""  # the name of the constant feature: no other can have it, because empty names are refused
_ONES: Floats = np.ones(4_096)
_ONES.setflags(write=False)


def ones(count: int) -> Floats:
    """The values of names alone, read-only."""
    if count <= len(_ONES):
        return _ONES[:count]
    array = np.ones(count)
    array.setflags(write=False)
    return array


class Features:
    """A feature vector by name, read and checked. Without `values` each name counts 1, and may be there twice.

    `vector` are the numbers without names that came beside them, already those of float32.
    """

    __slots__ = ("names", "values", "vector")
    json: bytes | None = None

    def __init__(
        self, names: Sequence[str], values: Floats | None = None, vector: Floats | None = None
    ) -> None:
        self.names: Sequence[str] = names
        self.values: Floats | None = values
        self.vector: Floats | None = vector

    @property
    def width(self) -> int:
        """The length of the vector, 0 where there is none."""
        return 0 if self.vector is None else len(self.vector)

    def __len__(self) -> int:
        return self.width + (len(self.names) if self.values is not None else len(set(self.names)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Features) or list(self.names) != list(other.names):
            return False
        if self.width != other.width or (self.width and not np.array_equal(self.vector, other.vector)):  # type: ignore[arg-type]
            return False
        if self.values is None or other.values is None:
            return self.values is other.values
        return np.array_equal(self.values, other.values)

    __hash__: ClassVar[None]  # type: ignore[assignment]


def read(features: Any) -> Features | None:
    """The features of plain Python objects; None leaves them to `instances.read_features`."""
    return None


def matrix(rows: Any, width: int) -> Floats | None:
    """Lists of `width` numbers as an array; None leaves them to `instances.read_items`."""
    return None


def loads(line: bytes, last: Features | None = None) -> Any:
    """JSON with the members "features" read, `last` where they are those; None leaves it to another reader."""
    check_body(line)
    return None


@dataclass(slots=True)
class Vector:
    """x of one instance: `values` on the known `rows`; `unseen` are the values on features that have not joined."""

    rows: Ints
    values: Floats
    unseen: Floats = field(default_factory=lambda: EMPTY)

    @property
    def fresh(self) -> int:
        """How many features have not joined."""
        return len(self.unseen)

    def product(self, block: Floats) -> Floats:
        """t = W' x, where `block` holds the rows of W that are active."""
        return row_product(self.values, block)

    def squared_norm(self) -> float:
        """||x||^2, unseen features included."""
        every = np.concatenate((self.values, self.unseen)) if len(self.unseen) else self.values
        return total(every * every)


@dataclass(slots=True)
class LookedUp(Vector):
    """A vector of a table: rows ascend; `unknown` names the features that have not joined.

    `late`: how many of these, the last ones, are the parts of a vector. `every` are the rows and values of all features,
    those that have not joined in the rows that they will get. Names `alone` have no value of 0.
    """

    unknown: Sequence[str] = ()
    late: int = 0
    every: tuple[Ints, Floats] | None = None
    alone: bool = False

    def squared_norm(self) -> float:
        """||x||^2, unseen features included."""
        values = None if self.every is None else self.every[1]
        return Vector.squared_norm(self) if values is None else total(values * values)
