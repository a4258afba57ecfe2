"""Off-policy intervals cover the policy's value at every look, also where the weights are large or the log cannot tell."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.learners.inference.off_policy import BOUNDS, Estimate, LogSupport, RunningGuess, WeighedDraw


@st.composite
def choices(draw: st.DrawFn) -> WeighedDraw:
    count = draw(st.integers(1, 5))
    p = np.array(draw(st.lists(st.floats(0.01, 1), min_size=count, max_size=count)))
    pi = np.array(draw(st.lists(st.floats(0, 1), min_size=count, max_size=count)))
    q = draw(st.lists(st.floats(0, 1), min_size=count, max_size=count))
    total = pi.sum()
    policy = pi / total if total > 0 else np.eye(count)[0]
    chosen, reward = draw(st.integers(0, count - 1)), draw(st.floats(0, 1))
    return WeighedDraw((p / p.sum()).tolist(), chosen, reward, policy.tolist(), q)


@given(st.lists(choices(), min_size=1, max_size=3), st.sampled_from([0.0, 1.0]))
def test_no_value_falls_further_below_its_guess_than_its_bound(draws: list[WeighedDraw], lead: float) -> None:
    estimate = Estimate(lead)
    estimate.add(draws)
    # 1 + lambda (X - g) stays above 0 for every lambda below 1 / c.
    assert (estimate.capital.mantissa > 0).all()
    low, high = estimate.interval(0.05)
    assert -lead <= low <= high <= 1


@pytest.mark.parametrize("q", [[0.4, 0.9, 0.2], None])
@pytest.mark.parametrize("lead", [0.0, 1.0])
def test_the_expectation_over_the_logged_draw_is_the_policys_value(lead, q) -> None:
    p, pi, mean = [0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.2, 0.5, 0.7]
    total = 0.0
    for chosen in range(3):
        for reward in (0.0, 1.0):
            estimate = Estimate(lead)
            draw = WeighedDraw(p, chosen, reward, pi, q)
            if q is None:
                draw = WeighedDraw([p[chosen]], 0, reward, [pi[chosen]])
            estimate.add([draw])
            chance = p[chosen] * (mean[chosen] if reward else 1 - mean[chosen])
            total += chance * estimate.total
    assert total == pytest.approx(np.dot(pi, mean) - lead * np.dot(p, mean))


def test_the_estimates_are_the_published_formulas() -> None:
    """DR (Dudik, Langford and Li 2011) and SNIPS (Swaminathan and Joachims 2015), all rounds at once."""
    rng = np.random.default_rng(4)
    n, items = 200, 5
    p, pi = rng.dirichlet(np.ones(items), n), rng.dirichlet(np.ones(items), n)
    q, rewards = rng.random((n, items)), rng.random((n, items))
    chosen = np.array([rng.choice(items, p=row) for row in p])
    rows = np.arange(n)
    r, w = rewards[rows, chosen], pi[rows, chosen] / p[rows, chosen]
    value, own, lead, support = Estimate(), Estimate(), Estimate(1.0), LogSupport()
    for t in range(n):
        draw = WeighedDraw(p[t].tolist(), int(chosen[t]), float(r[t]), pi[t].tolist(), q[t].tolist())
        value.add([draw])
        lead.add([draw])
        own.add([replace(draw, policy=draw.probabilities)])
        support.add(draw)
    robust = (pi * q).sum(axis=1) + w * (r - q[rows, chosen])
    served = (p * q).sum(axis=1) + r - q[rows, chosen]
    assert value.total / n == pytest.approx(robust.mean())
    assert lead.total / n == pytest.approx((robust - served).mean())
    assert support.snips() == pytest.approx((w * r).sum() / w.sum())
    assert support.effective() == pytest.approx(w.sum() ** 2 / (w**2).sum())
    low, high = lead.interval(0.05)
    assert low <= (robust - served).mean() <= high
    # One sequence of the difference is narrower than two intervals side by side.
    apart = [one - other for one, other in zip(value.interval(0.025), own.interval(0.025)[::-1], strict=True)]
    assert high - low < apart[1] - apart[0]


@pytest.mark.parametrize("floor", [0.3, 0.02])
def test_the_value_is_covered_at_every_look_while_the_logger_learns(floor: float) -> None:
    rng = np.random.default_rng(0)
    items, missed, runs, width = 3, 0, 30, []
    rewards = np.array([0.3, 0.5, 0.6])
    target = [0.0, 0.1, 0.9]
    for _ in range(runs):
        estimate, lead, guess, miss, ahead = Estimate(), Estimate(1.0), RunningGuess(), False, 0.0
        for t in range(300):
            q = [guess(str(a)) for a in range(items)]
            p = np.full(items, floor / items)
            p[int(np.argmax(q))] += 1 - floor
            chosen = int(rng.choice(items, p=p))
            reward = float(rng.random() < rewards[chosen])
            draw = WeighedDraw(p.tolist(), chosen, reward, target, q)
            estimate.add([draw])
            lead.add([draw])
            ahead += float(np.dot(target - p, rewards))
            guess.add(str(chosen), reward)
            if t % 30 == 29:
                low, high = estimate.interval(0.05)
                miss = miss or not low <= np.dot(target, rewards) <= high
                behind, most = lead.interval(0.05)
                miss = miss or not behind <= ahead / (t + 1) <= most
        missed += miss
        width.append(high - low)
    assert missed <= 6  # of 30, for two intervals of 95 %
    assert np.median(width) < 0.9


def test_what_was_never_shown_leaves_the_interval_wide() -> None:
    estimate, support = Estimate(), LogSupport()
    for _ in range(500):
        draw = WeighedDraw([1.0, 0.0], 0, 1.0, [0.0, 1.0], [0.5, 0.5])
        estimate.add([draw])
        support.add(draw)
    low, high = estimate.interval(0.05)
    assert low == 0.0
    assert high == 1.0
    assert (support.effective(), support.snips(), support.unsupported) == (0.0, None, 500.0)
    assert Estimate().interval(0.05) == (0.0, 1.0)
    assert Estimate().mean() is None
    assert Estimate(1.0).interval(0.05) == (-1.0, 1.0)
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
