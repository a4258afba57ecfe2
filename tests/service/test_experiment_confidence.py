"""The watch counts few false verdicts, but some, and finds a true difference with little traffic."""

import numpy as np
import pytest

from feedrank.service.contract.faults import Unprocessable
from feedrank.service.experiments.watch import NEVER, aa_check, interleaved_verdicts, split_verdicts


def test_false_verdicts_are_few_but_some() -> None:
    checked = aa_check(runs=1000, events=600)
    assert 0 < checked["rate"] <= 0.05
    assert checked["passed"] is True
    assert aa_check(runs=50, events=50) == aa_check(runs=50, events=50)
    coins = np.random.default_rng(0).integers(0, 2, (1000, 400)) * 2 - 1
    assert 0 < (interleaved_verdicts(coins) != NEVER).mean() <= 0.05
    own = aa_check(runs=200, events=300, values=[0.0, 0.25, 1.0], weight=0.3)
    assert own["rate"] <= 0.05


@pytest.mark.parametrize("wrong", [{"weight": 0}, {"values": []}, {"values": [2.0]}, {"runs": 0}])
def test_the_check_refuses_what_it_cannot_draw(wrong: dict[str, object]) -> None:
    with pytest.raises(Unprocessable):
        aa_check(**wrong)  # type: ignore[arg-type]


def test_a_difference_of_a_twentieth_takes_little_more_than_the_fixed_horizon() -> None:
    rng = np.random.default_rng(1)
    low, runs = 0.1, 120
    fixed = 1367  # both arms, two-sided 5 %, power 80 %, 0.10 against 0.15
    first = rng.random((runs, 3 * fixed)) < 0.5
    y = (rng.random(first.shape) < np.where(first, low + 0.05, low)).astype(np.float64)
    verdicts = split_verdicts(y, first)
    assert np.median(verdicts) <= 1.6 * fixed
    assert (verdicts != NEVER).mean() >= 0.8


def test_what_was_known_before_saves_at_least_half_of_the_traffic() -> None:
    rng = np.random.default_rng(2)
    runs, units = 40, 3000
    first = rng.random((runs, units)) < 0.5
    taste = np.clip(rng.normal(0.5, 0.2, first.shape), 0, 1)
    y = np.clip(taste + rng.normal(0, 0.08, first.shape) + 0.04 * first, 0, 1)
    x = np.clip(taste + rng.normal(0, 0.08, first.shape), 0, 1)
    plain, adjusted = split_verdicts(y, first), split_verdicts(y, first, x=x)
    assert np.median(adjusted) <= np.median(plain) / 2
    equal = np.where(first, np.clip(y - 0.04, 0, 1), y)
    assert (split_verdicts(equal, first, x=x) != NEVER).mean() <= 0.1
