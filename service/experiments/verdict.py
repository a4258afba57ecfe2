"""The present result of an experiment: differences with confidence sequences, guardrails, and the verdict.

An arm is named once at some level its interval to every other arm excludes 0 in its favour, and no level says the
contrary. All intervals hold together at every look (`bounds`), so no correction for looking is left to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from feedrank.learners.inference.confidence import needed
from feedrank.service.contract.json_types import JSON

from . import mismatch
from .bounds import Bound, bounds, guardrail_alpha, pair_alpha, ratio_intervals
from .levels import UnitLevels
from .per import RETURNS
from .plan import Plan
from .ratios import RatioArms
from .reporting import ages, days, scaled, segments, sentence
from .state import State

UNDECIDED = "undecided"


def report(plan: Plan, state: State) -> JSON:
    """The reply of GET, without the experiment's name and definition."""
    measure = plan.measure(state.feedback)
    up = -1 if plan.lower_is_better(measure) else 1
    levels = state.main
    every = [] if state.ratios is not None else bounds(plan, levels, pair_alpha(plan))
    shown = _shown(levels, every)
    differences, better = [], {}
    for pair, i, j in levels.each_pair():
        own = [each for each in every if (each.i, each.j) == (i, j)]
        signs = {each.sign for each in own} - {0}
        sign = up * signs.pop() if len(signs) == 1 else 0
        better[i, j], better[j, i] = sign > 0, sign < 0
        differences.append(_difference(plan, levels, own, shown, pair, sign, (i, j)))
    if state.ratios is not None:
        shown, differences, better = 0, *_of_ratios(plan, state.ratios, up)
    arms = range(len(plan.arms))
    winner = next((i for i in arms if all(better[i, j] for j in arms if j != i)), None)
    units_in = levels.units() if state.units is None else state.units.exposed
    ratio = mismatch.report(units_in, plan.weights) if plan.split else None
    spoiled = _spoiled(plan, state, ratio)
    decided = winner is not None and spoiled is None
    units, rounds = (0, 0) if decided else _more(plan, state, differences, every, up)
    means = scaled(plan, levels.levels[shown].means()) if levels.levels else [None] * len(plan.arms)
    if state.ratios is not None:
        means = state.ratios.means(plan.scale)
    reply: JSON = {
        "status": state.status,
        "promoted": state.promoted,
        "promotion": state.promotion,
        "version": state.events,
        "measure": plan.named if measure is None else measure.text,
        "measure_in_words": plan.in_words(measure),
        "target": _target(plan),
        "rounds_per_unit": 1 << shown,
        "arms": {name: _arm(plan, state, arm, means[arm]) for arm, name in enumerate(plan.arms)},
        "shadow": {
            name: {"rounds": tally.rounds, "mean": tally.total / tally.rounds if tally.rounds else None}
            for name, tally in zip(plan.shadow, state.shadow, strict=True)
        },
        "share": state.share,
        "waiting": len(state.waiting) if state.units is None else len(state.units) - state.units.closed,
        "better": "lower" if up < 0 else "higher",
        "differences": differences,
        "returns": _returns(plan, levels),
        "days": days(plan, state),
        "ages": ages(plan, state),
        "segments": segments(plan, state, up),
        "handover": None if state.handover is None else state.handover.report(),
        "guardrails": guardrails(plan, state),
        "sample_ratio": ratio,
        "verdict": plan.arms[winner] if winner is not None and decided else UNDECIDED,
        "more_units": units,
        "more_rounds": rounds,
        "reason": spoiled or _reason(plan, decided),
    }
    return {"sentence": sentence(plan, reply), **reply}


def _shown(levels: UnitLevels, every: Sequence[Bound]) -> int:
    """One level for all that stands side by side: the longest that decides most pairs; before, that which tells most."""
    decided: dict[int, int] = {}
    for each in every:
        decided[each.level] = decided.get(each.level, 0) + abs(each.sign)
    most = max(decided.values(), default=0)
    if most:
        return max(k for k, count in decided.items() if count == most)
    sharpest = [levels.sharpest(pair, i, j) for pair, i, j in levels.each_pair()]
    return max(set(sharpest), key=lambda k: (sharpest.count(k), k))


def _difference(
    plan: Plan,
    levels: UnitLevels,
    own: Sequence[Bound],
    shown: int,
    pair: int,
    sign: int,
    arms: tuple[int, int],
) -> JSON:
    """One pair, at the level shown; at one that decides, where that one does not."""
    i, j = arms
    bound = next((each for each in own if each.level == shown), None)
    if sign and (bound is None or not bound.sign):
        bound = next(each for each in own if each.sign)
    base = {"arms": [plan.arms[i], plan.arms[j]], "better": plan.arms[i if sign > 0 else j] if sign else None}
    scale = plan.scale
    if not levels.levels:
        return {**base, "means": [None, None], "difference": None, "lower": -scale, "upper": scale,
                "units": 0, "rounds": 0, "rounds_per_unit": 1 << shown}  # fmt: skip
    k = shown if bound is None else bound.level
    lower, upper = (-1.0, 1.0) if bound is None else (bound.lower, bound.upper)
    level = levels.levels[k]
    means = scaled(plan, level.means())
    one, other = means[i], means[j]
    lower, upper = lower * scale, upper * scale
    difference = None if one is None or other is None else one - other
    return {
        **base,
        "means": [one, other],
        "difference": difference,
        # The centre of the interval weighs the first units a little differently: wider is always valid.
        "lower": lower if difference is None else min(lower, difference),
        "upper": upper if difference is None else max(upper, difference),
        "units": level.n,
        "rounds": level.n << k,
        "rounds_per_unit": 1 << k,
    }


def _of_ratios(plan: Plan, ratios: RatioArms, up: int) -> tuple[list[JSON], dict[tuple[int, int], bool]]:
    """The differences of ratios, and which arm is better than which."""
    differences, better = [], {}
    for one in ratio_intervals(plan, ratios):
        (i, j), sign = one.pop("arms"), up * one.pop("sign")
        better[i, j], better[j, i] = sign > 0, sign < 0
        named = plan.arms[i if sign > 0 else j] if sign else None
        base = {"arms": [plan.arms[i], plan.arms[j]], "better": named}
        differences.append({**base, **one, "rounds": one["units"], "rounds_per_unit": 1})
    return differences, better


def _returns(plan: Plan, levels: UnitLevels) -> list[JSON]:
    """Of a unit's 1st, 2nd, ... outcome in a split: how many units of each arm came that far, and their mean in it."""
    return [
        {
            "round": number,
            "units": {name: one.units for name, one in zip(plan.arms, arms, strict=True)},
            "means": {
                name: one.total / one.units if one.units else None
                for name, one in zip(plan.arms, arms, strict=True)
            },
        }
        for number, arms in enumerate(levels.returns, 1)
    ]


def guardrails(plan: Plan, state: State) -> list[JSON]:
    """Of each guardrail and each arm but the first: how much worse it may be than the first arm, at most."""
    count = len(plan.arms)
    reports = []
    for guardrail, levels in zip(plan.guardrails, state.figures[1:], strict=True):
        up = -1 if guardrail.measure.lower_is_better and guardrail.rule.value != RETURNS else 1
        scale = guardrail.rule.scale
        with_first = {(pair, k) for pair in range(count - 1) for k in range(len(levels.levels))}
        every = bounds(plan, levels, guardrail_alpha(plan), with_first)
        for arm in range(1, count):
            own = [each for each in every if each.j == arm]
            # Gain of the arm over the first one: X is the first arm minus it.
            gains = [(-each.upper, -each.lower) if up > 0 else (each.lower, each.upper) for each in own]
            lower = scale * max((low for low, _ in gains), default=-1.0)
            upper = scale * min((high for _, high in gains), default=1.0)
            reports.append(
                {
                    "measure": guardrail.measure.text,
                    "measure_in_words": guardrail.measure.in_words,
                    "arm": plan.arms[arm],
                    "limit": guardrail.limit,
                    "lower": lower,
                    "upper": max(lower, upper),
                    "passed": lower >= -guardrail.limit,
                    "violated": upper < -guardrail.limit,
                }
            )
    return reports


def _arm(plan: Plan, state: State, arm: int, mean: float | None) -> JSON:
    units = state.main.units()[arm]
    own: JSON = {"units": units, "rounds": state.arms[arm].rounds, "mean": mean}
    if state.units is not None:
        exposed = state.units.exposed[arm]
        own |= {"exposed": exposed, "open": exposed - units}
    return {**own, **state.arrivals.report(arm)} if plan.split else own


def _target(plan: Plan) -> str:
    if plan.over is not None and plan.per is not None:
        return (
            f"the totals of all units that are exposed, {plan.per.window_in_words} after the first exposure of each, "
            "while the ratio of an arm stays what it is"
        )
    if plan.per is not None:
        return (
            "all units that are exposed: every unit counts once, "
            f"{plan.per.window_in_words} after its first exposure, and what never came is 0"
        )
    if plan.count == "units" and plan.split:
        return "the population that the units come from: every unit counts once, by its first outcome"
    if plan.count == "units":
        return "the population that the units come from: every unit counts once"
    return "this traffic: every round counts once"


def _more(
    plan: Plan, state: State, differences: Sequence[JSON], every: Sequence[Bound], up: int
) -> tuple[int | None, int | None]:
    """(units, rounds) until the arm that leads now has left the last of its rivals behind; None if none leads."""
    lead: dict[tuple[str, str], float] = {}
    for each in differences:
        i, j = each["arms"]
        lead[i, j] = up * (each["difference"] or 0.0)
        lead[j, i] = -lead[i, j]
    if not plan.proves or state.ratios is not None:
        return None, None
    best = max(plan.arms, key=lambda arm: min(lead[arm, other] for other in plan.arms if other != arm))
    if min(lead[best, other] for other in plan.arms if other != best) <= 0:
        return None, None
    most = 0
    most_rounds = 0
    levels = state.main
    rounds = sum(tally.rounds for tally in state.arms) / (1 if plan.split else len(plan.arms))
    a_unit = rounds / max(1, levels.levels[0].n)
    for each in differences:
        if best in each["arms"] and each["better"] is None:
            level = each["rounds_per_unit"].bit_length() - 1
            i, j = (plan.arms.index(arm) for arm in each["arms"])
            own = next(bound for bound in every if (bound.i, bound.j, bound.level) == (i, j, level))
            ahead = (i, j) if plan.arms[i] == best else (j, i)
            if up < 0:
                ahead = ahead[1], ahead[0]
            here, row = levels.levels[level], 2 * own.pair + (ahead != (i, j))
            more = needed(
                here.capital.logs([row])[0], here.ahead(*ahead), here.n, levels.c(i, j), own.alpha / 2
            )
            if more is None:
                return None, None
            most = max(most, more)
            most_rounds = max(most_rounds, round(more * max(a_unit, 1 << level)))
    return most, most_rounds


def _spoiled(plan: Plan, state: State, ratio: dict[str, object] | None) -> str | None:
    """Why no verdict may be trusted, if there is a reason."""
    if not plan.proves:
        return "rounds of a split prove nothing: one unit's are alike, and an arm may drive its users away. Count units"
    if ratio is not None and ratio["mismatch"]:
        return "units are not shared out as the weights say: feedback is lost for some arm, and no verdict can be trusted"
    if (
        plan.split
        and plan.per is None
        and (plan.wait is None or plan.default is None)
        and state.arrivals.differ()
    ):
        return (
            "the arms' rounds are not answered alike: some answers are late, or missing, for one arm more than for "
            "another; no verdict can be trusted. Define `wait`, so that a round counts when its time to answer is over"
        )
    return None


def _reason(plan: Plan, decided: bool) -> str:
    if decided:
        return "its confidence interval to every other arm excludes 0"
    return "no arm's confidence interval to every other arm excludes 0 yet"
