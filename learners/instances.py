"""Instances: from the JSON of the contract to arrays.

Reading is pure and depends on nothing but the input: what one process accepts, every replica accepts.

    Words    one feature vector by name            -> Vector, once the learner knows the rows of the names
    Listing  a list of items, features by name     -> Matrix
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .errors import InstanceError, pointer

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

# A number beyond this is as useless as an infinite one: its square, or a few thousand updates with it, overflow.
LARGEST = 1e100
_PLAIN = frozenset({int, float})
EMPTY: Floats = np.empty(0)
# Lists whose matrix would be mostly zeros are kept sparse: above this many cells, below this share of them filled.
_SPARSE_CELLS = 65_536
_SPARSE_SHARE = 0.1


@dataclass(slots=True)
class Vector:
    """x of one instance: `values` on the known feature `rows`; `unseen` are the values on features not met yet."""

    rows: Ints
    values: Floats
    unseen: Floats = field(default_factory=lambda: EMPTY)

    def product(self, block: Floats) -> Floats:
        """t = W x, where `block` holds the rows of W that are active."""
        return self.values @ block

    def gradient(self, g: Floats) -> Floats:
        """The step in the active rows: x outer g."""
        return np.multiply.outer(self.values, g)

    def squared_norm(self) -> float:
        """||x||^2, unseen features included."""
        return float(self.values @ self.values) + float(self.unseen @ self.unseen)


@dataclass(slots=True)
class Matrix:
    """X of a list: one row an item, one column for each of the known feature `rows` of the list."""

    rows: Ints
    values: Any  # Floats (items, len(rows)), or a scipy CSR array of that shape
    unseen: Floats = field(default_factory=lambda: EMPTY)  # squared norm of each item's features not met yet

    def product(self, block: Floats) -> Floats:
        """t = X w, where `block` holds the active rows of w as a column."""
        return self.values.dot(block[:, 0])  # type: ignore[no-any-return]

    def gradient(self, g: Floats) -> Floats:
        """The step in the active rows: X' g, as a column."""
        return self.values.T.dot(g)[:, None]  # type: ignore[no-any-return]

    def squared_norms(self) -> Floats:
        """||x_i||^2 of every item, unseen features included."""
        if sparse.issparse(self.values):
            squares = np.asarray(self.values.multiply(self.values).sum(axis=1)).ravel()
        else:
            squares = np.einsum("ij,ij->i", self.values, self.values)
        return squares + self.unseen if len(self.unseen) else squares

    def squared_norm(self) -> float:
        """The largest ||x_i||^2: R^2 of this list."""
        return float(self.squared_norms().max())


@dataclass(slots=True)
class Words:
    """A feature vector by name, read and checked. Without `values` each name counts 1, and may stand twice."""

    names: Sequence[str]
    values: Floats | None


@dataclass(slots=True)
class Listing:
    """A list of items by id and feature name; `values` is (items, names), dense or CSR."""

    ids: Sequence[str]
    names: Sequence[str]
    values: Any

    @classmethod
    def dense(cls, ids: Sequence[str], matrix: Floats) -> "Listing":
        """A list whose features are the columns of `matrix`, named `0`, `1`, ...: the fast way in from Python."""
        matrix = np.ascontiguousarray(matrix, dtype=np.float64)
        if matrix.ndim != 2 or len(matrix) != len(ids):
            raise InstanceError("the matrix must have one row an id", "/items")
        _finite(matrix, "/items")
        _unique(ids)
        return cls(ids, numbered(matrix.shape[1]), matrix)


@lru_cache(maxsize=256)
def numbered(count: int) -> tuple[str, ...]:
    """The names of a feature vector given as plain numbers: `0`, `1`, ..."""
    return tuple(map(str, range(count)))


def _finite(values: Any, place: str) -> None:
    # `not <=` is true for NaN as well.
    if values.size and not np.abs(values).max() <= LARGEST:
        raise InstanceError(f"numbers must be finite and at most {LARGEST:g} in size", place)


def _numbers(values: Sequence[Any], names: Sequence[str], place: str) -> Floats:
    """The numbers as an array; `names` only serve to point at the one that is wrong."""
    if not _PLAIN.issuperset(map(type, values)):
        for name, value in zip(names, values, strict=True):
            if isinstance(value, bool) or not isinstance(value, Real):
                raise InstanceError("must be a number", place + pointer(name))
    try:
        array = np.array(values, dtype=np.float64)
    except OverflowError:
        array = np.full(len(values), np.inf)
    if array.size and not np.abs(array).max() <= LARGEST:
        bad = next(n for n, v in zip(names, values, strict=True) if not abs(v) <= LARGEST)
        raise InstanceError(f"must be finite and at most {LARGEST:g} in size", place + pointer(bad))
    return array


def read_features(features: Any, place: str = "/features") -> Words:
    """`{"name": number}`, `["name", ...]` (each 1, a repeated name once), or `[number, ...]` (named 0, 1, ...)."""
    if isinstance(features, dict | Mapping):
        names = list(features)
        _check_names(names, place)
        return Words(names, _numbers(list(features.values()), names, place))
    if isinstance(features, list | tuple):
        if not features:
            return Words((), EMPTY)
        if isinstance(features[0], str):
            _check_names(features, place)
            return Words(features, None)
        numbers = numbered(len(features))
        return Words(numbers, _numbers(features, numbers, place))
    if isinstance(features, np.ndarray):
        if features.ndim != 1 or features.dtype.kind not in "fiu":
            raise InstanceError("must be one-dimensional and of numbers", place)
        array = features.astype(np.float64)
        _finite(array, place)
        return Words(numbered(len(array)), array)
    raise InstanceError("must be an object of numbers, a list of names, or a list of numbers", place)


@lru_cache(maxsize=1024)
def ones(count: int) -> Floats:
    """The values of names alone, read-only."""
    array = np.ones(count)
    array.setflags(write=False)
    return array


def _check_names(names: Sequence[Any], place: str) -> None:
    try:
        "".join(names)  # the quickest way to see that all are text
    except TypeError:
        bad = next(i for i, name in enumerate(names) if not isinstance(name, str))
        raise InstanceError("a feature's name must be text", place + pointer(bad)) from None
    if not all(names):
        raise InstanceError("a feature's name must not be empty", place)


def _unique(ids: Sequence[Any]) -> None:
    if not {str}.issuperset(map(type, ids)) or "" in ids:
        bad = next(i for i, name in enumerate(ids) if not (isinstance(name, str) and name))
        raise InstanceError("an item needs an id: text that is not empty", pointer("items", bad, "id"))
    if len(set(ids)) < len(ids):
        seen: set[str] = set()
        bad = next(i for i, name in enumerate(ids) if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InstanceError(f"the id {ids[bad]!r} stands twice in the list", pointer("items", bad, "id"))


def read_items(items: Any) -> Listing:
    """`[{"id": "d1", "features": ...}, ...]`: not empty, ids unique."""
    if not isinstance(items, list | tuple) or not items:
        raise InstanceError("must be a list of at least one item", "/items")
    for i, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise InstanceError("an item must be an object", pointer("items", i))
        if item.keys() != {"id", "features"}:
            strange = next((key for key in item if key not in ("id", "features")), None)
            if strange is not None:
                raise InstanceError("unknown field", pointer("items", i, strange))
            missing = "id" if "id" not in item else "features"
            raise InstanceError("is required", pointer("items", i, missing))
    ids = [item["id"] for item in items]
    _unique(ids)
    alike = _alike([item["features"] for item in items])
    if alike is not None:
        return Listing(ids, *alike)
    rows = [read_features(item["features"], pointer("items", i, "features")) for i, item in enumerate(items)]
    first = rows[0].names
    if all(row.names is first and row.values is not None for row in rows):  # arrays of one length
        return Listing(ids, first, np.array([row.values for row in rows]))
    return _gather(ids, rows)


def _alike(features: list[Any]) -> tuple[Sequence[str], Floats] | None:
    """The names and the matrix of items that all have the same features in the same order, in a few passes.

    None where they have not, or something is wrong with them: then they are read one by one, which says where.
    """
    first = features[0]
    if type(first) is dict:
        names: Sequence[str] = list(first)
        if not all(type(row) is dict and list(row) == names for row in features):
            return None
        _check_names(names, pointer("items", 0, "features"))
        rows = [list(row.values()) for row in features]
    elif type(first) is list and all(type(row) is list and len(row) == len(first) for row in features):
        names, rows = numbered(len(first)), features
    else:
        return None
    if not names or not _PLAIN.issuperset(map(type, chain.from_iterable(rows))):
        return None
    try:
        matrix = np.array(rows, dtype=np.float64)
    except OverflowError:
        return None
    return (names, matrix) if np.abs(matrix).max() <= LARGEST else None


def _gather(ids: Sequence[str], rows: Sequence[Words]) -> Listing:
    """One matrix over all the names of the list, in the order in which they are met."""
    columns: dict[str, int] = {}
    names = [dict.fromkeys(row.names) if row.values is None else row.names for row in rows]
    where = [columns.setdefault(name, len(columns)) for row in names for name in row]
    counts = np.array([len(row) for row in names])
    each = [
        ones(count) if row.values is None else row.values
        for row, count in zip(rows, counts.tolist(), strict=True)
    ]
    values = np.concatenate(each)
    cells = len(rows) * len(columns)
    if cells > _SPARSE_CELLS and len(where) < _SPARSE_SHARE * cells:
        starts = np.concatenate([[0], np.cumsum(counts)])
        matrix: Any = sparse.csr_array(
            (values, np.array(where, dtype=np.intp), starts), shape=(len(rows), len(columns))
        )
        matrix.sort_indices()
    else:
        matrix = np.zeros((len(rows), len(columns)))
        matrix[np.repeat(np.arange(len(rows)), counts), where] = values
    return Listing(ids, list(columns), matrix)


def read(instance: Any, kind: str) -> Words | Listing:
    """An instance of the `kind` ("features" or "items") that the learner's task takes."""
    if not isinstance(instance, dict | Mapping):
        if isinstance(instance, Words if kind == "features" else Listing):
            return instance
        raise InstanceError(f'must be an object with "{kind}"')
    if len(instance) != 1 or kind not in instance:
        strange = next((key for key in instance if key != kind), None)
        if strange is not None:
            raise InstanceError("unknown field", pointer(strange))
        raise InstanceError("is required", pointer(kind))
    return read_features(instance["features"]) if kind == "features" else read_items(instance["items"])


def not_negative(words: Words) -> None:
    """Refuse negative values, for the learners whose weights live on the simplex."""
    if words.values is not None and words.values.size and words.values.min() < 0:
        bad = words.names[int(np.argmin(words.values))]
        raise InstanceError("must not be negative with complexity: entropy", pointer("features", bad))
