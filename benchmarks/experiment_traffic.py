"""Simulated traffic of equal arms, and when an experiment on it would first name one: many runs side by side, as arrays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from feedrank.learners.inference.confidence import Floats
from feedrank.service.experiments.levels import LEVELS, level_share
from feedrank.service.experiments.watch import first, signs, split_terms

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Traffic: (units, values of the served arm) of equal arms, each (runs, events)


def fresh(rng: np.random.Generator, runs: int, events: int) -> tuple[Ints, Floats]:
    """Every round is a unit of its own."""
    return np.tile(np.arange(events), (runs, 1)), np.full((runs, events), 0.5)


def heavy(rng: np.random.Generator, runs: int, events: int) -> tuple[Ints, Floats]:
    """Twenty users that differ much, a few of whom make most rounds."""
    chance = 1 / np.arange(1, 21)
    units = rng.choice(20, size=(runs, events), p=chance / chance.sum())
    tastes = rng.beta(0.5, 0.5, (runs, 20))
    return units, np.take_along_axis(tastes, units, axis=1)


def drifting(rng: np.random.Generator, runs: int, events: int) -> tuple[Ints, Floats]:
    """A hundred users, and a mean that goes up and down for all of them."""
    units = rng.integers(100, size=(runs, events))
    return units, np.tile(0.5 + 0.45 * np.sin(np.arange(events) / 40), (runs, 1))


TRAFFIC: dict[str, Callable[..., tuple[Ints, Floats]]] = {
    "new units": fresh,
    "20 heavy users": heavy,
    "100 users, drift": drifting,
}
# A value in [0, 1] with a mean, of each kind of measure: clicks and mistakes are 0 or 1, NDCG lies anywhere between.
MEASURES: dict[str, Callable[[np.random.Generator, Floats], Floats]] = {
    "0 or 1": lambda rng, mean: (rng.random(mean.shape) < mean).astype(np.float64),
    "reciprocal rank": lambda rng, mean: (
        (rng.random(mean.shape) < mean) / rng.integers(1, 5, mean.shape).astype(np.float64)
    ),
    "NDCG": lambda rng, mean: rng.beta(4 * mean + 0.2, 4 * (1 - mean) + 0.2),
}


def occurrences(units: Ints) -> Ints:
    """Of each round, the how-manieth of its unit it is, from 1."""
    order = np.argsort(units, axis=1, kind="stable")
    ordered = np.take_along_axis(units, order, axis=1)
    places = np.tile(np.arange(units.shape[1]), (len(units), 1))
    new = np.hstack([np.ones((len(units), 1), dtype=bool), ordered[:, 1:] != ordered[:, :-1]])
    start = np.maximum.accumulate(np.where(new, places, 0), axis=1)
    count = np.empty_like(units)
    np.put_along_axis(count, order, places - start + 1, axis=1)
    return count


def unit_means(units: Ints, count: Ints, values: Floats) -> Floats:
    """Of each round, the mean of its unit's values so far; `values` may have a last axis of arms."""
    order = np.argsort(units, axis=1, kind="stable")
    wide = values if values.ndim == 3 else values[:, :, None]
    total = np.cumsum(np.take_along_axis(wide, order[:, :, None], axis=1), axis=1)
    ordered = np.take_along_axis(count, order, axis=1)
    before = np.arange(units.shape[1]) - ordered
    start = np.where(
        (before >= 0)[:, :, None], np.take_along_axis(total, np.maximum(before, 0)[:, :, None], axis=1), 0.0
    )
    means = np.empty_like(wide)
    np.put_along_axis(
        means, np.broadcast_to(order[:, :, None], wide.shape), (total - start) / ordered[:, :, None], axis=1
    )
    return means if values.ndim == 3 else means[:, :, 0]


def packed(entered: Bools) -> tuple[Ints, Bools]:
    """The places of the true entries of each row, to the left, and which of them are there."""
    order = np.argsort(~entered, axis=1, kind="stable")[:, : max(1, int(entered.sum(axis=1).max()))]
    return order, np.take_along_axis(entered, order, axis=1)


def verdicts(units: Ints, values: Floats, arms: int, served: Ints | None, confidence: float = 0.95) -> Ints:
    """The event at which each run first names an arm, looked at after each; `served` is None when interleaving."""
    runs, events = units.shape
    count = occurrences(units)
    means = unit_means(units, count, values)
    pairs = list(combinations(range(arms), 2))
    ahead = np.zeros((len(pairs), 2, runs, events), dtype=bool)
    for k in range(LEVELS if served is None else 1):
        entered = count == 1 << k
        if not entered.any():
            break
        order, present = packed(entered)
        alpha = (1 - confidence) / len(pairs) * level_share(k, many=served is None)
        y = np.take_along_axis(means, order if means.ndim == 2 else order[:, :, None], axis=1)
        if served is not None:
            arm = np.take_along_axis(served, order, axis=1)
            guesses, own = split_terms(y, arm, np.full(arms, 1 / arms), None, present)
        at = np.maximum.accumulate(np.where(entered, np.cumsum(entered, axis=1), 0), axis=1) - 1
        for pair, (i, j) in enumerate(pairs):
            if served is not None:
                deviation = np.where(arm == i, own, np.where(arm == j, -own, 0.0))
                sign = signs(deviation, guesses[:, :, i] - guesses[:, :, j], float(arms), alpha)
            else:
                difference = np.where(present, y[:, :, i] - y[:, :, j], 0.0)
                sign = signs(difference, np.zeros_like(difference), 1.0, alpha)
            now = np.where(at >= 0, np.take_along_axis(sign, np.maximum(at, 0), axis=1), 0)
            ahead[pair, 0] |= now > 0
            ahead[pair, 1] |= now < 0
    named = np.zeros((runs, events), dtype=bool)
    for winner in range(arms):
        all_behind = np.ones((runs, events), dtype=bool)
        for pair, (i, j) in enumerate(pairs):
            if winner in (i, j):
                side = 0 if winner == i else 1
                all_behind &= ahead[pair, side] & ~ahead[pair, 1 - side]
        named |= all_behind
    return first(named)
