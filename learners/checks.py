"""How single values of a spec are checked."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import SpecError, pointer
from .instances import LARGEST


@dataclass(frozen=True, slots=True)
class Check:
    """`read(value, field)` gives the value as it is kept, or raises SpecError with a pointer."""

    read: Callable[[Any, str], Any]


def choice(*options: str) -> Check:
    """One of the options."""

    def read(value: Any, field: str) -> str:
        if not isinstance(value, str) or value not in options:
            raise SpecError(f"must be one of {', '.join(options)}", pointer(field))
        return value

    return Check(read)


def _real(value: Any, place: str, above: float | None, most: float | None) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise SpecError(f"must be a finite number of at most {LARGEST:g} in size", place)
    if above is not None and not value > above:
        raise SpecError(f"must be above {above:g}", place)
    if most is not None and value > most:
        raise SpecError(f"must be at most {most:g}", place)
    return float(value)


def number(above: float | None = None, most: float | None = None) -> Check:
    """A finite number."""
    return Check(lambda value, field: _real(value, pointer(field), above, most))


def number_or(*words: str, above: float | None = None) -> Check:
    """A finite number, or one of the words."""

    def read(value: Any, field: str) -> float | str:
        if isinstance(value, str):
            if value in words:
                return value
            raise SpecError(f"must be a number or {' or '.join(words)}", pointer(field))
        return _real(value, pointer(field), above, None)

    return Check(read)


def numbers(above: float | None = None, most: float | None = None) -> Check:
    """A list of at least one finite number."""

    def read(value: Any, field: str) -> list[float]:
        if not isinstance(value, list | tuple) or not value:
            raise SpecError("must be a list of at least one number", pointer(field))
        return [_real(entry, pointer(field, i), above, most) for i, entry in enumerate(value)]

    return Check(read)


def integer(least: int) -> Check:
    """A whole number."""

    def read(value: Any, field: str) -> int:
        whole = isinstance(value, int) or (
            isinstance(value, float) and math.isfinite(value) and value == int(value)
        )
        if isinstance(value, bool) or not whole or not least <= value <= 2**53:
            raise SpecError(f"must be a whole number of at least {least}", pointer(field))
        return int(value)

    return Check(read)


def _boolean(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        raise SpecError("must be true or false", pointer(field))
    return value


def _label(value: Any, *place: str | int) -> str:
    if not isinstance(value, str) or not value:
        raise SpecError("a label must be text that is not empty", pointer(*place))
    return value


def _label_list(value: Any, field: str) -> list[str]:
    if not isinstance(value, list | tuple):
        raise SpecError("must be a list of labels", pointer(field))
    seen: dict[str, None] = {}
    for i, entry in enumerate(value):
        if _label(entry, field, i) in seen:
            raise SpecError(f"the label {entry!r} stands twice", pointer(field, i))
        seen[entry] = None
    return list(seen)


def costs(zero: bool) -> Check:
    """A cost for each label named: above 0, or `zero` as well."""

    def read(value: Any, field: str) -> dict[str, float]:
        if not isinstance(value, Mapping):
            raise SpecError("must be an object of label: cost", pointer(field))
        found: dict[str, float] = {}
        for name, cost in value.items():
            place = pointer(field, _label(name, field))
            found[name] = _real(cost, place, None if zero else 0.0, None)
            if found[name] < 0:
                raise SpecError("must be at least 0", place)
        return found

    return Check(read)


def _label_blocks(value: Any, field: str) -> list[list[str]]:
    if not isinstance(value, list | tuple) or not value:
        raise SpecError("must be a list of lists of labels", pointer(field))
    seen: set[str] = set()
    for i, block in enumerate(value):
        if not isinstance(block, list | tuple) or not block:
            raise SpecError("must be a list of at least one label", pointer(field, i))
        for j, entry in enumerate(block):
            if _label(entry, field, i, j) in seen:
                raise SpecError(f"the label {entry!r} stands twice", pointer(field, i, j))
            seen.add(entry)
    return [list(block) for block in value]


boolean = Check(_boolean)
label_list = Check(_label_list)
label_blocks = Check(_label_blocks)
