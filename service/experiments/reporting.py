"""What GET says of an experiment beside its verdict: one sentence for everybody, the effect by day and by segment."""

from __future__ import annotations

from collections.abc import Sequence

from feedrank.service.contract.json_types import JSON, View

from .bounds import bounds, segment_alpha
from .plan import Plan
from .state import State


def sentence(plan: Plan, report: View) -> str:
    """What to tell somebody who reads one sentence."""
    winner = report["verdict"]
    if winner not in plan.arms:
        waiting = "" if report["version"] else " Nothing has been measured yet."
        more = report["more_units"]
        if more:
            waiting = f" It would take about {more:,} more units if the difference stays the same."
        return f"No arm is proved better than all others yet.{waiting}"
    parts = []
    for each in report["differences"]:
        if winner in each["arms"]:
            rival = next(arm for arm in each["arms"] if arm != winner)
            ends = sorted((abs(each["lower"]), abs(each["upper"])))
            # The interval of a pair that decides excludes 0, unless the mean of the units lies beyond its end.
            low = 0.0 if each["lower"] <= 0 <= each["upper"] else ends[0]
            parts.append(f"than {rival} by {low:.3g} to {ends[1]:.3g}")
    until = "on average over the units so far, and this holds however often you look"
    return f"{winner} is better {', '.join(parts)} ({report['measure_in_words']}), {until}."


def scaled(plan: Plan, means: Sequence[float | None]) -> list[float | None]:
    """Means of units in the units of the measure, if they are shares of a cap."""
    return [None if mean is None else mean * plan.scale for mean in means]


def days(plan: Plan, state: State) -> list[JSON]:
    """By the day of the first exposure, of units that have counted: how many of each arm, and their mean.

    Whether an effect wears off is seen here; nobody is named by it.
    """
    if state.units is None:
        return []
    return [
        {
            "day": day.day,
            "units": dict(zip(plan.arms, day.units, strict=True)),
            "means": {
                arm: plan.scale * total / over if over else None
                for arm, total, over in zip(plan.arms, day.totals, day.over, strict=True)
            },
        }
        for day in state.units.days
    ]


def ages(plan: Plan, state: State) -> list[JSON]:
    """By the day since a unit's own first exposure: what came on it a unit, of those that have been in for so long.

    Whether users have to get used to an arm, or tire of it, is seen here; nobody is named by it.
    """
    table = state.units
    if table is None:
        return []
    return [
        {
            "day": day,
            "units": dict(zip(plan.arms, units, strict=True)),
            "means": {
                arm: total / count if count else None
                for arm, total, count in zip(plan.arms, totals, units, strict=True)
            },
        }
        for day, (totals, units) in enumerate(zip(table.ages, table.reached(state.now), strict=True))
    ]


def segments(plan: Plan, state: State, up: int) -> list[JSON]:
    """The differences in each segment that was named before the start. Their intervals hold together, at every look."""
    shown = []
    for (name, value), levels in state.segments.items():
        every = {(each.i, each.j): each for each in bounds(plan, levels, segment_alpha(plan))}
        means = scaled(plan, levels.levels[0].means()) if levels.levels else [None] * len(plan.arms)
        for _, i, j in levels.each_pair():
            bound, one, other = every.get((i, j)), means[i], means[j]
            sign = 0 if bound is None else up * bound.sign
            shown.append(
                {
                    "segment": name,
                    "value": value,
                    "arms": [plan.arms[i], plan.arms[j]],
                    "units": sum(levels.units()),
                    "means": [one, other],
                    "difference": None if one is None or other is None else one - other,
                    "lower": plan.scale * (-1.0 if bound is None else bound.lower),
                    "upper": plan.scale * (1.0 if bound is None else bound.upper),
                    "better": None if sign == 0 else plan.arms[i if sign > 0 else j],
                }
            )
    return shown
