"""Names of labels, items, features and columns have 1 to 1,000 characters.

That they are not empty, the core sees. What a log already has is applied, however long its names: only what is sent is
looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from feedrank.learners.errors import pointer
from feedrank.learners.instances import FeatureVector

from .faults import Unprocessable
from .json_types import View

LONGEST = 1000
TOO_LONG = f"a name has at most {LONGEST} characters"


def check_instance(instance: View) -> None:
    """Refuse an instance that names a feature, an item or a column too long."""
    for field, value in instance.items():
        if type(value) is FeatureVector and value.json is not None and len(value.json) <= LONGEST:
            continue  # no name in it is longer
        if field == "items":
            _check_items(value)
        elif field == "slots" and isinstance(value, list):
            for i, slot in enumerate(value):
                if isinstance(slot, Mapping):
                    _check_names(slot.get("id"), field, i, "id")
                    _check_names(slot.get("features"), field, i, "features")
        elif field == "features" and isinstance(value, list):
            _check_each(value, True, (field,))  # where the kernel reads them, they have no places any more
        elif field in ("features", "row") or (field == "text" and isinstance(value, Mapping)):
            _check_names(value, field)


def check_truth(truth: View) -> None:
    """Refuse a truth that names a label or an item too long."""
    for field, value in truth.items():
        if type(value) is not str or len(value) > LONGEST:
            _check_names(value, field)


def check_spec(spec: object) -> None:
    """Refuse a spec that names a label or a column too long, however deep in it."""
    for field, value in spec.items() if isinstance(spec, Mapping) else ():
        _check_deep(value, field)


def _check_items(items: Any) -> None:
    if isinstance(items, Mapping):
        for field in ("ids", "columns"):
            _check_names(items.get(field), "items", field)
    elif isinstance(items, list) and not _all_short(items):
        for i, item in enumerate(items):
            if isinstance(item, Mapping):
                _check_names(item.get("id"), "items", i, "id")
                _check_names(item.get("features"), "items", i, "features")
                if isinstance(item.get("text"), Mapping):
                    _check_names(item["text"], "items", i, "text")


def _all_short(items: list[Any]) -> bool:
    """Whether items of ids and features alone name nothing too long: their names are mostly the same ones."""
    try:
        ids, names = [item["id"] for item in items], set[Any]().union(*[item["features"] for item in items])
    except (TypeError, KeyError):  # one is no object, or its features cannot be named
        return False
    if any("text" in item for item in items):
        return False
    return all(type(name) is not str or len(name) <= LONGEST for name in chain(ids, names))


def _check_names(value: Any, *place: str | int) -> None:
    """Of a name, of the names in a list, or of those with a value each."""
    if type(value) is FeatureVector:
        _check_each(value.names, True, place)
    elif isinstance(value, Mapping):
        _check_each(value, True, place)
    elif isinstance(value, list):
        _check_each(value, False, place)
    elif isinstance(value, str) and len(value) > LONGEST:
        raise Unprocessable.at(pointer(*place), TOO_LONG)


def _check_each(names: Iterable[Any], by_name: bool, place: tuple[str | int, ...]) -> None:
    for i, name in enumerate(names):
        if type(name) is str and len(name) > LONGEST:
            # A pointer with the name in it would be as long.
            raise Unprocessable.at(pointer(*place) if by_name else pointer(*place, i), TOO_LONG)


def _check_deep(value: Any, *place: str | int) -> None:
    _check_names(value, *place)
    if isinstance(value, Mapping):
        for name, part in value.items():
            if isinstance(part, Mapping | list):
                _check_deep(part, *place, name)
    elif isinstance(value, list):
        for i, part in enumerate(value):
            if isinstance(part, Mapping | list):
                _check_deep(part, *place, i)
