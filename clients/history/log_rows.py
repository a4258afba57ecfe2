"""Events of a log as training data, and as rows of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..payloads import JSON, Payload

INSTANCES = ("features", "items", "text", "vector", "row", "unknown_columns")
TRUTHS = ("label", "labels", "relevance", "clicks", "reward")
LOG = (
    "version",
    "at",
    "kind",
    "feedback_id",
    "prediction_id",
    "instance",
    "truth",
    "served",
    "weight",
    "retracted",
    "rename",
)
OLDER_LOG = LOG[:-1]  # before labels could be renamed
# The third is how earlier releases named the second; of what was erased, there is nothing.
KINDS = ("feedback", "retraction", "withdrawal", "rename")
TRAINING = (*INSTANCES, *TRUTHS, "served", "weight")
NUMBERS = {"version": "int64", "at": "float64", "weight": "float64"}  # all other columns hold text
OLDER_TRAINING = tuple(name for name in TRAINING if name != "vector")  # before there were vectors
PLAIN = {"kind", "feedback_id", "prediction_id", "label", "text", "vector", *NUMBERS}  # the rest is JSON


def is_event(row: Payload) -> bool:
    """Whether a row is an event of a log, and not one whose own columns are named like some of an event's."""
    kind, version = row.get("kind"), row.get("version")
    return (
        kind in KINDS and isinstance(version, int) and "at" in row and ("truth" in row or kind != "feedback")
    )


def lesson(event: Payload) -> JSON | None:
    """The feedback body that teaches what an event did; None for what was retracted, and for retractions."""
    if event["kind"] != "feedback" or event.get("retracted") or event.get("withdrawn"):
        return None
    rest = {name: event[name] for name in ("served", "weight") if event.get(name) is not None}
    return {**(event.get("instance") or {}), **event["truth"], **rest}


def by_new_names(event: Payload, renames: Mapping[str, str]) -> JSON:
    """An event with the names that labels have now."""
    changed = {field: _renamed(event[field], renames) for field in ("truth", "served") if event.get(field)}
    return {**event, **changed}


def _renamed(answer: Payload, renames: Mapping[str, str]) -> JSON:
    changed: JSON = {}
    for field, value in answer.items():
        if isinstance(value, str):
            changed[field] = renames.get(value, value)
        elif isinstance(value, list):
            changed[field] = list(dict.fromkeys(renames.get(name, name) for name in value))
        elif isinstance(value, dict):
            grades: dict[str, float] = {}
            for name, grade in value.items():
                new = renames.get(name, name)
                grades[new] = max(grade, grades.get(new, grade))
            changed[field] = grades
        else:
            changed[field] = value
    return changed


def to_cell(name: str, value: Any) -> Any:
    """A value of an event as a cell. A text has fields, or is a string: one that begins like JSON is written as JSON."""
    if isinstance(value, str) and not (name == "text" and value.startswith(("{", '"'))):
        return value
    return value if value is None or name in NUMBERS else json.dumps(value, ensure_ascii=False)


def from_cell(name: str, cell: Any) -> Any:
    """The value again."""
    is_json = name not in PLAIN or (name == "text" and cell.startswith(("{", '"')))
    return json.loads(cell) if is_json else cell
