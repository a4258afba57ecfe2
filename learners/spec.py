"""The spec of a learner: read, checked, completed. A full spec holds every parameter, so that it explains itself.

This file knows no algorithm and no task by name: what may stand in a spec is what was registered (registry.py). A
parameter that has no meaning where it stands is refused, never ignored.
"""

from collections.abc import Mapping

from . import forms, registry, table_rows, text, vectors
from .checks import boolean, choice, label_list, number, numbers
from .errors import SpecError, pointer
from .forms import Form
from .parameters import BELOW, OF_VECTORS
from .registry import Algorithm, Parameter, Spec

# A month: a prediction that waits longer is forgotten before.
WAIT = 2_678_400

COMMON: dict[str, Parameter] = {
    "labels": Parameter(
        label_list,
        "the labels known from the start; binary: negative first; ordinal: lowest first",
        list,
        forms=lambda form: not form.items,
        why="labels have no meaning where items are ranked",
        example=["no", "yes"],
    ),
    "weighting": Parameter(
        choice("none", "idf"),
        "`idf` multiplies each feature by 1 + log((1 + n) / (1 + n_j)), n events so far, n_j of them with feature j",
        forms=lambda form: not form.items,
        why=OF_VECTORS,
        example="idf",
    ),
    "normalize": Parameter(
        lambda form: choice("none", "unit", *(("list",) if form.items else ("auto", "blocks"))),
        "`unit` scales every feature vector to length 1, `list` every feature to [0, 1] within its list, `auto` every"
        " feature online, by what was learned so far, `blocks` a vector to length 1 with a learned share for each block"
        " of features (those with one prefix before `:`); after weighting",
        forms=lambda form: not form.chooses,
        why="a choice scales its features online",
        example="unit",
    ),
    "bias": Parameter(
        boolean,
        "adds a constant feature of value 1, after all scaling",
        default=False,
        forms=lambda form: not form.chooses,
        why="a choice has a constant of its own",
        example=True,
    ),
    "tokenizer": Parameter(
        choice(*text.RULES),
        "the rule that turns `text` into features, see below",
        text.NEWEST,
        forms=lambda form: not form.items,
        why="goes with feature vectors: the text of an item is read by `words-2`",
        example="words-2",
        versions=lambda form: "words-1",
    ),
    "input": Parameter(
        table_rows.roles,
        "what the columns of a record are, see below: makes the learner read `row`",
        None,
        forms=lambda form: not form.items,
        why=OF_VECTORS,
        example={"subject": "text", "plan": "category", "age": "number"},
        omitted=True,
    ),
    "vector": Parameter(
        vectors.length,
        "how many numbers a `vector` has; left out, the first one that is learned says it",
        None,
        example=384,
        omitted=True,
    ),
    "context": Parameter(
        boolean,
        "features next to `items` (of the query or the user) are multiplied with the features of every item; a product "
        "is named `context * item`",
        default=False,
        forms=lambda form: form.items and not form.chooses,
        why="goes with lists to rank",
        example=True,
    ),
    "precision": Parameter(
        choice("float64", "float32"),
        "`float32` keeps the weights in half the memory; the arithmetic stays that of float64, every sum is rounded when"
        " it is stored. For linear weights: not with `norm`, `kernel`, `entropy`, `auto` or the quadratic surrogate",
        forms=lambda form: not form.chooses,
        why="goes with linear weights",
        example="float32",
    ),
    "wait": Parameter(
        number(above=0, most=WAIT),
        "seconds after a prediction until its clicks are counted, or a missing reward is replaced by `default_reward`",
        600,
        forms=lambda form: form.items,
        why="goes with clicks on items",
        example=60,
    ),
    "examination": Parameter(
        numbers(above=0, most=1),
        "the probability that a user looks at position 1, 2, ...; a click counts 1 / this, and skipped items are no "
        "evidence",
        None,
        forms=lambda form: form.items and not form.chooses,
        why="goes with clicks on items",
        example=[1, 0.5, 0.3],
    ),
    "below": BELOW,
}


def read(spec: object) -> Spec:
    """The full spec: every parameter that has a meaning, with its default where it was left out."""
    if not isinstance(spec, Mapping):
        raise SpecError("a spec must be an object")
    form = forms.of(_one_of(spec, "task", forms.names()))
    fields = dict(spec)
    if "algorithm" not in fields:
        fields = registry.preset(form.name) | fields
    names = tuple(entry.name for entry in registry.algorithms())
    algorithm = registry.algorithm(_one_of(fields, "algorithm", names))
    if form.name not in algorithm.does():
        does = ", ".join(algorithm.does())
        raise SpecError(
            f"{algorithm.name} does not support the task {form.name}; it supports {does}", "/algorithm"
        )
    table = parameters(algorithm)
    for name in fields:
        if name not in table and name not in ("task", "algorithm"):
            raise SpecError(_unknown(name, algorithm), pointer(name))
    full: Spec = {"task": form.name, "algorithm": algorithm.name}
    for name, parameter in table.items():
        _fill(full, fields, name, parameter, form)
    _check_labels(full, form, table)
    algorithm.agree(full)
    if full.get("precision") == "float32" and not algorithm.linear(full):
        raise SpecError("float32 needs linear weights, which this learner does not have", "/precision")
    return full


def completed(spec: Spec) -> Spec:
    """A full spec that was stored, with the versions that learners had before there was a field for them."""
    form, table = forms.of(spec["task"]), parameters(registry.algorithm(spec["algorithm"]))
    added = {
        name: parameter.versions(form)
        for name, parameter in table.items()
        if parameter.versions is not None and name not in spec and _has_meaning(parameter, form, spec)
    }
    return read(spec | added) if added else spec


def asks_for(spec: object, stored: Spec) -> bool:
    """Whether a spec means the learner with this full spec: versions that it does not name may be any."""
    full, own = read(spec), completed(stored)
    if full["task"] != own["task"] or full["algorithm"] != own["algorithm"]:
        return False
    table = parameters(registry.algorithm(own["algorithm"]))
    versions = {name: own[name] for name in table if table[name].versions is not None and name in own}
    return read(versions | {**spec, "task": own["task"], "algorithm": own["algorithm"]}) == own  # type: ignore[dict-item]


def parameters(algorithm: Algorithm) -> dict[str, Parameter]:
    """Every field that a spec of this algorithm may have, in the order in which they are read."""
    return COMMON | dict(algorithm.parameters)


def _one_of(spec: Mapping[str, object], field: str, options: tuple[str, ...]) -> str:
    if field not in spec:
        raise SpecError(f"missing field: one of {', '.join(options)}", pointer(field))
    value = spec[field]
    if not isinstance(value, str) or value not in options:
        raise SpecError(f"must be one of {', '.join(options)}", pointer(field))
    return value


def _unknown(name: object, algorithm: Algorithm) -> str:
    owners = [entry.name for entry in registry.algorithms() if name in entry.parameters]
    if owners:
        return f"is a parameter of {', '.join(owners)}, not of {algorithm.name}"
    return "unknown field"


def _has_meaning(parameter: Parameter, form: Form, spec: Spec) -> bool:
    return parameter.forms(form) and (parameter.when is None or parameter.when.holds(spec))


def _fill(full: Spec, fields: Mapping[str, object], name: str, parameter: Parameter, form: Form) -> None:
    value = fields.get(name)
    if not _has_meaning(parameter, form, full):
        if value is not None:
            raise SpecError(parameter.refusal(), pointer(name))
        return
    if value is not None:
        read = parameter.check_for(form).read(value, name)
        if not parameter.omitted or read != parameter.default_for(form, full):
            full[name] = read
        return
    if parameter.omitted:
        return
    if parameter.is_required(full):
        condition = f" with {parameter.required}" if not isinstance(parameter.required, bool) else ""
        raise SpecError(f"missing field: it is required{condition or ' here'}", pointer(name))
    default = parameter.default_for(form, full)
    # Read as if it had been written, so that a full spec is the same bytes wherever it came from: 600 is 600.0.
    full[name] = None if default is None else parameter.check_for(form).read(default, name)


def _check_labels(full: Spec, form: Form, table: Mapping[str, Parameter]) -> None:
    """The labels suit the task, and where they are all there will be, no other field names another one."""
    if form.items:
        return
    form.check_labels(full["labels"])
    if form.closed:
        for name, parameter in table.items():
            if full.get(name):
                for label, place in parameter.check_for(form).labels(full[name], name):
                    if label not in full["labels"]:
                        raise SpecError("is not one of the labels", place)
