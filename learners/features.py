"""Feature vectors by name, read from plain Python: `{"name": number}`, `["name", ...]`, `[number, ...]`, or an array.

Tested in tests/learners/test_instances.py.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np

from .errors import InstanceError, pointer
from .kernel import Features as FeatureVector
from .kernel.elementary import Floats
from .kernel.reference import EMPTY
from .kernel.reference import Features as PlainFeatures

# A number beyond this is as useless as an infinite one: its square, or a few thousand updates with it, overflow.
LARGEST = 1e100
PLAIN = frozenset({int, float})


@lru_cache(maxsize=256)
def numbered(count: int) -> tuple[str, ...]:
    """The names of a feature vector given as plain numbers: `0`, `1`, ..."""
    return tuple(map(str, range(count)))


def finite(values: Floats, place: str) -> None:
    # `not <=` is true for NaN as well.
    if values.size and not np.abs(values).max() <= LARGEST:
        raise InstanceError(f"numbers must be finite, with an absolute value of at most {LARGEST:g}", place)


def numbers_of(values: Sequence[Any], names: Sequence[str | int], place: str) -> Floats:
    """The numbers as an array; `names` only serve to point at the one that is wrong."""
    if not PLAIN.issuperset(map(type, values)):
        for name, value in zip(names, values, strict=True):
            if isinstance(value, bool) or not isinstance(value, Real):
                raise InstanceError("must be a number", place + pointer(name))
    try:
        array = np.array(values, dtype=np.float64)
    except OverflowError:
        array = np.full(len(values), np.inf)
    if array.size and not np.abs(array).max() <= LARGEST:
        bad = next(n for n, v in zip(names, values, strict=True) if not abs(v) <= LARGEST)
        raise InstanceError(
            f"must be finite, with an absolute value of at most {LARGEST:g}", place + pointer(bad)
        )
    return array


def read_features(features: object, place: str = "/features") -> PlainFeatures:
    """`{"name": number}`, `["name", ...]` (each 1, a repeated name once), or `[number, ...]` (named 0, 1, ...)."""
    if isinstance(features, dict | Mapping):
        names = list(features)
        check_names(names, place)
        return PlainFeatures(names, numbers_of(list(features.values()), names, place))
    if isinstance(features, list | tuple):
        if not features:
            return PlainFeatures((), EMPTY)
        if isinstance(features[0], str):
            check_names(features, place)
            return PlainFeatures(features, None)
        numbers = numbered(len(features))
        return PlainFeatures(numbers, numbers_of(features, numbers, place))
    if isinstance(features, np.ndarray):
        if features.ndim != 1 or features.dtype.kind not in "fiu":
            raise InstanceError("must be one-dimensional and of numbers", place)
        array = features.astype(np.float64)
        finite(array, place)
        return PlainFeatures(numbered(len(array)), array)
    raise InstanceError("must be an object of numbers, a list of names, or a list of numbers", place)


def check_names(names: Sequence[Any], place: str) -> None:
    try:
        "".join(names)  # the quickest way to see that all are text
    except TypeError:
        bad = next(i for i, name in enumerate(names) if not isinstance(name, str))
        raise InstanceError("a feature's name must be text", place + pointer(bad)) from None
    if not all(names):
        raise InstanceError("a feature's name must not be empty", place)


def not_negative(words: FeatureVector) -> None:
    """Refuse negative values, for the learners whose weights live on the simplex."""
    if words.values is not None and words.values.size and words.values.min() < 0:
        bad = words.names[int(np.argmin(words.values))]
        raise InstanceError("must not be negative with complexity: entropy", pointer("features", bad))
    if words.vector is not None and words.vector.min() < 0:
        place = int(np.argmin(words.vector))
        raise InstanceError("must not be negative with complexity: entropy", pointer("vector", place))


def repeated(names: Sequence[str]) -> int:
    """Where the first name stands that came before."""
    first: dict[str, int] = {}
    return next(i for i, name in enumerate(names) if first.setdefault(name, i) < i)


MOST_SHARED = 1024  # columns of a list whose names are kept for the next ones


def columns_of(names: Sequence[str]) -> Sequence[str]:
    """The names of columns, checked; equal ones are one object from list to list, which is looked up once."""
    if len(names) > MOST_SHARED:
        return _unlike(names)
    try:
        return _shared(tuple(names))
    except TypeError:  # what cannot be hashed is no text
        return _unlike(names)


@lru_cache(maxsize=64)
def _shared(names: tuple[str, ...]) -> Sequence[str]:
    return _unlike(names)


def _unlike(names: Sequence[str]) -> Sequence[str]:
    check_names(names, pointer("items", "columns"))
    if len(set(names)) < len(names):
        raise InstanceError("a column is duplicated", pointer("items", "columns", repeated(names)))
    return names
