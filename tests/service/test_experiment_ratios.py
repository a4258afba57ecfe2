"""Ratios of totals: sums are enough for the evidence of every ratio, and the interval ends where brute force says."""

from __future__ import annotations

from math import exp, log, log1p

import numpy as np
import pytest

from feedrank.learners.inference.confidence import BETS, WEIGHTS
from feedrank.service.experiments.ratios import RatioArm, RatioArms


def brute(pairs: list[tuple[float, float]], k: float, sign: int) -> float:
    """log of the mixture, bet by bet and unit by unit."""
    c, worth = 1 + k, 0.0
    for bet, weight in zip(BETS.tolist(), WEIGHTS.tolist(), strict=True):
        total_n = total_d = exponent = 0.0
        for count, (n, d) in enumerate(pairs, 1):
            guess = (total_n + 0.5) / count - k * (total_d + 0.5) / count
            x = n - k * d
            exponent += sign * bet * x / c - (-log1p(-bet) - bet) * ((x - guess) / c) ** 2
            total_n, total_d = total_n + n, total_d + d
        worth += weight * exp(exponent)
    return log(worth)


def units(chance: np.random.Generator, count: int, rate: float) -> list[tuple[float, float]]:
    visits = 1 + chance.binomial(4, 0.5, size=count)
    return [(min(chance.binomial(came, rate), 3) / 3, came / 5) for came in visits.tolist()]


def test_the_evidence_is_that_of_every_unit() -> None:
    pairs = units(np.random.default_rng(0), 60, 0.4)
    arm = RatioArm()
    for n, d in pairs:
        arm.add(n, d)
    k = np.array([0.0, 0.3, 0.7, 2.0])
    for sign in (1, -1):
        assert arm.evidence(k, sign).tolist() == pytest.approx(
            [brute(pairs, each, sign) for each in k.tolist()]
        )


def test_the_interval_ends_where_no_ratio_of_the_other_arm_is_left() -> None:
    chance, arms = np.random.default_rng(1), RatioArms.new(2)
    for arm, rate in enumerate((0.6, 0.2)):
        for n, d in units(chance, 400, rate):
            arms.arms[arm].add(n, d)
    lower = arms.lower(0, 1, 0.05)
    assert lower is not None
    assert 0.0 < lower < 0.4 * 5 / 3
    k = np.linspace(0.0, 4.0, 20_001)
    one, other = arms.arms
    goal = log(2 / 0.05)
    assert float((one.evidence(k + lower - 1e-3, 1) + other.evidence(k, -1)).min()) >= goal - 0.05
    assert float((one.evidence(k + lower + 2e-2, 1) + other.evidence(k, -1)).min()) < goal
    (shown,) = arms.intervals(0.05, 3 / 5, 3.0)
    assert shown["sign"] == 1
    assert shown["lower"] == pytest.approx(lower * 3 / 5)


def test_an_arm_is_not_named_while_both_ratios_are_equal() -> None:
    chance, named = np.random.default_rng(2), 0
    for _ in range(40):
        arms = RatioArms.new(2)
        for _ in range(10):
            for arm in (0, 1):
                for n, d in units(chance, 12, 0.3):
                    arms.arms[arm].add(n, d)
            (shown,) = arms.intervals(0.05, 1.0, 1.0)
            named += shown["sign"] != 0
    assert named <= 4
