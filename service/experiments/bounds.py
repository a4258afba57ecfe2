"""Confidence intervals of an experiment: for every pair of arms and every level, valid together at every look.

The error alpha = 1 - confidence is shared: by the measure (all of it, or half where there are guardrails) and the
guardrails, then by the pairs of arms, then by the levels (a split has one), then by the two sides. So with probability
`confidence` every interval covers its running difference at all times.

A split that counts rounds has none: the rounds of a unit are alike, and how many there are may be the arm's doing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from feedrank.learners.inference.confidence import lower_bounds
from feedrank.service.contract.json_types import JSON

from .levels import UnitLevels, level_share
from .plan import Plan
from .ratios import RatioArms
from .trace import PairMoment


@dataclass(frozen=True, slots=True)
class Bound:
    """One pair at one level: the interval of its running difference, at its own `alpha`."""

    pair: int
    i: int
    j: int
    level: int
    lower: float
    upper: float
    alpha: float

    @property
    def sign(self) -> int:
        """1 if i is above j, -1 if below, 0 if the interval holds 0."""
        return 1 if self.lower > 0 else -1 if self.upper < 0 else 0


def pair_alpha(plan: Plan) -> float:
    """The error of one pair of arms of the measure that decides."""
    pairs = len(plan.arms) * (len(plan.arms) - 1) / 2
    return (1 - plan.confidence) / (2 if plan.guardrails else 1) / pairs


def segment_alpha(plan: Plan) -> float:
    """The error of one pair of arms in one segment: all segments named before the start hold together, by themselves."""
    pairs = len(plan.arms) * (len(plan.arms) - 1) / 2
    return (1 - plan.confidence) / pairs / max(1, sum(len(values) for values in plan.segments.values()))


def guardrail_alpha(plan: Plan) -> float:
    """The error of one arm against the first on one guardrail."""
    return (1 - plan.confidence) / 2 / max(1, len(plan.guardrails)) / (len(plan.arms) - 1)


def bounds(
    plan: Plan, levels: UnitLevels, alpha: float, only: Collection[tuple[int, int]] | None = None
) -> list[Bound]:
    """The intervals at all levels that have units; `alpha` is that of a pair. `only` names (pair, level)s."""
    if not plan.proves:
        return []
    many = plan.count == "units" and not plan.split
    entries, logs = [], []
    for k, level in enumerate(levels.levels):
        wanted = [each for each in levels.each_pair() if only is None or (each[0], k) in only]
        if level.n and wanted:
            entries += [(*each, k) for each in wanted]
            logs.append(level.capital.logs([2 * pair + side for pair, _, _ in wanted for side in (0, 1)]))
    if not entries:
        return []
    sides = [(levels.levels[k], *arms, k) for _, i, j, k in entries for arms in ((i, j), (j, i))]
    low = lower_bounds(
        np.concatenate(logs),
        [level.ahead(i, j) for level, i, j, _ in sides],
        [level.n for level, *_ in sides],
        [levels.c(i, j) for _, i, j, _ in sides],
        [alpha * level_share(k, many) / 2 for *_, k in sides],
    )
    return [
        Bound(pair, i, j, k, max(-1.0, low[2 * at]), min(1.0, -low[2 * at + 1]), alpha * level_share(k, many))
        for at, (pair, i, j, k) in enumerate(entries)
    ]


def ratio_intervals(plan: Plan, ratios: RatioArms) -> list[JSON]:
    """Each pair of arms, of a ratio."""
    return ratios.intervals(pair_alpha(plan), plan.scale, plan.rules[0].scale)


def moments(plan: Plan, levels: UnitLevels, ratios: RatioArms | None = None) -> list[PairMoment]:
    """Each pair of arms now, at the level that tells most of it: what is kept for the chart."""
    if ratios is not None:
        each = ratio_intervals(plan, ratios)
        return [(one["units"], 1, one["difference"] or 0.0, one["lower"], one["upper"]) for one in each]
    sharpest = {pair: levels.sharpest(pair, i, j) for pair, i, j in levels.each_pair()}
    own = {each.pair: each for each in bounds(plan, levels, pair_alpha(plan), set(sharpest.items()))}
    kept: list[PairMoment] = []
    scale = plan.scale
    for pair, i, j in levels.each_pair():
        k = sharpest[pair]
        if not levels.levels:
            kept.append((0, 1 << k, 0.0, -scale, scale))
            continue
        level, bound = levels.levels[k], own.get(pair)
        lower, upper = (-1.0, 1.0) if bound is None else (bound.lower, bound.upper)
        one, other = (mean or 0.0 for mean in (level.means()[i], level.means()[j]))
        kept.append((level.n, 1 << k, (one - other) * scale, lower * scale, upper * scale))
    return kept
