"""How many units an experiment will take, before it starts: by values that are known, and the smallest effect of interest.

    fixed   (z_(1 - alpha / 2) + z_power)^2 (s_1^2 / p + s_2^2 / (1 - p)) / effect^2, looked at once, at the end
    here    as many times that as simulated experiments take, looked at after every unit: half of them, and `power` of them

The second arm has the values of the first with the effect added: some of them become 1, or 0 for an effect below 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from feedrank.learners.instances import Floats
from feedrank.service.contract.faults import Unprocessable

from .watch import NEVER, split_verdicts

SIMULATED = 2_000  # units: of more than these, a larger effect is simulated, and the ratio taken
LONGEST = 5  # times the fixed sample size; whoever has no verdict by then counts as this long


@dataclass(frozen=True, slots=True)
class Duration:
    """Units of both arms together."""

    baseline: float
    fixed: int
    median: int
    most: int


def duration(
    effect: float,
    values: Sequence[float],
    *,
    confidence: float = 0.95,
    weight: float = 0.5,
    power: float = 0.8,
    runs: int = 200,
    seed: int = 0,
) -> Duration:
    """For values in [0, 1] of units; `weight` is the first arm's share."""
    pool: Floats = np.asarray(values, dtype=np.float64)
    if not pool.size or not ((pool >= 0) & (pool <= 1)).all():
        raise Unprocessable("values must lie in [0, 1], and there must be some")
    if not (0 < weight < 1 and 0 < power < 1 and 0 < confidence < 1 and runs > 0):
        raise Unprocessable("runs must be positive; weight, power and confidence lie between 0 and 1")
    mean = float(pool.mean())
    room = 1 - mean if effect > 0 else mean
    if effect == 0 or abs(effect) > room:
        raise Unprocessable(f"the effect must not be 0, nor lead from the mean of {mean:.4g} out of [0, 1]")
    fixed = _fixed(pool, effect, confidence, weight, power)
    simulated = effect
    if fixed > SIMULATED:
        simulated = float(np.copysign(min(room, abs(effect) * np.sqrt(fixed / SIMULATED)), effect))
    size = _fixed(pool, simulated, confidence, weight, power)
    rng = np.random.default_rng(seed)
    first = rng.random((runs, LONGEST * size)) < weight
    y = rng.choice(pool, size=first.shape)
    changed = ~first & (rng.random(first.shape) < abs(simulated) / room)
    verdicts = split_verdicts(np.where(changed, float(effect > 0), y), first, confidence, weight)
    ratios = np.where(verdicts == NEVER, LONGEST * size, verdicts) / size
    median, most = np.quantile(ratios, (0.5, power))
    return Duration(mean, fixed, int(np.ceil(fixed * median)), int(np.ceil(fixed * most)))


def _fixed(pool: Floats, effect: float, confidence: float, weight: float, power: float) -> int:
    mean, square = float(pool.mean()), float((pool**2).mean())
    share = abs(effect) / (1 - mean if effect > 0 else mean)
    moved = (1 - share) * square + share * float(effect > 0) - (mean + effect) ** 2
    z = NormalDist().inv_cdf(1 - (1 - confidence) / 2) + NormalDist().inv_cdf(power)
    return int(np.ceil(z * z * ((square - mean**2) / weight + moved / (1 - weight)) / effect**2))
