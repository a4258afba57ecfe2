"""Experiments on simulated traffic, checked after every event: for `feedrank experiment aa` and the benchmarks.

Runs go side by side as arrays: the formulas of `levels` and `confidence` once more, and a test that both agree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from feedrank.learners.inference.confidence import BETS, log_mixture
from feedrank.learners.instances import Floats
from feedrank.service.contract.faults import Unprocessable
from feedrank.service.contract.json_types import JSON

from .levels import level_share

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
NEVER = np.iinfo(np.int64).max
_TOGETHER = 2**22  # numbers of the runs' capital in memory at once


def split_terms(
    y: Floats, arms: Ints, shares: ArrayLike, x: Floats | None = None, present: Bools | None = None
) -> tuple[Floats, Floats]:
    """(guesses m of every arm, (y - m) / p of the arm that served) for units in the order in which they count.

    `y`, `arms` and `x` are (runs, units); where `present` is false a run has no unit there.
    """
    p = np.asarray(shares, dtype=np.float64)
    runs, units = y.shape
    here = np.ones(y.shape, dtype=bool) if present is None else present
    count, total, sx, sxx, sxy = np.zeros((5, runs, len(p)))
    guesses, own = np.zeros((runs, units, len(p))), np.zeros((runs, units))
    row = np.arange(runs)
    for t in range(units):
        value, arm = y[:, t], arms[:, t]
        m = (total + 0.5) / (count + 1)
        if x is not None:
            many = np.maximum(count, 1)
            slope = (sxy - sx * total / many).sum(1) / ((sxx - sx**2 / many).sum(1) + 0.25)
            off = np.where(count > 0, slope[:, None] * (x[:, t, None] - sx / many), 0.0)
            m = np.clip(m + off, 0.0, 1.0)
        guesses[:, t] = np.where(here[:, t, None], m, 0.0)
        own[:, t] = np.where(here[:, t], (value - m[row, arm]) / p[arm], 0.0)
        count[row, arm] += here[:, t]
        total[row, arm] += here[:, t] * value
        if x is not None:
            sx[row, arm] += here[:, t] * x[:, t]
            sxx[row, arm] += here[:, t] * x[:, t] ** 2
            sxy[row, arm] += here[:, t] * x[:, t] * value
    return guesses, own


def signs(deviations: Floats, guesses: Floats, c: float, alpha: float) -> NDArray[np.int8]:
    """1 where the interval lies above 0, -1 where below, after each value; both arguments are (runs, values).

    `deviations` are X - g and `guesses` g. The capital of either side reaches 2 / alpha just where its bound passes 0.
    """
    goal = np.log(2 / alpha)
    result = np.zeros(deviations.shape, dtype=np.int8)
    together = max(1, _TOGETHER // (deviations.shape[1] * len(BETS)))
    for start in range(0, len(deviations), together):
        some = slice(start, start + together)
        for side in (1, -1):
            logs = np.cumsum(np.log1p(side * deviations[some, :, None] / c * BETS), axis=1)
            reached = log_mixture(logs, side * np.cumsum(guesses[some], axis=1), c) >= goal
            result[some] += side * reached.astype(np.int8)
    return result


def split_verdicts(
    y: Floats,
    in_first: Bools,
    confidence: float = 0.95,
    p: float = 0.5,
    x: Floats | None = None,
) -> NDArray[np.int64]:
    """The event (from 1) at which each run first has a verdict, or NEVER; all arguments are (runs, events).

    Two arms, and every round is a unit of its own with value `y`.
    """
    arms = 1 - in_first.astype(np.int64)
    guesses, own = split_terms(y, arms, (p, 1 - p), x)
    deviations = np.where(in_first, own, -own)
    return first(
        signs(deviations, guesses[:, :, 0] - guesses[:, :, 1], 1 / min(p, 1 - p), 1 - confidence) != 0
    )


def interleaved_verdicts(wins: ArrayLike, confidence: float = 0.95) -> NDArray[np.int64]:
    """The same for interleaving: `wins` is what the first arm earned in an impression minus what the other did."""
    x = np.asarray(wins, dtype=np.float64)
    alpha = (1 - confidence) * level_share(0)
    return first(signs(x, np.zeros_like(x), 1.0, alpha) != 0)


def first(reached: Bools) -> NDArray[np.int64]:
    """The first true place of each row, from 1, or NEVER."""
    at = reached.argmax(axis=1)
    return np.where(reached.any(axis=1), at + 1, NEVER)


def aa_check(
    runs: int = 2000,
    events: int = 1000,
    confidence: float = 0.95,
    weight: float = 0.5,
    mean: float = 0.5,
    seed: int = 0,
    values: ArrayLike | None = None,
) -> JSON:
    """How many of `runs` experiments between two equal arms ever give a verdict, looked at after each event.

    Values are 0 or 1 with the stated mean, or drawn from `values` (say, those of an experiment that has run): what is
    measured is then the false alarms of such traffic. `weight` is the first arm's share.
    """
    if not (0 < weight < 1 and 0 <= mean <= 1 and 0 < confidence < 1 and runs > 0 and events > 0):
        raise Unprocessable(
            "runs and events must be positive; weight, mean and confidence lie between 0 and 1"
        )
    rng = np.random.default_rng(seed)
    if values is None:
        y = (rng.random((runs, events)) < mean).astype(np.float64)
    else:
        pool = np.asarray(values, dtype=np.float64)
        if not pool.size or not ((pool >= 0) & (pool <= 1)).all():
            raise Unprocessable("values must lie in [0, 1], and there must be some")
        y = rng.choice(pool, size=(runs, events))
    verdicts = split_verdicts(y, rng.random((runs, events)) < weight, confidence, weight)
    false = int((verdicts != NEVER).sum())
    return {
        "runs": runs,
        "events": events,
        "false_verdicts": false,
        "rate": false / runs,
        "allowed": 1 - confidence,
        "passed": false <= _most(runs, 1 - confidence),
    }


def _most(runs: int, alpha: float) -> float:
    """Three standard deviations above the allowed rate: a sound machine hardly ever counts more."""
    return float(runs * alpha + 3 * np.sqrt(runs * alpha * (1 - alpha)))
