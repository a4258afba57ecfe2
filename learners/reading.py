"""One reader of instances and truths: the JSON of the contract, checked against a full spec.

What is accepted depends on the spec and the input alone, so that all replicas agree; everyone asks here.
"""

from collections.abc import Mapping
from typing import Any

from . import forms, instances, registry
from .errors import TruthError
from .instances import FeatureVector, ItemList
from .truths import Truth

HEAVIEST = 1000.0

__all__ = ["event", "instance", "truth", "weight"]


def instance(spec: Mapping[str, Any], value: Any) -> FeatureVector | ItemList:
    """The instance by name; InstanceError, with a pointer, if a learner of this spec cannot take it."""
    form = forms.of(spec["task"])
    parsed = instances.read(value, form.instance, form.chooses or spec.get("context", False))
    registry.algorithm(spec["algorithm"]).accepts(spec, parsed)
    return parsed


def truth(spec: Mapping[str, Any], value: Any, parsed: FeatureVector | ItemList | None = None) -> Truth:
    """The truth by name; TruthError, with a pointer, if it does not fit. Without the instance, its ids are not checked."""
    return forms.of(spec["task"]).truth_of(spec, value, parsed)


def event(spec: Mapping[str, Any], value: Any, answer: Any) -> tuple[FeatureVector | ItemList, Truth]:
    """An instance and its truth."""
    parsed = instance(spec, value)
    return parsed, truth(spec, answer, parsed)


def weight(value: Any) -> float:
    """How many times an event counts: above 0, at most `HEAVIEST`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value <= HEAVIEST:
        raise TruthError(f"must be a number above 0 and at most {HEAVIEST:g}", "/weight")
    return float(value)
