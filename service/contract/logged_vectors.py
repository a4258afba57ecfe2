"""Vectors as the log keeps them: base64 of float32, a fifth of the bytes of their JSON, however they were sent.

What is no vector stays as it is: the core refuses it, with its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from feedrank.learners import table_rows, vectors

from .json_types import JSON, View


def pack(instance: JSON, roles: Mapping[str, str] | None) -> None:
    """Pack the vectors of an instance, of its items, and of its row by the roles of a spec's `input`."""
    if type(instance.get("vector")) is list:
        instance["vector"] = vectors.packed(instance["vector"])
    items, row = instance.get("items"), instance.get("row")
    if type(items) is list and any(type(item) is dict and "vector" in item for item in items):
        instance["items"] = [_packed(item) for item in items]
    if roles is not None and type(row) is dict:
        instance["row"] = table_rows.packed(roles, row)


def _packed(item: Any) -> Any:
    if type(item) is not dict or "vector" not in item:
        return item
    return {**item, "vector": vectors.packed(item["vector"])}


def size_of_part(part: View) -> int:
    """Numbers and names, roughly, in an instance or an item that is not read yet."""
    named = sum([len(part.get(name, ())) for name in ("features", "text", "row")])
    return named + vectors.size(part.get("vector", ()))
