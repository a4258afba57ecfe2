"""The definition of an experiment: read, checked, completed, and never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from feedrank.service.errors import Unprocessable
from feedrank.service.experiments import measures
from feedrank.service.experiments.assignment import Assignment
from feedrank.service.experiments.measures import Measure

MOST_ARMS = 16
_FIELDS = {
    "arms", "method", "measure", "confidence", "weights", "share", "learn", "shadow", "alias", "seed", "count",
}  # fmt: skip
_RANKINGS = ("subset-ranking", "label-ranking")


@dataclass(frozen=True, slots=True)
class Plan:
    """A definition in full. The first arm is the one that serves whoever does not take part."""

    arms: tuple[str, ...]
    method: str
    measure: Measure
    confidence: float
    weights: tuple[float, ...]
    share: float
    learn: str | tuple[str, ...]
    shadow: tuple[str, ...]
    alias: str | None
    seed: str
    count: str
    assignment: Assignment

    @property
    def split(self) -> bool:
        """Whether a unit sees one arm (else every arm has a hand in every list)."""
        return self.method == "split"

    def to_json(self) -> dict[str, Any]:
        """The definition as GET shows it, with all defaults."""
        return {
            "arms": list(self.arms),
            "method": self.method,
            "measure": self.measure.text,
            "confidence": self.confidence,
            "weights": dict(zip(self.arms, self.weights, strict=True)),
            "share": self.share,
            "learn": self.learn if isinstance(self.learn, str) else list(self.learn),
            "shadow": list(self.shadow),
            "alias": self.alias,
            "seed": self.seed,
            "count": self.count,
        }


def names(given: Any) -> tuple[list[str], list[str]]:
    """The arms and the shadow arms of a definition, before their learners are known."""
    if not isinstance(given, Mapping):
        raise Unprocessable.at("", "a definition must be an object")
    for name in given:
        if name not in _FIELDS:
            raise Unprocessable.at(f"/{name}", "unknown field")
    arms, shadow = _names(given, "arms"), _names(given, "shadow")
    if not 2 <= len(arms) <= MOST_ARMS:
        raise Unprocessable.at("/arms", f"an experiment has 2 to {MOST_ARMS} arms")
    if len({*arms, *shadow}) < len(arms) + len(shadow):
        raise Unprocessable.at("/arms", "a learner can be only one arm: it would learn every event twice")
    if "undecided" in arms:
        raise Unprocessable.at("/arms", "an arm named `undecided` would make verdicts ambiguous")
    return arms, shadow


def read(name: str, given: Mapping[str, Any], specs: Sequence[Mapping[str, Any]]) -> Plan:
    """The full plan; `specs` are those of the arms and then of the shadow arms."""
    arms, shadow = names(given)
    task = specs[0]["task"]
    for index, spec in enumerate(specs):
        place = f"/arms/{index}" if index < len(arms) else f"/shadow/{index - len(arms)}"
        if spec["task"] != task:
            raise Unprocessable.at(place, f"does {spec['task']}, the first arm does {task}")
        if task in ("binary", "ordinal") and spec["labels"] != specs[0]["labels"]:
            raise Unprocessable.at(place, "has other labels than the first arm")
    method = _choice(given, "method", "split", "interleave")
    if method == "interleave" and task not in _RANKINGS:
        raise Unprocessable.at("/method", f"only rankings can be interleaved, and the arms do {task}")
    learn = _learn(given, arms)
    if method == "interleave" and learn == "served":
        raise Unprocessable.at("/learn", "every arm has a hand in an interleaved list: all of them serve")
    weights = _weights(given.get("weights"), arms)
    if method == "interleave" and len(set(weights)) > 1:
        raise Unprocessable.at("/weights", "a draft is fair only if the arms weigh the same")
    seed, alias = given.get("seed", name), given.get("alias")
    if not isinstance(seed, str):
        raise Unprocessable.at("/seed", "must be text")
    if alias is not None and not isinstance(alias, str):
        raise Unprocessable.at("/alias", "must be the name of an alias")
    share = _number(given, "share", 1.0, above=0.0, most=1.0)
    return Plan(
        arms=tuple(arms),
        method=method,
        measure=measures.read(given.get("measure"), specs[: len(arms)], method),
        confidence=_number(given, "confidence", 0.95, above=0.5, below=1.0),
        weights=tuple(weights),
        share=share,
        learn=learn,
        shadow=tuple(shadow),
        alias=alias,
        seed=seed,
        count=_choice(given, "count", "units", "rounds"),
        assignment=Assignment(seed, tuple(weights), share),
    )


def _names(given: Mapping[str, Any], place: str) -> list[str]:
    value = given.get(place, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise Unprocessable.at(f"/{place}", "must be a list of learners' names")
    return value


def _choice(given: Mapping[str, Any], place: str, *known: str) -> str:
    value = given.get(place, known[0])
    if value not in known:
        raise Unprocessable.at(f"/{place}", f"must be one of {', '.join(known)}")
    return str(value)


def _learn(given: Mapping[str, Any], arms: Sequence[str]) -> str | tuple[str, ...]:
    """`all`, `served`, or the arms that learn: the others stay as they are, as a baseline does."""
    if not isinstance(given.get("learn"), list):
        return _choice(given, "learn", "all", "served")
    named = _names(given, "learn")
    if not set(named) <= set(arms):
        raise Unprocessable.at("/learn", "must be `all`, `served` or a list of arms")
    return tuple(arm for arm in arms if arm in named)


def _number(
    given: Mapping[str, Any],
    place: str,
    default: float,
    *,
    above: float,
    below: float = float("inf"),
    most: float = float("inf"),
) -> float:
    value = given.get(place, default)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (above < value < below and value <= most):
        limit = f"below {below:g}" if isfinite(below) else f"at most {most:g}"
        raise Unprocessable.at(f"/{place}", f"must be a number above {above:g} and {limit}")
    return float(value)


def _weights(given: Any, arms: Sequence[str]) -> list[float]:
    if given is None:
        return [1.0] * len(arms)
    if not isinstance(given, Mapping) or set(given) != set(arms):
        raise Unprocessable.at("/weights", "must be an object with the weight of every arm")
    # A pair's interval widens with the inverse of the smaller weight: a thousandth is as far as it is useful.
    return [_number(given, arm, 1.0, above=0.0, most=1e6) for arm in arms]
