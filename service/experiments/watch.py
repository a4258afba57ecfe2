"""The machinery on simulated traffic, watched after every event: the A/A check, and the benchmarks' engine.

Runs go side by side as arrays, through the very functions that the service folds its log with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from feedrank.service.errors import Unprocessable
from feedrank.service.experiments.confidence import Floats, log_capital
from feedrank.service.experiments.state import effect

NEVER = np.iinfo(np.int64).max


def split_verdicts(
    y: Floats, in_first: NDArray[np.bool_], confidence: float = 0.95, p: float = 0.5
) -> NDArray[np.int64]:
    """The event (from 1) at which each run first has a verdict, or NEVER; all arguments are (runs, events).

    `y` is the value of the round's unit under the arm that served it.
    """
    runs, events = y.shape
    sums, counts = np.zeros((2, runs)), np.zeros((2, runs))
    totals, squares = np.empty((runs, events)), np.empty((runs, events))
    total = square = np.zeros(runs)
    for t in range(events):
        first, value = in_first[:, t].astype(np.float64), y[:, t]
        m_i, m_j = (sums + 0.5) / (counts + 1)
        x, guess = effect(value, first, m_i, m_j, p)
        totals[:, t] = total = total + x
        squares[:, t] = square = square + (x - guess) ** 2
        served = np.stack([first, 1 - first])
        counts += served
        sums += served * value
    return first_beyond(totals, squares, confidence, 1 / min(p, 1 - p))


def interleaved_verdicts(wins: ArrayLike, confidence: float = 0.95) -> NDArray[np.int64]:
    """The same for interleaving: `wins` is what the first arm earned in an impression less what the other did."""
    x = np.asarray(wins, dtype=np.float64)
    return first_beyond(np.cumsum(x, axis=1), np.cumsum(x * x, axis=1), confidence, 1.0)


def first_beyond(totals: Floats, squares: Floats, confidence: float, c: float) -> NDArray[np.int64]:
    """When the interval first leaves 0 out, that is, when the capital of either side reaches 2 / alpha."""
    goal = np.log(2 / (1 - confidence))
    found = np.full(len(totals), NEVER)
    for run, (total, square) in enumerate(zip(totals, squares, strict=True)):
        # Both capitals grow with |total|: only the larger side can have reached the goal.
        hits = np.flatnonzero(log_capital(np.abs(total), square, c) >= goal)
        if hits.size:
            found[run] = hits[0] + 1
    return found


def aa_check(
    runs: int = 2000,
    events: int = 1000,
    confidence: float = 0.95,
    weight: float = 0.5,
    mean: float = 0.5,
    seed: int = 0,
    values: ArrayLike | None = None,
) -> dict[str, Any]:
    """How many of `runs` experiments between two equal arms ever give a verdict, looked at after each event.

    Values are 0 or 1 with the given mean, or drawn from `values` (say, those of an experiment that has run): what is
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
    found = split_verdicts(y, rng.random((runs, events)) < weight, confidence, weight)
    false = int((found != NEVER).sum())
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
