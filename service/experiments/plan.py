"""The definition of an experiment: read, checked, completed, and never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan

from feedrank.learners import forms
from feedrank.service.contract import messages
from feedrank.service.contract.faults import Unprocessable
from feedrank.service.contract.json_types import JSON, Body, View

from . import measures
from .assignment import Assignment, shares
from .measures import Measure, directed
from .per import RETURNS, Over, Per, Rule, read_rule, read_segments, rule_json
from .per import read as read_per

MEAN_RULE = Rule()
MOST_ARMS = 16
MOST_GUARDRAILS = 8
LONGEST_WAIT = 30 * 86400.0
_FIELDS = {
    "arms", "method", "measure", "guardrails", "confidence", "weights", "share", "learn", "shadow", "alias", "seed",
    "count", "wait", "default", "handover", "behaviour", "per", "segments",
}  # fmt: skip
_KINDS = (measures.CLICKED, measures.GRADED)


@dataclass(frozen=True, slots=True)
class Guardrail:
    """A measure on which an arm must not be worse than the first one by more than `limit`, or it is not promoted."""

    measure: Measure
    limit: float
    rule: Rule = MEAN_RULE


@dataclass(frozen=True, slots=True)
class Plan:
    """A definition in full. The first arm is the one that serves whoever does not take part.

    `measures` has one measure for each kind of feedback: they differ only where the definition leaves it to the first
    feedback. With `wait`, a round counts so many seconds after it was served: by its answer, or else by `default`.
    """

    arms: tuple[str, ...]
    method: str
    named: str | None
    measures: Mapping[str, Measure]
    guardrails: tuple[Guardrail, ...]
    confidence: float
    weights: tuple[float, ...]
    share: float
    learn: str | tuple[str, ...]
    shadow: tuple[str, ...]
    alias: str | None
    seed: str
    count: str
    wait: float | None
    default: float | None
    handover: bool
    behaviour: bool
    per: Per | None
    over: Measure | None
    segments: Mapping[str, tuple[str, ...]]
    assignment: Assignment

    def measure(self, kind: str | None) -> Measure | None:
        """The measure, once the kind of feedback is clear; None before."""
        each = list(self.measures.values())
        return each[0] if all(one == each[0] for one in each) else self.measures.get(kind or "")

    @property
    def split(self) -> bool:
        """Whether a unit sees one arm (else every arm has a hand in every list)."""
        return self.method == "split"

    @property
    def proves(self) -> bool:
        """Whether it may name an arm: by units, or by lists that every arm had a hand in."""
        return self.count == "units" or not self.split

    @property
    def lists_firsts(self) -> bool:
        """Whether units count by their first outcome, and so can be listed with it."""
        return self.split and self.count == "units" and self.per is None

    @property
    def compares_losses(self) -> bool:
        """Whether a drafted list needs every arm's own: a loss is judged on each."""
        every = (*self.measures.values(), *(each.measure for each in self.guardrails))
        return any(measure.is_loss for measure in every)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """How a unit's values become one, of the measure that decides and of each guardrail."""
        main = MEAN_RULE if self.per is None else self.per.rule
        over = self._over
        return main, *(each.rule for each in self.guardrails), *([] if over is None else [over.rule])

    @property
    def _over(self) -> Over | None:
        return None if self.per is None else self.per.over

    @property
    def scale(self) -> float:
        """The largest value of a unit; of a ratio, what a ratio of shares is multiplied by."""
        over = self._over
        return self.rules[0].scale / (1.0 if over is None else over.rule.scale)

    def lower_is_better(self, measure: Measure | None) -> bool:
        """Of the measure that decides, None while it is open; a unit that returns is always welcome."""
        returns = self.per is not None and self.per.rule.value == RETURNS
        return measure is not None and measure.lower_is_better and not returns

    def in_words(self, measure: Measure | None) -> str:
        """What is compared, for people."""
        if measure is None and (self.per is None or self.per.rule.value != RETURNS):
            return "follows the first feedback"
        noun = "" if measure is None else measure.noun
        if self.per is not None:
            if self.over is not None:
                noun = f"{noun} per {self.over.noun}"
            noun = self.per.rule.in_words(noun, self.per.window_in_words)
        return directed(noun, self.lower_is_better(measure))

    @property
    def shares(self) -> tuple[float, ...]:
        """The weights as probabilities."""
        return tuple(shares(self.weights))

    def to_json(self) -> JSON:
        """The definition as GET shows it, with all defaults."""
        return {
            "arms": list(self.arms),
            "method": self.method,
            "measure": self.named,
            "guardrails": [self._guardrail_json(each) for each in self.guardrails],
            "confidence": self.confidence,
            "weights": dict(zip(self.arms, self.weights, strict=True)),
            "share": self.share,
            "learn": self.learn if isinstance(self.learn, str) else list(self.learn),
            "shadow": list(self.shadow),
            "alias": self.alias,
            "seed": self.seed,
            "count": self.count,
            "wait": self.wait,
            "default": self.default,
            "handover": self.handover,
            "behaviour": self.behaviour,
            "per": None if self.per is None else self.per.to_json(),
            "segments": {name: list(values) for name, values in self.segments.items()},
        }

    def _guardrail_json(self, guardrail: Guardrail) -> JSON:
        rule = {} if self.per is None else rule_json(guardrail.rule)
        return {"measure": guardrail.measure.text, "limit": guardrail.limit, **rule}


def names(definition: object) -> tuple[list[str], list[str]]:
    """The arms and the shadow arms of a definition, before their learners are known."""
    if not isinstance(definition, Mapping):
        raise Unprocessable.at("", "a definition must be an object")
    for name in definition:
        if name not in _FIELDS:
            raise Unprocessable.at(f"/{name}", "unknown field")
    arms, shadow = _names(definition, "arms"), _names(definition, "shadow")
    if not 2 <= len(arms) <= MOST_ARMS:
        raise Unprocessable.at("/arms", f"an experiment has 2 to {MOST_ARMS} arms")
    if len({*arms, *shadow}) < len(arms) + len(shadow):
        raise Unprocessable.at("/arms", "a learner can be only one arm: it would learn every event twice")
    if "undecided" in arms:
        raise Unprocessable.at("/arms", "an arm named `undecided` would make verdicts ambiguous")
    return arms, shadow


def read(name: str, definition: Body, specs: Sequence[View]) -> Plan:
    """The full plan; `specs` are those of the arms and then of the shadow arms."""
    arms, shadow = names(definition)
    task = specs[0]["task"]
    form = forms.of(task)
    for index, spec in enumerate(specs):
        place = f"/arms/{index}" if index < len(arms) else f"/shadow/{index - len(arms)}"
        if spec["task"] != task:
            raise Unprocessable.at(
                place, f"has the task {spec['task']}, but the first arm has the task {task}"
            )
        if form.closed and spec["labels"] != specs[0]["labels"]:
            raise Unprocessable.at(place, "has other labels than the first arm")
    method = _choice(definition, "method", "split", "interleave")
    if method == "interleave" and not form.ranks:
        raise Unprocessable.at(
            "/method", f"only rankings can be interleaved, and the task of the arms is {task}"
        )
    learn = _learn(definition, arms)
    if method == "interleave" and learn == "served":
        raise Unprocessable.at("/learn", "is not available with `interleave`, where all arms serve")
    weights = _weights(definition.get("weights"), arms)
    if method == "interleave" and len(set(weights)) > 1:
        raise Unprocessable.at("/weights", "interleaving is fair only with equal weights")
    seed, alias = definition.get("seed", name), definition.get("alias")
    if not isinstance(seed, str):
        raise Unprocessable.at("/seed", "must be text")
    if alias is not None and not isinstance(alias, str):
        raise Unprocessable.at("/alias", "must be the name of an alias")
    share = _number(definition, "share", 1.0, above=0.0, most=1.0)
    own, named = specs[: len(arms)], definition.get("measure")
    measure = None if named is None else measures.read(named, own, method)
    each = measures.defaults(own, method) if measure is None else dict.fromkeys(_KINDS, measure)
    per = read_per(definition)
    if per is None and any(one.is_metric for one in each.values()):
        raise Unprocessable.at("/measure", f"`{_text(each)}` needs `per`: it comes by unit, not by round")
    wait, default = _window(definition, all(one.is_loss for one in each.values()))
    return Plan(
        arms=tuple(arms),
        method=method,
        named=_text(each),
        measures=each,
        guardrails=_guardrails(definition.get("guardrails"), own, method, per),
        confidence=_number(definition, "confidence", 0.95, above=0.5, below=1.0),
        weights=tuple(weights),
        share=share,
        learn=learn,
        shadow=tuple(shadow),
        alias=alias,
        seed=seed,
        count=_choice(definition, "count", "units", "rounds"),
        wait=wait,
        default=default,
        handover=_handover(definition, method, len(arms)),
        behaviour=messages.flag(definition, "behaviour", False) and form.ranks and form.items,
        per=per,
        over=None if per is None or per.over is None else measures.divisor(per.over.measure, own, method),
        segments=read_segments(definition),
        assignment=Assignment(seed, tuple(weights)),
    )


def _handover(definition: Body, method: str, arms: int) -> bool:
    """Whether the second arm takes over from the first as evidence allows."""
    wanted = messages.flag(definition, "handover", False)
    if wanted and (method != "interleave" or arms != 2):
        raise Unprocessable.at(
            "/handover", "needs `interleave` and two arms: the one in use, then its challenger"
        )
    return wanted


def _text(each: Mapping[str, Measure]) -> str | None:
    """The measure's name in the definition; None where the feedback decides."""
    texts = {one.text for one in each.values()}
    return texts.pop() if len(texts) == 1 else None


def _window(definition: Body, losses: bool) -> tuple[float | None, float | None]:
    """(`wait`, `default`): no answer counts 0 where more is better; what it is as a loss, only the caller knows."""
    if definition.get("wait") is None:
        if definition.get("default") is not None:
            raise Unprocessable.at(
                "/default",
                "needs `wait`: it is the value of a round that has no feedback after `wait` seconds",
            )
        return None, None
    wait = _number(definition, "wait", 0.0, above=0.0, most=LONGEST_WAIT)
    if definition.get("default") is None:
        return wait, None if losses else 0.0
    default = definition["default"]
    if isinstance(default, bool) or not isinstance(default, int | float) or not 0 <= default <= 1:
        raise Unprocessable.at("/default", "must be a number from 0 to 1")
    return wait, float(default)


def _guardrails(
    definition: object, specs: Sequence[View], method: str, per: Per | None
) -> tuple[Guardrail, ...]:
    if definition is None:
        return ()
    if not isinstance(definition, list) or len(definition) > MOST_GUARDRAILS:
        raise Unprocessable.at("/guardrails", f"must be a list of at most {MOST_GUARDRAILS}")
    allowed = {"measure", "limit"} | (set() if per is None else {"value", "cap"})
    guardrails = []
    for index, each in enumerate(definition):
        place = f"/guardrails/{index}"
        if not isinstance(each, Mapping) or not {"measure"} <= set(each) <= allowed:
            needs = "" if per else "; `value` and `cap` need `per`"
            raise Unprocessable.at(place, f"must be an object with `measure` and `limit`{needs}")
        rule = MEAN_RULE if per is None else read_rule(each, place)
        limit = each.get("limit", 0.0)
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 <= limit < rule.scale:
            raise Unprocessable.at(
                f"{place}/limit",
                f"must be a number from 0 to below {rule.scale:g}: by how much an arm may be worse",
            )
        measure = measures.read(each["measure"], specs, method, f"{place}/measure")
        if measure.is_metric and method != "split":
            raise Unprocessable.at(f"{place}/measure", "a value that comes by unit needs the method `split`")
        guardrails.append(Guardrail(measure, float(limit), rule))
    return tuple(guardrails)


def _names(definition: Body, place: str) -> list[str]:
    value = definition.get(place, [])
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise Unprocessable.at(f"/{place}", "must be a list of learners' names")
    return value


def _choice(definition: Body, place: str, *options: str) -> str:
    value = definition.get(place, options[0])
    if value not in options:
        raise Unprocessable.at(f"/{place}", f"must be one of {', '.join(options)}")
    return str(value)


def _learn(definition: Body, arms: Sequence[str]) -> str | tuple[str, ...]:
    """`all`, `served`, or the arms that learn: the others stay as they are, as a baseline does."""
    if not isinstance(definition.get("learn"), list):
        return _choice(definition, "learn", "all", "served")
    named = _names(definition, "learn")
    if not set(named) <= set(arms):
        raise Unprocessable.at("/learn", "must be `all`, `served` or a list of arms")
    return tuple(arm for arm in arms if arm in named)


def _number(
    definition: Body,
    place: str,
    default: float,
    *,
    above: float,
    below: float = float("inf"),
    most: float = float("inf"),
) -> float:
    value = definition.get(place, default)
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else nan
    if not (above < number < below and number <= most):
        limit = f"below {below:g}" if isfinite(below) else f"at most {most:g}"
        raise Unprocessable.at(f"/{place}", f"must be a number above {above:g} and {limit}")
    return float(number)


def _weights(definition: object, arms: Sequence[str]) -> list[float]:
    if definition is None:
        return [1.0] * len(arms)
    if not isinstance(definition, Mapping) or set(definition) != set(arms):
        raise Unprocessable.at("/weights", "must be an object with the weight of every arm")
    # A pair's interval widens with the inverse of the smaller weight: a thousandth is as far as it is useful.
    return [_number(definition, arm, 1.0, above=0.0, most=1e6) for arm in arms]
