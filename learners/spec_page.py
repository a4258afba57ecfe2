"""The page docs/spec.md: what may stand in a spec and in an instance, made from the registrations."""

import json
from collections.abc import Iterable, Sequence

from . import forms
from .text import LONGEST, RULES
from .vocabulary import AlgorithmEntry, ParameterEntry, Schema, TaskEntry, reference

__all__ = ["page"]


def page() -> str:
    """docs/spec.md."""
    whole = reference()
    return "\n".join(
        [
            _OPENING,
            _table(
                ("task", "decides", "instance", "truth", "losses (default first)"),
                map(_task_row, whole["tasks"]),
            ),
            _PRESETS,
            *(f"- `{json.dumps({'task': task['name'], **task['preset']})}`" for task in whole["tasks"]),
            "\n## Fields of every algorithm\n",
            _parameters(whole["common"], list(forms.names())),
            *(_section(entry) for entry in whole["algorithms"]),
            _INSTANCES,
            _table(
                ("algorithm", "an event of weight w"),
                [(f"`{e['name']}`", e["weight"]) for e in whole["algorithms"]],
            ),
            "",
        ]
    )


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _task_row(task: TaskEntry) -> tuple[str, ...]:
    first = forms.of(task["name"]).loss
    losses = sorted(task["losses"], key=lambda name: name != first)
    return (
        f"`{task['name']}`",
        task["text"],
        _code([task["instance"]]),
        _code(task["truths"]),
        _code(losses),
    )


def _section(entry: AlgorithmEntry) -> str:
    text = entry["text"]
    return (
        f"\n## `{entry['name']}`\n\n{text[0].upper()}{text[1:]}.\nTasks: {_code(entry['tasks'])}.\n\n"
        + _parameters(entry["parameters"], entry["tasks"])
    )


def _parameters(entries: list[ParameterEntry], tasks: list[str]) -> str:
    head = ("field", "tasks", "type", "default", "effect", "example")
    return _table(head, [_row(entry, tasks) for entry in entries])


def _row(entry: ParameterEntry, tasks: list[str]) -> tuple[str, ...]:
    when = entry["when"]
    effect = entry["text"].replace("|", "\\|")
    if when is not None:
        without = when["values"] == [None]
        effect += (
            f"; without `{when['field']}`"
            if without
            else f"; with `{when['field']}`: {_code(when['values'])}"
        )
    if isinstance(entry["required"], str):
        effect += f"; required with `{entry['required'].replace(': ', '`: `', 1)}`"
    example = "" if entry["example"] is None else f"`{json.dumps(entry['example'])}`"
    return (f"`{entry['name']}`", _tasks(entry["tasks"], tasks), _type(entry), _shown(entry), effect, example)


def _tasks(names: list[str], every: list[str]) -> str:
    return "all" if names == every else _code(names)


def _shown(entry: ParameterEntry) -> str:
    if entry["required"] is True:
        return "required"
    default = entry["default"]
    if default is None:
        return "none"
    if isinstance(default, str):
        return default if " " in default or default.isdigit() else f"`{default}`"
    return f"`{json.dumps(default)}`"


def _type(entry: ParameterEntry) -> str:
    if entry["by_task"]:
        alike: dict[str, list[str]] = {}
        for task, schema in entry["by_task"].items():
            alike.setdefault(_schema(schema), []).append(task)
        return "; ".join(f"{', '.join(tasks)}: {kind}" for kind, tasks in alike.items())
    return _schema(entry["schema"])


def _schema(schema: Schema) -> str:
    if "anyOf" in schema:
        return " or ".join(map(_schema, schema["anyOf"]))
    if "enum" in schema:
        return _code(schema["enum"])
    kind = schema["type"]
    if kind == "array":
        return f"list of {_plural(schema['items'])}"
    if kind == "object":
        return f"object: label to {_schema(schema['additionalProperties'])}"
    words = {"boolean": "`true` or `false`", "integer": "whole number", "number": "number", "string": "text"}
    bounds = [
        f"{words_} {schema[key]:g}"
        for key, words_ in (("exclusiveMinimum", "above"), ("minimum", "at least"), ("maximum", "at most"))
        if key in schema
    ]
    return " ".join([words[kind], *[" and ".join(bounds)]]).strip()


def _plural(schema: Schema) -> str:
    if schema["type"] == "array":
        return f"lists of {_plural(schema['items'])}"
    if "enum" in schema:
        return _code(schema["enum"])
    return "labels" if schema["type"] == "string" else _schema(schema).replace("number", "numbers", 1)


def _code(names: Sequence[object]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_OPENING = """# The spec: every field

Send a spec to create a learner: `PUT /v1/learners/folders` with `{"task": "multiclass"}`, or from Python
`feedrank.learners.build({"task": "multiclass"})`. Only `task` is required. Without `algorithm` you get the preset of the
task; with it, every field that you leave out has the default below. The reply shows all fields. A field that is unknown,
or that the task or algorithm does not use, is refused with a pointer to it; nothing is ignored.

This page is generated from the code by `python scripts/spec_reference.py`; a test fails if it is out of date.

## Tasks
"""

_PRESETS = """
A spec without `algorithm` means, for each task:
"""

_INSTANCES = f"""
## Raw text

Instead of `"features"` an instance may have `"text"`: a text, or an object with a text per field. `tokenizer` names the
rule that turns it into features; a learner keeps the rule it was created with. `{RULES[0]}`:

1. Unicode NFKC, then casefold.
2. A word is a run of letters and digits with their combining marks, as long as possible. Every Chinese or Japanese
   character is a word of its own. All other characters separate words.
3. The features are the distinct words, and the distinct pairs of neighbouring words joined by one space. Each
   has the value 1.

`{RULES[1]}`, the rule of new learners, has these features and the parts of words, so that a word that is new says something
by those that it resembles ([what this gains](../benchmarks/texts.md)):

4. Every four characters in a row of `^word$`, with `~` before them: `hotel` gives `~^hot`, `~hote`, `~otel`, `~tel$`. Of a
   longer word the first {LONGEST}; a Chinese or Japanese character has none.

With fields, the name of the field comes first: `{{"subject": "Cheap pills", "body": "..."}}` gives `subject:cheap`,
`subject:pills`, `subject:cheap pills` and so on. Pairs do not cross fields.

`"features"` and `"text"` may stand in one instance: a word that is also named as a feature adds 1 to it. An item of a list
may have a text too, read by `words-2`.

## Vectors

`"vector"` holds numbers without names, such as an [embedding](embeddings.md): `[numbers]`, or the base64 of little-endian
float32, alone or beside `features` and `text`, for an instance or for each item. They are rounded to float32 first. The
first vector that is learned, or `vector` in the spec, fixes their length (at most 16,384). `weighting` does not apply to
them, `normalize: unit` scales them by themselves, and `explain` names them `vector[0]`, `vector[1]` and so on.

## Records

With `input` in the spec a learner reads records as they are, `"row": {{"Subject": "...", "age": 31}}`; import, serving and
learning read them by one function. The role of a column says what becomes of its value:

| role | value | features |
|---|---|---|
| `text` | text | its words, `column:word`, by the tokenizer |
| `category` | text, a number, `true`, `false`, or a list of these | `column=value`, 1 |
| `number` | a number, or text that is one | `column`, the number |
| `time` | ISO 8601, or seconds since 1970 | `column:month=11`, `column:weekday=wed`, `column:hour=13` |
| `vector` | numbers, their JSON as text, or base64 | the vector of the instance |
| `id`, `truth`, `ignore` | anything | none |

Columns match without case and outer blanks. A missing, null or blank cell is a missing value. An unknown column is refused,
with the nearest known name, unless the request says `"unknown_columns": "ignore"`. `2026/11/18`, `18.11.2026` and
milliseconds are times too; a date that can be read in two ways (`11/12/2026`) is refused.

## Items in columns, and their context

`"items": {{"ids": ["d1", "d2"], "columns": ["bm25", "age"], "rows": [[12.1, 3], [8.0, 1]]}}` is the short way to write
items that have the same features. With `"context": true` in the spec, `"features"` next to `"items"` describe the query
or the user. Each of them is multiplied with each feature of each item, after the items are scaled. The products, named
`context * item`, are added to the features of the item. The values of the context are not scaled.

## The weight of an event

Feedback may have a `weight`: above 0, at most 1000, 1 if left out. The weight does not
change the loss, the counts of `progress` or the idf counts. It changes what is learned:
"""
