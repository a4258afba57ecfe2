"""What must hold of a snapshot beyond its checksum, which anyone can compute: all that `codec.load` refuses.

    header   every field there, of its type, finite, and in its range
    arrays   known types, shapes that fit the bytes, finite numbers, counts of at least 0
    model    restoring and asking for the state again gives the very arrays and counters that were stored
    learner  predicts finite numbers on features that it knows, on one that it does not, and on none

Each function raises ValueError with the reason.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from .errors import InputError
from .learner import Learner
from .weights.base import Arrays, Counters

LARGEST = 2**53  # what a count may be: JSON readers and float64 keep no more
FARTHEST = 1e290  # features of 1e100 have squares, and costs of 1e15 make them longer
PROBED = 8  # features that the trial prediction names
FIELDS = {"spec", "version", "labels", "events", "progress", "counters", "arrays"}
OPTIONAL = {"renames", "vector"}


class Kind(Protocol):
    """An array, or the place of one."""

    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


def size_of(shape: object) -> int:
    """The entries of an array of this shape."""
    if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < LARGEST for n in shape):
        raise ValueError(f"{shape} is not the shape of an array")
    return math.prod(shape)


def dtype_of(kind: object) -> np.dtype[Any]:
    """A number type: bool, integer or float of at most 8 bytes."""
    dtype = np.dtype(kind if isinstance(kind, str) else "O")
    if dtype.kind not in "biuf" or dtype.itemsize > 8 or dtype.shape:
        raise ValueError(f"{kind} is not the type of an array")
    return dtype


def check_header(header: object) -> None:
    """Fields, types and ranges."""
    if not isinstance(header, dict) or header.keys() - OPTIONAL != FIELDS:
        raise ValueError("the header has other fields")
    block = header.get("vector", [0, 0])
    if not isinstance(block, list) or len(block) != 2:
        raise ValueError("the place of the vector is not two numbers")
    for number in block:
        _count(number, "the place of the vector")
    for field in ("version", "events"):
        _count(header[field], field)
    progress = header["progress"]
    if not isinstance(progress, list) or len(progress) != 4:
        raise ValueError("progress is not four numbers")
    rounds, mistakes, updates, loss = progress
    for value in (rounds, mistakes, updates):
        _count(value, "progress")
    if mistakes > rounds or updates > rounds:
        raise ValueError("progress has more mistakes or updates than rounds")
    if type(loss) not in (int, float) or not 0.0 <= loss < math.inf:
        raise ValueError("the cumulative loss is not a number of at least 0")
    if not isinstance(header["counters"], dict):
        raise ValueError("the counters are not an object")
    _finite(header["counters"])


def _count(value: object, name: str) -> None:
    if type(value) is not int or not 0 <= value < LARGEST:
        raise ValueError(f"{name} is not a whole number of at least 0")


def _finite(value: object) -> None:
    """Every number of some JSON is finite, and none is too large to be one."""
    if isinstance(value, dict):
        for part in value.values():
            _finite(part)
    elif isinstance(value, list):
        for part in value:
            _finite(part)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a counter is not finite")
    elif isinstance(value, int) and abs(value) >= LARGEST:
        raise ValueError("a counter is too large")


def check_arrays(arrays: Arrays) -> None:
    """Of all that is not the model's: types and shapes, and counts of at least 0."""
    for name, dtype, ndim in (("names", np.uint8, 1), ("ends", np.int64, 1), ("recent", np.float64, 1)):
        if arrays[name].dtype != dtype or arrays[name].ndim != ndim:
            raise ValueError(f"{name} has another type or shape")
    if "counts" in arrays and (arrays["counts"].dtype != np.int64 or arrays["counts"].ndim != 1):
        raise ValueError("counts has another type or shape")
    for name in ("scaling/counts", "scaling/deviations", "recent"):
        if name in arrays and arrays[name].min(initial=0.0) < 0.0:
            raise ValueError(f"{name} contains a number below 0")


def check_labels(learner: Learner, spec: object, labels: object) -> None:
    """The spec in full, and its labels first."""
    if learner.spec != spec:
        raise ValueError("the spec is not written in full")
    if not isinstance(labels, list) or not all(isinstance(name, str) and name for name in labels):
        raise ValueError("the labels are not a list of names")
    own = list(learner.labels)
    if len(set(labels)) < len(labels) or labels[: len(own)] != own or (learner.form.closed and labels != own):
        raise ValueError("the labels are not those of the spec, or one is duplicated")
    if learner.form.items and labels:
        raise ValueError("a learner of lists has no labels")


def check_renames(renames: object, labels: Sequence[object]) -> None:
    """Old names, which no label has any more, and new ones, which are not renamed themselves."""
    if not isinstance(renames, dict) or not all(
        isinstance(new, str) and new and old and new not in renames for old, new in renames.items()
    ):
        raise ValueError("the renames are not old names and new ones")
    if any(name in renames for name in labels):
        raise ValueError("a label has a name that was given up")


def check_counters(counters: object, fresh: object, name: str = "counters") -> None:
    """Of the same fields and types as those of a learner that has learned nothing; whole numbers are at least 0."""
    if isinstance(fresh, dict):
        if not isinstance(counters, dict) or counters.keys() != fresh.keys():
            raise ValueError(f"{name} has other fields")
        for key, part in fresh.items():
            check_counters(counters[key], part, key)
    elif isinstance(fresh, list):
        if not isinstance(counters, list) or len(counters) != len(fresh):
            raise ValueError(f"{name} is not a list of {len(fresh)}")
        for part, other in zip(counters, fresh, strict=True):
            check_counters(part, other, name)
    elif isinstance(fresh, bool):
        if not isinstance(counters, bool):
            raise ValueError(f"{name} is neither true nor false")
    elif isinstance(counters, bool) or not isinstance(counters, int | float):
        if fresh is not None or counters is not None:
            raise ValueError(f"{name} is not a number")
    elif isinstance(fresh, int) and (not isinstance(counters, int) or counters < 0):
        raise ValueError(f"{name} is not a whole number of at least 0")


def check_kinds(stored: Mapping[str, Kind], fresh: Arrays) -> None:
    """Arrays that a learner of these names has before its first event have the same type and number of axes."""
    for name, array in fresh.items():
        other = stored.get(f"model/{name}")
        if other is not None and (other.dtype != array.dtype or len(other.shape) != array.ndim):
            raise ValueError(f"{name} has another type or shape")


def check_same(learner: Learner, stored: Arrays, counters: Counters) -> None:
    """The model took every array and counter as it is: a shape that was stretched or a type that was cast shows."""
    kept = learner.model.arrays()
    if kept.keys() != stored.keys():
        raise ValueError("the model has other arrays")
    for name, array in kept.items():
        other = stored[name]
        if array is other:  # read into the model's own memory
            continue
        if array.dtype != other.dtype or array.shape != other.shape or not np.array_equal(array, other):
            raise ValueError(f"{name} does not fit the learner")
    if json.dumps(learner.model.counters()) != json.dumps(counters):
        raise ValueError("the counters do not fit the learner")


def check_magnitudes(arrays: Arrays) -> None:
    """No number is next to the largest of all: what is made of such a one later is not finite."""
    for name, array in arrays.items():
        if array.dtype.kind != "f":
            continue
        if not (float(array.max(initial=0.0)) <= FARTHEST and float(array.min(initial=0.0)) >= -FARTHEST):
            raise ValueError(f"{name} contains a number beyond {FARTHEST:g}")


def probe(learner: Learner) -> None:
    """Predictions and the description are finite."""
    known = [name for name, _ in zip(learner.features, range(PROBED), strict=False)]
    if learner.form.items:
        known = [name for name in known if name]
        rows = [{"id": "0", "features": []}, {"id": "1", "features": dict.fromkeys(known, 1.0)}]
        instances: list[object] = [{"items": rows}]
    else:
        instances = [{"features": {}}, {"features": dict.fromkeys([*known, "?"], 1.0)}]
    for instance in instances:
        try:
            json.dumps(learner.predict(instance).to_json(), allow_nan=False)
        except InputError:
            continue  # the spec rules such an instance out
    json.dumps(learner.describe(), allow_nan=False)
