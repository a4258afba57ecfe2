"""An event before it is accepted: one reader of instances and truths, and what the event will cost.

What is accepted depends on the spec and the input alone, so that all replicas agree; everyone asks here.

The estimates of the algorithms (`registry.Cost`) are upper ends of what was measured (docs/security.md), so that what is
refused is long for sure, and what is accepted is at most some times as long as it says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import forms, instances, registry, table_rows, text, vectors
from .choice import slots
from .errors import InstanceError, OptionError, TruthError, pointer
from .instances import FeatureVector, ItemList
from .registry import Cost, Size
from .truths import Truth

if TYPE_CHECKING:
    from .learner import Learner

HEAVIEST = 1000.0
# What the judgement of one click takes: something, and something an item.
CLICK, CLICKED_ITEM = 1e-4, 1.5e-7
# What the name of a product of context and item takes, beside the numbers.
PRODUCT, PRODUCT_BYTES = 2e-6, 300
KEPT = 512  # estimates that a learner keeps: events are much alike, and each is asked about several times
MANY = 1_024  # features from which their number is rounded

__all__ = [
    "Cost",
    "check_vector",
    "cost",
    "cost_of_labels",
    "cost_of_size",
    "event",
    "fitting",
    "instance",
    "options",
    "truth",
    "weight",
]


def instance(spec: Mapping[str, Any], value: object) -> FeatureVector | ItemList:
    """The instance by name; InstanceError, with a pointer, if a learner of this spec cannot take it."""
    form = forms.of(spec["task"])
    value = _record(spec, value)
    context = form.chooses or spec.get("context", False)
    tokenizer = text.OF_ITEMS if form.items else spec.get("tokenizer", text.RULES[0])
    places: Any = None
    if form.chooses and isinstance(value, Mapping) and slots.FIELD in value:
        places = value[slots.FIELD]
        value = {name: part for name, part in value.items() if name != slots.FIELD}
    parsed = instances.read(value, form.instance, context, tokenizer)
    if parsed.width:
        vectors.check_length(parsed.width, spec.get("vector", 0), _place(spec, parsed), "the spec's `vector`")
    if places is not None:
        assert isinstance(parsed, ItemList)
        parsed.slots = slots.read(places, parsed)
    accepts = registry.algorithm(spec["algorithm"]).accepts
    if accepts is not None:
        accepts(spec, parsed)
    return parsed


def fitting(learner: Learner, value: object) -> FeatureVector | ItemList:
    """The instance by name, with a vector as long as those that the learner has learned."""
    parsed = instance(learner.spec, value)
    check_vector(learner, parsed)
    return parsed


def check_vector(learner: Learner, parsed: FeatureVector | ItemList) -> None:
    """Refuse a vector of another length than the first that was learned: this alone depends on the log as well."""
    if parsed.width:
        expected = learner.features.vector[1]
        place = _place(learner.spec, parsed)
        vectors.check_length(parsed.width, expected, place, "the first one that was learned")


def _place(spec: Mapping[str, Any], parsed: FeatureVector | ItemList) -> str:
    """Where the vector stands in what was sent."""
    if isinstance(parsed, ItemList):
        return "/items"
    column = next((column for column, role in spec.get("input", {}).items() if role == "vector"), None)
    return "/vector" if column is None else pointer("row", column)


def _record(spec: Mapping[str, Any], value: object) -> object:
    """The instance that a row gives under the spec's `input`; what is no row, as it is."""
    if not isinstance(value, Mapping) or not ("row" in value or "input" in spec):
        return value
    if "input" not in spec:
        raise InstanceError("this learner has no `input`: send features, text or a vector", "/row")
    if "row" not in value:
        raise InstanceError(
            'missing field: this learner reads records, send {"row": {column: value}}', "/row"
        )
    for key in value:
        if key not in ("row", "unknown_columns"):
            raise InstanceError("unknown field beside a row", pointer(key))
    return table_rows.instance_of(spec["input"], value["row"], value.get("unknown_columns"))


def truth(spec: Mapping[str, Any], value: object, parsed: FeatureVector | ItemList | None = None) -> Truth:
    """The truth by name; TruthError, with a pointer, if it does not fit. Without the instance, its ids are not checked."""
    return forms.of(spec["task"]).truth_of(spec, value, parsed)


def event(
    spec: Mapping[str, object], value: object, answer: object
) -> tuple[FeatureVector | ItemList, Truth]:
    """An instance and its truth."""
    parsed = instance(spec, value)
    return parsed, truth(spec, answer, parsed)


def takes_vectors(learner: Learner) -> bool:
    """Whether an instance of features, already read, is one that it takes, but for what its algorithm does not accept."""
    return not learner.form.items and "input" not in learner.spec


def weight(value: object) -> float:
    """How many times an event counts: above 0, at most `HEAVIEST`."""
    if type(value) is float and 0.0 < value <= HEAVIEST:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value <= HEAVIEST:
        raise TruthError(f"must be a number above 0 and at most {HEAVIEST:g}", "/weight")
    return float(value)


def options(top: object, min_margin: object) -> None:
    """Refuse options of a prediction that are no numbers, or out of range."""
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise OptionError("must be a whole number of at least 1", pointer("top"))
    if min_margin is not None and (
        isinstance(min_margin, bool)
        or not isinstance(min_margin, int | float)
        or not 0 <= min_margin < math.inf
    ):
        raise OptionError("must be a finite number of at least 0", pointer("min_margin"))


def cost(
    learner: Learner,
    parsed: FeatureVector | ItemList,
    labels: Iterable[str] = (),
    clicks: int = 0,
    grades: int = 0,
) -> Cost:
    """One event on this instance whose truth names these labels, has so many clicks, or so many different grades.

    A prediction costs no more than an event of one grade.
    """
    if isinstance(parsed, ItemList):
        context = 0 if parsed.context is None else len(parsed.context)
        size = len(parsed.ids), parsed.features
        return cost_of_size(learner, *size, labels, clicks, grades, context, len(parsed.slots))
    return cost_of_size(learner, 0, len(parsed), labels, clicks, grades)


def cost_of_size(
    learner: Learner,
    items: int,
    features: int,
    labels: Iterable[str] = (),
    clicks: int = 0,
    grades: int = 0,
    context: int = 0,
    slots: int = 0,
) -> Cost:
    """The same of an instance that is not read yet, with so many features of the context, and slots."""
    crossed = features * context if learner.spec.get("context") else 0
    features += crossed
    joined = learner.labels.index
    fresh = 0 if learner.form.items else sum([name not in joined for name in labels])
    known = len(learner.features)
    if known >= MANY:  # up to a sixteenth more: a learner that grows is not estimated anew at every event
        known |= (1 << known.bit_length() - 5) - 1
    size = (len(joined) + fresh, items, features, known, learner.model.examples, grades)
    cost = learner.costs.get(size)
    if cost is None:
        if len(learner.costs) >= KEPT:
            learner.costs.clear()
        cost = learner.costs[size] = registry.algorithm(learner.spec["algorithm"]).cost(
            learner.spec, Size(*size)
        )
    if learner.spec.get("examination") is not None:
        # With propensities every click is a judgement of its own.
        cost = Cost(cost.seconds + clicks * (CLICK + CLICKED_ITEM * items), cost.bytes)
    if slots:
        cost = Cost(slots * cost.seconds, cost.bytes)
    if crossed:
        cost = Cost(cost.seconds + PRODUCT * crossed, cost.bytes + PRODUCT_BYTES * crossed)
    return cost


def cost_of_labels(learner: Learner) -> Cost:
    """The least that an event of a fresh learner costs: what its spec alone shows."""
    size = Size(len(learner.labels), 0 if not learner.form.items else 1, 1)
    return registry.algorithm(learner.spec["algorithm"]).cost(learner.spec, size)
