"""The confidence sequences hold at every look, under drift too, and are tight enough to decide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.service.errors import Unprocessable
from feedrank.service.experiments.confidence import Sums, boundary, interval, log_capital, needed
from feedrank.service.experiments.watch import NEVER, aa_check, interleaved_verdicts, split_verdicts


@given(st.floats(0, 1e7), st.floats(1e-6, 0.4), st.floats(0.5, 10))
def test_the_boundary_is_where_the_capital_reaches_its_goal(squares: float, alpha: float, c: float) -> None:
    assert log_capital(boundary(squares, alpha, c), squares, c) == pytest.approx(np.log(1 / alpha), rel=1e-6)


def test_the_capital_is_a_supermartingale_for_the_worst_two_point_values() -> None:
    # E[exp(lambda X - psi (X - guess)^2)] <= 1 for mean 0, any guess within c of the lower end: all two-point laws.
    rng = np.random.default_rng(0)
    for depth, high, share in rng.random((500, 3)):
        guess = share * high
        low = max(-depth, guess - 1)
        x = np.array([low, high])
        chance = np.array([high, -low]) / (high - low)
        assert chance @ np.exp(log_capital(x, (x - guess) ** 2, 1.0)) <= 1 + 1e-9


def test_false_verdicts_are_few_but_some() -> None:
    found = aa_check()
    assert 0 < found["rate"] <= 0.05
    assert found["passed"] is True
    assert aa_check(runs=50, events=50) == aa_check(runs=50, events=50)
    coins = np.random.default_rng(0).integers(0, 2, (1000, 500)) * 2 - 1
    assert 0 < (interleaved_verdicts(coins) != NEVER).mean() <= 0.05
    own = aa_check(runs=200, events=300, values=[0.0, 0.25, 1.0], weight=0.3)
    assert own["rate"] <= 0.05


@pytest.mark.parametrize("wrong", [{"weight": 0}, {"values": []}, {"values": [2.0]}, {"runs": 0}])
def test_the_check_refuses_what_it_cannot_draw(wrong: dict[str, object]) -> None:
    with pytest.raises(Unprocessable):
        aa_check(**wrong)  # type: ignore[arg-type]


def test_a_difference_of_a_twentieth_is_found_within_three_times_the_fixed_horizon() -> None:
    rng = np.random.default_rng(1)
    low, runs = 0.1, 200
    fixed = 1367  # both arms, two-sided 5 %, power 80 %, 0.10 against 0.15
    first = rng.random((runs, 3 * fixed)) < 0.5
    y = (rng.random(first.shape) < np.where(first, low + 0.05, low)).astype(np.float64)
    assert (split_verdicts(y, first) != NEVER).mean() >= 0.8


def test_the_running_mean_is_covered_while_it_drifts() -> None:
    rng = np.random.default_rng(2)
    events, misses = 2000, 0
    effect = 0.4 * np.sin(np.arange(events) / 100)
    truth = np.cumsum(effect) / np.arange(1, events + 1)
    for _ in range(100):
        x = np.where(rng.random(events) < (1 + effect) / 2, 1.0, -1.0)
        sums, missed = Sums(), False
        for t in range(events):
            sums.add(x[t], 0.0)
            if t % 20 == 0:
                low, high = interval(sums, 0.05, 1.0)
                missed = missed or not low <= truth[t] <= high
        misses += missed
    assert misses <= 8
    assert high - low < 0.2


def test_what_is_needed_is_what_it_takes() -> None:
    sums = Sums(200, 10.0, 200.0)
    more = needed(sums, 0.05, 1.0)
    assert more is not None
    assert more > 0
    scale = (200 + more) / 200
    low, _ = interval(Sums(200 + more, 10.0 * scale, 200.0 * scale), 0.05, 1.0)
    assert 0 <= low < 1e-3
    assert needed(Sums(200, 150.0, 200.0), 0.05, 1.0) == 0
    assert needed(Sums(), 0.05, 1.0) is None
    assert needed(Sums(10, 0.0, 5.0), 0.05, 1.0) is None
    assert interval(Sums(), 0.05, 1.0) == (-1.0, 1.0)
