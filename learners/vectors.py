"""Vectors: numbers without names, `"vector": [numbers]` or the base64 of little-endian float32, both read to the same.

Every number is rounded to float32 before anything else, so that a learner sees the same from an app, from its log and from
a model that computes in float32; one that is not finite then is refused. In the log a vector is its base64, 4/3 x 4 bytes a
number. The first vector that is learned, or `vector` in the spec, fixes the length.
"""

import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import kernel
from .checks import Check, integer
from .errors import InstanceError, SpecError, pointer
from .kernel import Features as FeatureVector
from .kernel.elementary import Floats
from .kernel.reference import EMPTY

__all__ = ["LONGEST", "check_length", "length", "packed", "read", "read_each"]

LONGEST = 16_384
WRONG = "must be a list of numbers, or the base64 of little-endian float32"
NOT_FINITE = "must be a number that is finite in float32"


def _length(value: object, field: str) -> int:
    count = int(integer(1).read(value, field))  # type: ignore[arg-type]
    if count > LONGEST:
        raise SpecError(f"a vector has at most {LONGEST:,} numbers", pointer(field))
    return count


length: Check = Check(_length, {"type": "integer", "minimum": 1, "maximum": LONGEST})


def read(value: object, place: str = "/vector") -> Floats:
    """The numbers, as float64; InstanceError, with a pointer, where they are none."""
    if isinstance(value, FeatureVector) and value.vector is not None:  # as the kernel reads JSON
        return value.vector
    if isinstance(value, str):
        count = 3 * (len(value) - value[-2:].count("=")) // 4 // 4
        numbers = kernel.read_singles(value, count) if len(value) <= 6 * LONGEST else None
        if numbers is None and count > LONGEST:
            raise InstanceError(f"a vector has at most {LONGEST:,} numbers", place)
        if numbers is None:
            raise InstanceError(WRONG, place)
    else:
        numbers = _singles(value, place)
    if not 0 < len(numbers) <= LONGEST:
        raise InstanceError(f"a vector has 1 to {LONGEST:,} numbers", place)
    finite = np.isfinite(numbers)
    if not finite.all():
        bad = int(finite.argmin())
        raise InstanceError(NOT_FINITE, place if isinstance(value, str) else place + pointer(bad))
    return numbers


def alone(value: object) -> FeatureVector:
    """The instance of a vector alone."""
    if isinstance(value, FeatureVector) and value.width:
        return value
    plain = kernel.vector_of(value)
    return FeatureVector((), EMPTY, read(value)) if plain is None else plain


def _singles(value: object, place: str) -> Floats:
    """Plain numbers, or an array of them, rounded to float32."""
    if isinstance(value, np.ndarray):
        if value.ndim != 1 or value.dtype.kind not in "fiu":
            raise InstanceError(WRONG, place)
    elif not isinstance(value, list | tuple):
        raise InstanceError(WRONG, place)
    elif len(value) > LONGEST:
        raise InstanceError(f"a vector has at most {LONGEST:,} numbers", place)
    elif (plain := kernel.matrix([value], len(value))) is not None:
        with np.errstate(over="ignore"):
            return np.asarray(plain[0].astype(np.float32), dtype=np.float64)
    else:
        for i, number in enumerate(value):
            if isinstance(number, bool) or not isinstance(number, int | float | np.number):
                raise InstanceError("must be a number", place + pointer(i))
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(value, dtype=np.float64).astype(np.float32).astype(np.float64)
    except OverflowError:  # a whole number beyond float64
        bad = next(i for i, number in enumerate(value) if abs(number) > 1e300)
        raise InstanceError(NOT_FINITE, place + pointer(bad)) from None


def read_each(items: Sequence[Mapping[str, Any]]) -> Floats | None:
    """The vectors of a list, one row an item, 0 for an item without; None where no item has one. All have one length."""
    rows = [
        read(item["vector"], pointer("items", i, "vector")) if "vector" in item else None
        for i, item in enumerate(items)
    ]
    first = next((row for row in rows if row is not None), None)
    if first is None:
        return None
    for i, row in enumerate(rows):
        if row is not None:
            check_length(len(row), len(first), pointer("items", i, "vector"), "the first one of the list")
    return np.array([np.zeros(len(first)) if row is None else row for row in rows])


def check_length(count: int, expected: int, place: str, whose: str) -> None:
    """Refuse a vector of another length than is `whose`."""
    if expected and count and count != expected:
        raise InstanceError(f"has {count} numbers, and {whose} has {expected}", place)


def size(value: object) -> int:
    """How many numbers there are, roughly, of what was not read yet."""
    if isinstance(value, str):
        return len(value) * 3 // 16
    return len(value) if isinstance(value, list | tuple | np.ndarray | FeatureVector) else 0


def packed(value: object) -> object:
    """A vector as its base64; what is none, or is base64 already, as it is."""
    if isinstance(value, str):
        return value
    try:
        numbers = read(value)
    except InstanceError:
        return value
    return binascii.b2a_base64(numbers.astype("<f4").tobytes(), newline=False).decode()
