"""`per`: a unit counts once, when `window` seconds have passed since it was first exposed, by what came until then.

    mean      the mean of its values                                  0 without any
    total     their sum, at least 0 and at most `cap`; counted as a share of the cap
    any       1 if one of them was above 0
    returns   1 if a later exposure fell into the window
    ratio     not a value of a unit: totals over totals of `over`, of all units of an arm (ratios.py)

Every unit that was exposed counts, whatever its arm made of it: who left, or never answered, counts with what there is. So
an arm cannot choose whose values are compared, as it could if users counted by the rounds for which they stayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from feedrank.service.contract.faults import Unprocessable
from feedrank.service.contract.json_types import JSON, Body

MEAN, TOTAL, ANY, RETURNS, RATIO = "mean", "total", "any", "returns", "ratio"
RULES = (MEAN, TOTAL, ANY, RETURNS)
LONGEST_WINDOW = 366 * 86400.0
LARGEST = 1e15  # of a value, a cap: sums of them stay finite
MOST_SEGMENTS, MOST_VALUES, LONGEST_VALUE = 8, 50, 100


@dataclass(frozen=True, slots=True)
class Rule:
    """How a unit's values become the one by which it counts, within [0, 1] times `scale`."""

    value: str = MEAN
    cap: float | None = None

    @property
    def scale(self) -> float:
        """The largest value."""
        return 1.0 if self.cap is None else self.cap

    @property
    def bounded(self) -> bool:
        """Whether each single value must be within [0, 1]."""
        return self.value in (MEAN, RETURNS)

    def of(self, count: int, total: float, above: int, returned: bool) -> float:
        """The value of a unit with `count` values of sum `total`, `above` of them above 0, as a share of `scale`."""
        match self.value:
            case "total" | "ratio":
                return min(max(total, 0.0), self.scale) / self.scale
            case "any":
                return float(above > 0)
            case "returns":
                return float(returned)
            case _:
                return total / count if count else 0.0

    def in_words(self, measure: str, window: str) -> str:
        """What is compared, for people."""
        match self.value:
            case "total":
                return f"total per unit of {measure}, at most {self.scale:g}, within {window} of its first exposure"
            case "ratio":
                return f"{measure}, totals of all units, of each at most its cap, within {window} of its first exposure"
            case "any":
                return f"share of units with any {measure} within {window} of their first exposure"
            case "returns":
                return f"share of units that return within {window} of their first exposure"
            case _:
                return f"mean per unit of {measure} within {window} of its first exposure"


@dataclass(frozen=True, slots=True)
class Over:
    """What the totals of a ratio are divided by: a measure by its text, and its rule."""

    measure: str
    rule: Rule

    def to_json(self) -> JSON:
        """As in the definition."""
        return {"measure": self.measure, "cap": self.rule.cap}


@dataclass(frozen=True, slots=True)
class Per:
    """The window in seconds, and the rule of the measure that decides; of a ratio, what it is `over`."""

    window: float
    rule: Rule
    over: Over | None = None

    @property
    def window_in_words(self) -> str:
        """`7 days`, `90 seconds`."""
        for unit, seconds in (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0)):
            if self.window >= seconds and self.window % seconds == 0:
                return _plural(self.window / seconds, unit)
        return _plural(self.window, "second")

    def to_json(self) -> JSON:
        """As in the definition."""
        own = {"window": self.window, **rule_json(self.rule)}
        return own if self.over is None else {**own, "over": self.over.to_json()}


def rule_json(rule: Rule) -> JSON:
    """A rule as in the definition."""
    return {"value": rule.value} | ({} if rule.cap is None else {"cap": rule.cap})


def read(definition: Body) -> Per | None:
    """The field `per` of a definition, and that all else fits it."""
    per = definition.get("per")
    if per is None:
        return None
    if not isinstance(per, Mapping):
        raise Unprocessable.at("/per", "must be an object with `window` and `value`")
    for name in per:
        if name not in ("window", "value", "cap", "over"):
            raise Unprocessable.at(f"/per/{name}", "unknown field")
    if definition.get("method", "split") != "split":
        raise Unprocessable.at(
            "/per", "needs the method `split`: in a drafted list every arm serves the unit"
        )
    if definition.get("count", "units") != "units":
        raise Unprocessable.at("/per", "needs `count` to be `units`: every unit counts once")
    for name in ("wait", "default"):
        if definition.get(name) is not None:
            raise Unprocessable.at(
                f"/{name}",
                "is not available with `per`: a unit counts when its window is over, what is missing as 0",
            )
    if "window" not in per:
        raise Unprocessable.at("/per/window", "missing field `window`: the seconds until a unit counts")
    window = number(per["window"], "/per/window")
    if not 0 < window <= LONGEST_WINDOW:
        raise Unprocessable.at("/per/window", f"must be above 0 and at most {LONGEST_WINDOW:g} seconds")
    rule = read_rule(per, "/per", (*RULES, RATIO))
    return Per(window, rule, _read_over(per, rule))


def _read_over(per: Body, rule: Rule) -> Over | None:
    """`over` of a ratio: {"measure", "cap"}."""
    over = per.get("over")
    if rule.value != RATIO:
        if over is not None:
            raise Unprocessable.at("/per/over", "belongs to the value `ratio`")
        return None
    if (
        not isinstance(over, Mapping)
        or set(over) != {"measure", "cap"}
        or not isinstance(over["measure"], str)
    ):
        raise Unprocessable.at(
            "/per/over", "must be an object with `measure` and `cap`: what a ratio divides by"
        )
    return Over(over["measure"], read_rule({"value": TOTAL, "cap": over["cap"]}, "/per/over"))


def read_rule(body: Body, place: str, rules: Sequence[str] = RULES) -> Rule:
    """`value` and `cap` of `per` or of a guardrail."""
    value, cap = body.get("value", MEAN), body.get("cap")
    if not isinstance(value, str) or value not in rules:
        raise Unprocessable.at(f"{place}/value", f"must be one of {', '.join(rules)}")
    if value not in (TOTAL, RATIO):
        if cap is not None:
            raise Unprocessable.at(f"{place}/cap", "belongs to the values `total` and `ratio`")
        return Rule(value)
    if cap is None:
        raise Unprocessable.at(
            f"{place}/cap", "missing field `cap`: the largest total that counts, as intervals need"
        )
    if (most := number(cap, f"{place}/cap")) <= 0:
        raise Unprocessable.at(f"{place}/cap", "must be a number above 0")
    return Rule(value, most)


def number(value: object, place: str) -> float:
    """A number whose sums stay finite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise Unprocessable.at(place, f"must be a number from -{LARGEST:g} to {LARGEST:g}")
    return float(value)


def read_segments(definition: Body) -> dict[str, tuple[str, ...]]:
    """`segments`: {name: [values]}; what is named before the start is compared with intervals that hold together."""
    segments = definition.get("segments")
    if segments is None:
        return {}
    if not isinstance(segments, Mapping) or len(segments) > MOST_SEGMENTS:
        raise Unprocessable.at("/segments", f"must be an object of at most {MOST_SEGMENTS} names")
    if segments and isinstance(per := definition.get("per"), Mapping) and per.get("value") == RATIO:
        raise Unprocessable.at("/segments", "are not available with the value `ratio`")
    if segments and definition.get("per") is None:
        raise Unprocessable.at("/segments", "needs `per`: a segment belongs to a unit that is exposed")
    for name, values in segments.items():
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise Unprocessable.at(f"/segments/{name}", "must be the list of values that get an interval")
        if len(values) > MOST_VALUES or len(set(values)) < len(values):
            raise Unprocessable.at(f"/segments/{name}", f"must be at most {MOST_VALUES} values, each once")
    return {name: tuple(values) for name, values in segments.items()}


def _plural(count: float, unit: str) -> str:
    return f"{count:g} {unit}{'' if count == 1 else 's'}"
