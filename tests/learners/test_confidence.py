"""The confidence sequences hold at every look, under drift too, and the state behind them is exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.learners.inference.confidence import (
    BETS,
    LOG_WEIGHTS,
    Capital,
    log_mixture,
    lower_bounds,
    needed,
)


def test_the_weights_are_a_distribution_and_the_bets_lie_below_one() -> None:
    assert np.exp(LOG_WEIGHTS).sum() == pytest.approx(1)
    assert 0 < BETS[0] < BETS[-1] < 1


def test_the_mixture_is_a_supermartingale_for_all_two_point_values() -> None:
    # E[mixture of (1 + lambda (X - g)) / exp(lambda (mean - g))] <= 1, for any guess within c of the lower end.
    rng = np.random.default_rng(0)
    for low, high, share in rng.uniform(-1, 1, (300, 3)):
        x = np.sort([low, high])
        guess = x[0] + (1 + share) / 2
        chance = np.array([0.3, 0.7])
        capital = Capital.new(2)
        capital.add([0, 1], x - guess)
        mixtures = np.exp(log_mixture(capital.logs(), guess - chance @ x, 1.0))
        assert chance @ mixtures <= 1 + 1e-9


@given(st.lists(st.floats(-1, 5), min_size=1, max_size=50), st.floats(1e-6, 0.4), st.floats(-3, 3))
def test_the_bound_is_where_the_mixture_reaches_its_goal(
    values: list[float], alpha: float, guesses: float
) -> None:
    capital, c, n = Capital.new(1), 2.0, len(values)
    for value in values:
        capital.add([0], [value])
    (bound,) = lower_bounds(capital.logs(), guesses, n, c, alpha)
    reached = log_mixture(capital.logs(), guesses - n * bound, c)
    assert float(reached[0]) == pytest.approx(np.log(1 / alpha), rel=1e-6)


def test_products_are_exact_and_never_leave_the_range() -> None:
    rng = np.random.default_rng(1)
    values = rng.uniform(-1, 1, 20_000)
    capital = Capital.new(1)
    for value in values:
        capital.add([0], [float(value)])
    assert capital.logs()[0] == pytest.approx(
        np.log1p(np.outer(BETS, values)).sum(axis=1), rel=1e-9, abs=1e-9
    )
    assert ((capital.mantissa >= 0.5) & (capital.mantissa < 1)).all()


def test_the_running_mean_is_covered_while_it_drifts() -> None:
    rng = np.random.default_rng(2)
    runs, events = 100, 1500
    effect = 0.4 * np.sin(np.arange(events) / 100)
    truth = np.cumsum(effect) / np.arange(1, events + 1)
    missed = np.zeros(runs, dtype=bool)
    capital = Capital.new(2 * runs)
    for t in range(events):
        x = np.where(rng.random(runs) < (1 + effect[t]) / 2, 1.0, -1.0)
        capital.add(range(2 * runs), np.concatenate([x, -x]).tolist())
        if t % 50 == 49:
            low = np.array(lower_bounds(capital.logs(), 0.0, t + 1, 1.0, 0.025))
            missed |= (low[:runs] > truth[t]) | (-low[runs:] < truth[t])
    assert missed.sum() <= 8
    assert (-low[runs:] - low[:runs]).max() < 0.25


def test_what_is_needed_is_what_it_takes() -> None:
    capital, values = Capital.new(1), [1.0, -0.9, 0.8, -0.6] * 20
    for value in values:
        capital.add([0], [value])
    n, logs = len(values), capital.logs()
    more = needed(logs[0], 0.0, n, 1.0, 0.025)
    assert more is not None
    assert more > 0
    scale = (n + more) / n
    assert log_mixture(scale * logs, 0.0, 1.0)[0] == pytest.approx(np.log(40), abs=0.05)
    assert needed(20 * logs[0], 0.0, n, 1.0, 0.025) == 0
    assert needed(-np.abs(logs[0]), 0.0, n, 1.0, 0.025) is None
    assert needed(logs[0], 0.0, 0, 1.0, 0.025) is None
