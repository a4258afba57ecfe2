"""The lower bound of a share of right decisions: always valid, whatever the drift, and near the best for a single look."""

import numpy as np
import pytest

from feedrank.learners.inference.proportions import BETS, least_right, log_evidence


def test_the_evidence_is_the_mixture_of_the_bets():
    for wrong, n, chance in ((0, 10, 0.1), (3, 50, 0.2), (7, 7, 0.5)):
        capital = np.mean([np.exp(bet * wrong) / (1 + chance * np.expm1(bet)) ** n for bet in BETS])
        evidence = log_evidence(np.array([wrong]), np.array([n]), chance)
        assert evidence[0] == pytest.approx(np.log(capital))


def test_in_expectation_a_bet_on_the_truth_wins_nothing():
    """Over all 2^8 outcomes of chances that change: the expected capital against their own mean is at most 1."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        chances = rng.uniform(0, 0.9, 8)
        expected = 0.0
        for outcome in range(256):
            wrong = [(outcome >> i) & 1 for i in range(8)]
            weight = np.prod([p if w else 1 - p for p, w in zip(chances, wrong, strict=True)])
            expected += weight * np.exp(
                log_evidence(np.array([sum(wrong)]), np.array([8]), chances.mean())[0]
            )
        assert expected <= 1 + 1e-12


def test_the_bound_is_seldom_wrong_at_any_time_with_chances_that_drift():
    rng = np.random.default_rng(2)
    steps, runs, failed = np.arange(1, 401), 300, 0
    for _ in range(runs):
        chances = np.clip(0.1 + 0.1 * np.sin(steps / 40 + rng.uniform(0, 6)), 0, 1)
        wrong = (rng.random(len(steps)) < chances).cumsum()
        means = 1 - chances.cumsum() / steps
        failed += bool((least_right(wrong, steps, 0.05) > means + 1e-9).any())
    assert failed <= 0.05 * runs


def test_the_bound_grows_with_evidence_and_is_0_without():
    assert least_right(np.array([0.0]), np.array([0.0]), 0.05)[0] == pytest.approx(0, abs=1e-9)
    n = np.array([50, 100, 1000, 10_000])
    bounds = least_right(0.02 * n, n, 0.05)
    assert (np.diff(bounds) > 0).all()
    assert 0.97 < bounds[-1] < 0.98
    assert least_right(np.array([0.0]), np.array([100.0]), 0.05)[0] > 0.93
