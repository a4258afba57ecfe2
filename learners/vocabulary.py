"""Everything that may stand in a spec, as plain data made from the registrations; spec_page.py writes docs/spec.md."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from . import forms, registry, spec
from .forms import Form
from .registry import Algorithm, Parameter

__all__ = ["reference"]

Schema = Mapping[str, Any]  # of JSON Schema: whatever a check has put there


class LabelRule(TypedDict):
    """How many labels a spec names, and whether more may join."""

    closed: bool
    least: int
    most: int | None


class TaskEntry(TypedDict):
    """A task."""

    name: str
    text: str
    instance: str
    truths: list[str]
    decision: str
    labels: LabelRule | None
    losses: list[str]
    preset: dict[str, Any]


class Condition(TypedDict):
    """Another field, and the values of it that give a parameter a meaning."""

    field: str
    values: list[object]


class ParameterEntry(TypedDict):
    """A field of a spec; `by_task` where its schema differs between tasks."""

    name: str
    text: str
    tasks: list[str]
    schema: Schema
    by_task: dict[str, Schema]
    default: object
    when: Condition | None
    required: bool | str
    example: object


class AlgorithmEntry(TypedDict):
    """An algorithm; `weight` is what an event of weight w does."""

    name: str
    text: str
    tasks: list[str]
    weight: str
    parameters: list[ParameterEntry]


class Reference(TypedDict):
    """Everything that may stand in a spec."""

    tasks: list[TaskEntry]
    common: list[ParameterEntry]
    algorithms: list[AlgorithmEntry]


def reference() -> Reference:
    """Tasks, algorithms and parameters as JSON: names, types (JSON Schema), defaults, conditions, texts, examples.

    `/openapi.json` and the form of the page are made from it, and docs/spec.md.
    """
    return {
        "tasks": [_task(forms.of(name)) for name in forms.names()],
        "common": [_parameter(name, spec.COMMON, forms.names()) for name in spec.COMMON],
        "algorithms": [_algorithm(entry) for entry in registry.algorithms()],
    }


def _task(form: Form) -> TaskEntry:
    return {
        "name": form.name,
        "text": form.text,
        "instance": form.instance,
        "truths": list(form.truths),
        "decision": form.decision.field,
        "labels": None if form.items else {"closed": form.closed, "least": form.least, "most": form.most},
        "losses": list(registry.loss_names(form.name)),
        "preset": registry.preset(form.name),
    }


def _algorithm(entry: Algorithm) -> AlgorithmEntry:
    return {
        "name": entry.name,
        "text": entry.text,
        "tasks": list(entry.does()),
        "weight": entry.weight,
        "parameters": [_parameter(name, spec.parameters(entry), entry.does()) for name in entry.parameters],
    }


def _parameter(name: str, table: Mapping[str, Parameter], tasks: tuple[str, ...]) -> ParameterEntry:
    entry = table[name]
    fitting = [task for task in tasks if _possible(entry, table, forms.of(task))]
    schemas: dict[str, Schema] = {task: dict(entry.check_for(forms.of(task)).schema) for task in fitting}
    different = {json.dumps(schema) for schema in schemas.values()}
    when = entry.when
    return {
        "name": name,
        "text": entry.text,
        "tasks": fitting,
        "schema": _union(list(schemas.values())),
        "by_task": schemas if len(different) > 1 else {},
        "default": entry.shown or _default(entry, fitting),
        "when": None if when is None else {"field": when.field, "values": list(when.values)},
        "required": str(entry.required) if not isinstance(entry.required, bool) else entry.required,
        "example": entry.example,
    }


def _possible(entry: Parameter, table: Mapping[str, Parameter], form: Form) -> bool:
    """Whether the parameter can have a meaning on a task: its condition may ask for a value that the task has not."""
    if not entry.forms(form):
        return False
    if entry.when is None:
        return True
    other = table[entry.when.field]
    options = other.check_for(form).options if other.forms(form) else ()
    return other.forms(form) and (not options or bool(set(options) & set(entry.when.values)))


def _union(schemas: Sequence[Schema]) -> Schema:
    """One schema for all tasks: the words of all of them."""
    first = dict(schemas[0]) if schemas else {}
    if "enum" in first:
        first["enum"] = list(dict.fromkeys(word for schema in schemas for word in schema["enum"]))
    return first


def _default(entry: Parameter, tasks: list[str]) -> object:
    """The default as JSON; "the first" where it differs between tasks."""
    defaults = [entry.default_for(forms.of(task), {}) for task in tasks]
    return defaults[0] if all(value == defaults[0] for value in defaults) else "the first"


# ---- the page
