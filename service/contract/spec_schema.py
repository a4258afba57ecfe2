"""The JSON Schema of a spec in `/openapi.json`, generated from the registered algorithms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from feedrank.learners import vocabulary
from feedrank.learners.vocabulary import AlgorithmEntry, ParameterEntry, TaskEntry

from .json_types import JSON


def spec_schema() -> JSON:
    """Every field of every task and algorithm, with its type, what it does and where it has a meaning."""
    reference = vocabulary.reference()
    fields: dict[str, list[tuple[str, ParameterEntry]]] = {}
    for entry in reference["common"]:
        fields.setdefault(entry["name"], []).append(("", entry))
    for algorithm in reference["algorithms"]:
        for entry in algorithm["parameters"]:
            fields.setdefault(entry["name"], []).append((algorithm["name"], entry))
    return {
        "type": "object",
        "title": "Spec",
        "description": "What a learner is; without `algorithm` it is the task's preset. docs/spec.md explains every field.",
        "required": ["task"],
        "properties": {
            "task": _choice(reference["tasks"]),
            "algorithm": _choice(reference["algorithms"]),
            **{name: _field(uses) for name, uses in fields.items()},
        },
        "additionalProperties": False,
    }


def _choice(entries: Sequence[TaskEntry | AlgorithmEntry]) -> JSON:
    lines = "; ".join(f"`{entry['name']}`: {entry['text']}" for entry in entries)
    return {"type": "string", "enum": [entry["name"] for entry in entries], "description": lines}


def _field(uses: list[tuple[str, ParameterEntry]]) -> JSON:
    """One field as all who take it describe it; equal descriptions are given once."""
    kinds: dict[str, Mapping[str, object]] = {}
    texts: dict[str, list[str]] = {}
    for owner, entry in uses:
        kinds[json.dumps(entry["schema"], sort_keys=True)] = entry["schema"]
        texts.setdefault(entry["text"], []).extend([f"`{owner}`"] if owner else [])
    # null is the same as leaving a field out: a full spec, which shows it for what has no value, can be sent again.
    schema: JSON = {"anyOf": [*kinds.values(), {"type": "null"}]}
    schema["description"] = "; ".join(
        f"{', '.join(owners)}: {text}" if owners else text for text, owners in texts.items()
    )
    return schema
