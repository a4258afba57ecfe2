"""Off-policy intervals cover the policy's value at every look, also where the weights are large or the log cannot tell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.learners.inference.off_policy import BOUNDS, LoggedChoice, RunningGuess, ValueEstimate


@st.composite
def choices(draw: st.DrawFn) -> tuple[LoggedChoice, list[float], list[float]]:
    count = draw(st.integers(1, 5))
    p = np.array(draw(st.lists(st.floats(0.01, 1), min_size=count, max_size=count)))
    pi = np.array(draw(st.lists(st.floats(0, 1), min_size=count, max_size=count)))
    q = draw(st.lists(st.floats(0, 1), min_size=count, max_size=count))
    total = pi.sum()
    policy = pi / total if total > 0 else np.eye(count)[0]
    chosen, reward = draw(st.integers(0, count - 1)), draw(st.floats(0, 1))
    return LoggedChoice((p / p.sum()).tolist(), chosen, reward), policy.tolist(), q


@given(choices())
def test_no_value_falls_further_below_its_guess_than_its_bound(
    choice: tuple[LoggedChoice, list[float], list[float]],
) -> None:
    estimate = ValueEstimate()
    estimate.add(*choice)
    # 1 + lambda (X - g) stays above 0 for every lambda below 1 / c.
    assert (estimate.capital.mantissa > 0).all()
    low, high = estimate.interval(0.05)
    assert 0 <= low <= high <= 1


def test_the_expectation_over_the_logged_draw_is_the_policys_value() -> None:
    p, pi, q, mean = [0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.4, 0.9, 0.2], [0.2, 0.5, 0.7]
    total = 0.0
    for chosen in range(3):
        for reward in (0.0, 1.0):
            estimate = ValueEstimate()
            estimate.add(LoggedChoice(p, chosen, reward), pi, q)
            chance = p[chosen] * (mean[chosen] if reward else 1 - mean[chosen])
            total += chance * estimate.total
    assert total == pytest.approx(np.dot(pi, mean))


@pytest.mark.parametrize("floor", [0.3, 0.02])
def test_the_value_is_covered_at_every_look_while_the_logger_learns(floor: float) -> None:
    rng = np.random.default_rng(0)
    items, missed, runs, width = 3, 0, 30, []
    rewards = np.array([0.3, 0.5, 0.6])
    target = [0.0, 0.1, 0.9]
    for _ in range(runs):
        estimate, guess, miss = ValueEstimate(), RunningGuess(), False
        for t in range(300):
            q = [guess(str(a)) for a in range(items)]
            p = np.full(items, floor / items)
            p[int(np.argmax(q))] += 1 - floor
            chosen = int(rng.choice(items, p=p))
            reward = float(rng.random() < rewards[chosen])
            estimate.add(LoggedChoice(p.tolist(), chosen, reward), target, q)
            guess.add(str(chosen), reward)
            if t % 30 == 29:
                low, high = estimate.interval(0.05)
                miss = miss or not low <= np.dot(target, rewards) <= high
        missed += miss
        width.append(high - low)
    assert missed <= 4
    assert np.median(width) < 0.9


def test_what_was_never_shown_leaves_the_interval_wide() -> None:
    estimate = ValueEstimate()
    for _ in range(500):
        estimate.add(LoggedChoice([1.0, 0.0], 0, 1.0), [0.0, 1.0], [0.5, 0.5])
    low, high = estimate.interval(0.05)
    assert low == 0.0
    assert high == 1.0
    assert estimate.effective() == 0.0
    assert ValueEstimate().interval(0.05) == (0.0, 1.0)
    assert ValueEstimate().mean() is None
    assert len(BOUNDS) == 2


def test_guesses_are_means_that_start_at_a_half() -> None:
    guess = RunningGuess()
    assert guess("a") == 0.5
    for _ in range(50):
        guess.add("a", 1.0)
        guess.add("b", 0.0)
    assert guess("a") > 0.95
    assert guess("b") < 0.05
    assert 0.4 < guess("new") < 0.6
