"""How single values of a spec are checked."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import SpecError, pointer
from .json_types import Json

# Settings beyond these cannot be told from 0 or infinity, but their products with features of 1e100 overflow.
SMALLEST, LARGEST = 1e-15, 1e15
MOST_NUMBERS = 10_000  # of one list: every learner keeps its spec, and every description shows it


@dataclass(frozen=True, slots=True)
class Check:
    """`read(value, field)` gives the value as it is kept, or raises SpecError with a pointer.

    `schema` says the same in JSON Schema, for /openapi.json, docs/spec.md and the page; `labels` lists the labels that a
    value names, each with the JSON pointer to its place, where all of them must be labels of the learner.
    """

    read: Callable[[object, str], Json]
    schema: Mapping[str, Json]
    labels: Callable[[Any, str], list[tuple[str, str]]] = lambda value, field: []

    @property
    def options(self) -> tuple[str, ...]:
        """The words that are allowed, if the value is one of some words."""
        options = self.schema.get("enum", ())
        return tuple(map(str, options)) if isinstance(options, list) else ()


def choice(*options: str) -> Check:
    """One of the options."""

    def read(value: object, field: str) -> str:
        if not isinstance(value, str) or value not in options:
            raise SpecError(f"must be one of {', '.join(options)}", pointer(field))
        return value

    return Check(read, {"type": "string", "enum": list(options)})


def _real(value: object, place: str, above: float | None, most: float | None) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise SpecError(f"must be a finite number with an absolute value of at most {LARGEST:g}", place)
    if above == 0 and 0 < value < SMALLEST:
        raise SpecError(f"must be at least {SMALLEST:g}", place)
    if above is not None and not value > above:
        raise SpecError(f"must be above {above:g}", place)
    if most is not None and value > most:
        raise SpecError(f"must be at most {most:g}", place)
    return float(value)


def number(above: float | None = None, most: float | None = None) -> Check:
    """A finite number."""
    return Check(lambda value, field: _real(value, pointer(field), above, most), _range(above, most))


def _range(above: float | None, most: float | None) -> dict[str, Json]:
    schema: dict[str, Json] = {"type": "number"}
    if above is not None:
        schema["exclusiveMinimum"] = above
    if most is not None:
        schema["maximum"] = most
    return schema


def number_or(*words: str, above: float | None = None) -> Check:
    """A finite number, or one of the words."""

    def read(value: object, field: str) -> float | str:
        if isinstance(value, str):
            if value in words:
                return value
            raise SpecError(f"must be a number or {' or '.join(words)}", pointer(field))
        return _real(value, pointer(field), above, None)

    return Check(read, {"anyOf": [_range(above, None), {"type": "string", "enum": list(words)}]})


def numbers(above: float | None = None, most: float | None = None) -> Check:
    """A list of at least one finite number, and of at most `MOST_NUMBERS`."""

    def read(value: object, field: str) -> list[float]:
        if not isinstance(value, list | tuple) or not 0 < len(value) <= MOST_NUMBERS:
            raise SpecError(f"must be a list of 1 to {MOST_NUMBERS} numbers", pointer(field))
        return [_real(entry, pointer(field, i), above, most) for i, entry in enumerate(value)]

    schema: dict[str, Json] = {"type": "array", "items": _range(above, most), "minItems": 1}
    return Check(read, schema | {"maxItems": MOST_NUMBERS})


def integer(least: int) -> Check:
    """A whole number."""

    def read(value: object, field: str) -> int:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
            or value != int(value)
            or not least <= value <= 2**53
        ):
            raise SpecError(f"must be a whole number of at least {least}", pointer(field))
        return int(value)

    return Check(read, {"type": "integer", "minimum": least})


def _boolean(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise SpecError("must be true or false", pointer(field))
    return value


def _label(value: object, *place: str | int) -> str:
    if not isinstance(value, str) or not value:
        raise SpecError("a label must be text that is not empty", pointer(*place))
    return value


def _label_list(value: object, field: str) -> list[str]:
    if not isinstance(value, list | tuple):
        raise SpecError("must be a list of labels", pointer(field))
    seen: dict[str, None] = {}
    for i, entry in enumerate(value):
        if _label(entry, field, i) in seen:
            raise SpecError(f"the label {entry!r} is duplicated", pointer(field, i))
        seen[entry] = None
    return list(seen)


def costs(zero: bool) -> Check:
    """A cost for each label named: above 0, or `zero` as well."""

    def read(value: object, field: str) -> dict[str, float]:
        if not isinstance(value, Mapping):
            raise SpecError("must be an object of label: cost", pointer(field))
        prices: dict[str, float] = {}
        for name, cost in value.items():
            place = pointer(field, _label(name, field))
            prices[name] = _real(cost, place, None if zero else 0.0, None)
            if prices[name] < 0:
                raise SpecError("must be at least 0", place)
        return prices

    prices: Json = {"type": "number", "minimum": 0} if zero else _range(0.0, None)
    return Check(
        read,
        {"type": "object", "additionalProperties": prices},
        lambda value, field: [(name, pointer(field, name)) for name in value],
    )


def _costs_of_each(value: object, field: str) -> dict[str, dict[str, float]]:
    if not isinstance(value, Mapping):
        raise SpecError("must be an object of truth: {decision: cost}", pointer(field))
    matrix: dict[str, dict[str, float]] = {}
    for truth, row in value.items():
        _label(truth, field)
        if not isinstance(row, Mapping):
            raise SpecError("must be an object of decision: cost", pointer(field, truth))
        matrix[truth] = {}
        for decision, cost in row.items():
            place = pointer(field, truth, _label(decision, field, truth))
            matrix[truth][decision] = _real(cost, place, None, None)
            if cost < 0:
                raise SpecError("must be at least 0", place)
    return matrix


def _label_blocks(value: object, field: str) -> list[list[str]]:
    if not isinstance(value, list | tuple) or not value:
        raise SpecError("must be a list of lists of labels", pointer(field))
    seen: set[str] = set()
    for i, block in enumerate(value):
        if not isinstance(block, list | tuple) or not block:
            raise SpecError("must be a list of at least one label", pointer(field, i))
        for j, entry in enumerate(block):
            if _label(entry, field, i, j) in seen:
                raise SpecError(f"the label {entry!r} is duplicated", pointer(field, i, j))
            seen.add(entry)
    return [list(block) for block in value]


_LABELS: dict[str, Json] = {"type": "array", "items": {"type": "string", "minLength": 1}}
boolean: Check = Check(_boolean, {"type": "boolean"})
label_list: Check = Check(_label_list, _LABELS | {"uniqueItems": True})
label_blocks: Check = Check(
    _label_blocks,
    {"type": "array", "items": _LABELS | {"minItems": 1}, "minItems": 1},
    lambda value, field: [
        (name, pointer(field, i, j)) for i, block in enumerate(value) for j, name in enumerate(block)
    ],
)
cost_matrix: Check = Check(
    _costs_of_each,
    {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": {"type": "number", "minimum": 0},
        },
    },
    lambda value, field: [
        entry
        for truth, row in value.items()
        for entry in [
            (truth, pointer(field, truth)),
            *((decision, pointer(field, truth, decision)) for decision in row),
        ]
    ],
)
