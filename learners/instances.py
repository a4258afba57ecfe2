"""Instances: from the JSON of the contract to arrays.

Reading is pure and depends on nothing but the input: what one process accepts, every replica accepts.

    FeatureVector    one feature vector by name            -> Vector, once the learner knows the rows of the names
    ItemList  a list of items, features by name     -> Matrix

`features`, `text` and `vector` (vectors.py) may come together, and so may those of every item.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from . import kernel, sparse, text, vectors
from .errors import InstanceError, pointer
from .features import (
    LARGEST,
    PLAIN,
    check_names,
    columns_of,
    finite,
    not_negative,
    numbered,
    numbers_of,
    read_features,
    repeated,
)
from .kernel import Features as FeatureVector
from .kernel.elementary import Floats, Mask
from .kernel.reference import EMPTY, Ints, Vector, ones
from .kernel.reference import Features as PlainFeatures
from .matrix import Matrix
from .sparse import Csr

if TYPE_CHECKING:
    from .choice.slots import Slot

__all__ = [
    "EMPTY",
    "LARGEST",
    "PLAIN",
    "FeatureVector",
    "Floats",
    "Ints",
    "ItemList",
    "Mask",
    "Matrix",
    "Vector",
    "not_negative",
    "numbered",
    "ones",
    "read",
    "read_features",
    "read_items",
]

# Lists whose matrix would be mostly zeros are kept sparse: above this many cells, below this share of them filled.
_SPARSE_CELLS = 65_536
_SPARSE_SHARE = 0.1


@dataclass(slots=True)
class ItemList:
    """A list of items by id and feature name; `values` is (items, names), dense or CSR; `context` is of the whole list.

    `vectors` is (items, width): what came beside the named features; `slots` are places to fill.
    """

    ids: Sequence[str]
    names: Sequence[str]
    values: Floats | Csr
    context: FeatureVector | None = None
    vectors: Floats | None = None
    slots: "Sequence[Slot]" = ()
    index: dict[str, int] | None = field(default=None, repr=False, compare=False)

    @property
    def places(self) -> dict[str, int]:
        """Where each id stands."""
        if self.index is None:
            self.index = dict(zip(self.ids, range(len(self.ids)), strict=True))
        return self.index

    @property
    def width(self) -> int:
        """The length of the items' vectors, 0 where there are none."""
        return 0 if self.vectors is None else int(self.vectors.shape[1])

    @property
    def features(self) -> int:
        """Numbers an item."""
        return len(self.names) + self.width

    @classmethod
    def dense(cls, ids: Sequence[str], matrix: Floats) -> "ItemList":
        """A list whose features are the columns of `matrix`, named `0`, `1`, ...: the fast way in from Python."""
        matrix = np.ascontiguousarray(matrix, dtype=np.float64)
        if matrix.ndim != 2 or len(matrix) != len(ids):
            raise InstanceError("the matrix must have one row per id", "/items")
        finite(matrix, "/items")
        _unique(ids, _id_of_item)
        return cls(ids, numbered(matrix.shape[1]), matrix)


def _unique(ids: Sequence[Any], place: Callable[[int], str]) -> dict[str, int]:
    """The place of each id."""
    if not {str}.issuperset(map(type, ids)) or "" in ids:
        bad = next(i for i, name in enumerate(ids) if not (isinstance(name, str) and name))
        raise InstanceError("an item needs an id: text that is not empty", place(bad))
    places = dict(zip(ids, range(len(ids)), strict=True))
    if len(places) < len(ids):
        bad = repeated(ids)
        raise InstanceError(f"the id {ids[bad]!r} is duplicated in the list", place(bad))
    return places


def _id_of_item(i: int) -> str:
    return pointer("items", i, "id")


PARTS = ("features", "text", "vector")  # of an instance, and of every item of a list


def read_items(items: object, tokenizer: str = text.RULES[0]) -> ItemList:
    """`[{"id": "d1", "features": ...}, ...]`, or `{"ids", "columns", "rows"}`: not empty, ids unique."""
    if isinstance(items, Mapping):
        return _read_columns(items)
    if not isinstance(items, list | tuple) or not items:
        raise InstanceError("must be a list of at least one item", "/items")
    if (pairs := _pairs(items)) is not None:
        ids, features = pairs
        _unique(ids, _id_of_item)
        if (alike := _alike(features)) is not None:
            return ItemList(ids, *alike)
    for i, item in enumerate(items):
        if type(item) is not dict and not isinstance(item, Mapping):  # asking an abstract class takes longer
            raise InstanceError("an item must be an object", pointer("items", i))
        strange = next((key for key in item if key not in ("id", *PARTS)), None)
        if strange is not None:
            raise InstanceError("unknown field", pointer("items", i, strange))
        if "id" not in item:
            raise InstanceError("missing field", pointer("items", i, "id"))
        if len(item) < 2:
            raise InstanceError("missing field: features, text or vector", pointer("items", i, "features"))
    ids = [item["id"] for item in items]
    _unique(ids, _id_of_item)
    rows = [_item(item, i, tokenizer) for i, item in enumerate(items)]
    read = vectors.read_each(items)
    first = rows[0].names
    if all(row.names is first and row.values is not None for row in rows):  # arrays of one length
        return ItemList(ids, first, np.array([row.values for row in rows]), vectors=read)
    listed = _gather(ids, rows)
    listed.vectors = read
    return listed


def _pairs(items: Sequence[Any]) -> tuple[list[str], list[Any]] | None:
    """Ids and features of items that have these two fields and no other, in few passes; None if one has not."""
    if {*map(type, items)} != {dict} or {*map(len, items)} != {2}:
        return None
    try:
        return [item["id"] for item in items], [item["features"] for item in items]
    except KeyError:
        return None


def _item(item: Mapping[str, Any], i: int, tokenizer: str) -> PlainFeatures | FeatureVector:
    """The named features of an item."""
    try:
        named = read_features(item["features"]) if "features" in item else None
        if "text" not in item:
            return PlainFeatures((), EMPTY) if named is None else named
        words = text.read(item["text"], tokenizer)
    except InstanceError as error:  # its place is only written where it is needed: lists are long
        raise InstanceError(error.detail, pointer("items", i) + error.pointer) from None
    return words if named is None else kernel.together(FeatureVector(named.names, named.values), words)


def _read_columns(items: Mapping[str, Any]) -> ItemList:
    """`{"ids": [...], "columns": [names], "rows": [[numbers], ...]}`: one row an id, one number a column.

    The rows may be the base64 of little-endian float32, one row after the other.
    """
    for key in items:
        if key not in ("ids", "columns", "rows"):
            raise InstanceError("unknown field", pointer("items", key))
    for key in ("ids", "columns", "rows"):
        if key not in items:
            raise InstanceError("missing field", pointer("items", key))
        packed = key == "rows" and isinstance(items[key], str)
        if not packed and not isinstance(items[key], list | tuple):
            what = "must be a list, or base64 of float32" if key == "rows" else "must be a list"
            raise InstanceError(what, pointer("items", key))
    ids, names, rows = items["ids"], items["columns"], items["rows"]
    if not ids:
        raise InstanceError("must be a list of at least one item", pointer("items", "ids"))
    places = _unique(ids, lambda i: pointer("items", "ids", i))
    names = columns_of(names)
    if isinstance(rows, str):
        return ItemList(ids, names, _unpacked(rows, len(ids), names), index=places)
    if len(rows) != len(ids):
        raise InstanceError(f"there are {len(ids)} ids and {len(rows)} rows", pointer("items", "rows"))
    plain = kernel.matrix(rows, len(names))
    if plain is not None:
        return ItemList(ids, names, plain)
    for i, row in enumerate(rows):
        if not isinstance(row, list | tuple) or len(row) != len(names):
            raise InstanceError(f"must be a list of {len(names)} numbers", pointer("items", "rows", i))
    if names and PLAIN.issuperset(map(type, chain.from_iterable(rows))):
        try:
            matrix = np.array(rows, dtype=np.float64)
        except OverflowError:
            matrix = np.full((1, 1), np.inf)
        if np.abs(matrix).max() <= LARGEST:
            return ItemList(ids, names, matrix)
    place = range(len(names))
    read = [numbers_of(row, place, pointer("items", "rows", i)) for i, row in enumerate(rows)]
    return ItemList(ids, names, np.array(read).reshape(len(ids), len(names)))


def _unpacked(rows: str, count: int, names: Sequence[str]) -> Floats:
    """The matrix of rows in base64."""
    numbers = kernel.read_singles(rows, count * len(names))
    if numbers is None:
        what = f"must be the base64 of {count} x {len(names)} numbers of 4 bytes (little-endian float32)"
        raise InstanceError(what, pointer("items", "rows"))
    matrix = numbers.reshape(count, len(names))
    if not math.isfinite(numbers.sum()):  # of float32, whose sum is finite if all are
        i, j = np.argwhere(~np.isfinite(matrix))[0].tolist()
        raise InstanceError(f"row {i}, column {names[j]!r}: must be finite", pointer("items", "rows"))
    return matrix


def _alike(features: list[Any]) -> tuple[Sequence[str], Floats] | None:
    """The names and the matrix of items that all have the same features in the same order, in a few passes.

    None where they have not, or something is wrong with them: then they are read one by one, which says where.
    """
    first = features[0]
    if {*map(type, features)} <= {dict, list} and not any(features):  # ids alone
        return (), np.zeros((len(features), 0))
    if type(first) is dict:
        names: Sequence[str] = list(first)
        if not all(type(row) is dict and list(row) == names for row in features):
            return None
        check_names(names, pointer("items", 0, "features"))
        rows = [list(row.values()) for row in features]
    elif type(first) is list and all(type(row) is list and len(row) == len(first) for row in features):
        names, rows = numbered(len(first)), features
    else:
        return None
    if not names or not PLAIN.issuperset(map(type, chain.from_iterable(rows))):
        return None
    try:
        matrix = np.array(rows, dtype=np.float64)
    except OverflowError:
        return None
    return (names, matrix) if np.abs(matrix).max() <= LARGEST else None


def _gather(ids: Sequence[str], rows: Sequence[PlainFeatures | FeatureVector]) -> ItemList:
    """One matrix over all the names of the list, in the order in which they come."""
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
        rare = sparse.csr_array(
            (values, np.array(where, dtype=np.intp), starts), shape=(len(rows), len(columns))
        )
        rare.sort_indices()
        return ItemList(ids, list(columns), rare)
    matrix = np.zeros((len(rows), len(columns)))
    matrix[np.repeat(np.arange(len(rows)), counts), where] = values
    return ItemList(ids, list(columns), matrix)


def read(
    instance: object, kind: str, context: bool = False, tokenizer: str = text.RULES[0]
) -> FeatureVector | ItemList:
    """An instance of the `kind` ("features" or "items") that the task takes; `context`: items may come with features."""
    if isinstance(instance, FeatureVector if kind == "features" else ItemList):
        return instance
    if type(instance) is not dict and not isinstance(instance, Mapping):
        raise InstanceError(f'must be an object with "{kind}"')
    allowed = PARTS if kind == "features" else ("items", "features") if context else ("items",)
    for key in instance:
        if key not in allowed:
            raise InstanceError("unknown field", pointer(key))
    if kind == "items":
        if "items" not in instance:
            raise InstanceError("missing field", "/items")
        parsed = read_items(instance["items"], tokenizer)
        if "features" in instance:
            parsed.context = _features(instance["features"])
        return parsed
    if not instance:
        raise InstanceError("missing field: features, text or vector", "/features")
    named = _features(instance["features"]) if "features" in instance else None
    if "text" in instance:
        words = text.read(instance["text"], tokenizer)
        named = words if named is None else kernel.together(named, words)
    if "vector" not in instance:
        assert named is not None
        return named
    if named is None:
        return vectors.alone(instance["vector"])
    return kernel.beside(named, vectors.read(instance["vector"]))


def _features(features: object) -> FeatureVector:
    """By the kernel, where it takes them at once; else here, which says what is wrong."""
    if isinstance(features, FeatureVector):
        return features
    read = kernel.read(features)
    if read is not None:
        return read
    plain = read_features(features)
    return FeatureVector(plain.names, plain.values)
