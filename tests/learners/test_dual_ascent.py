"""The updates against a general solver, closed forms against definitions, exact methods against each other."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize, minimize_scalar

from feedrank.learners.algorithms.dual_ascent.interior import interior_point
from feedrank.learners.algorithms.dual_ascent.mistakes import Relevant
from feedrank.learners.algorithms.dual_ascent.responses import Additive, Logistic, Tilted, root
from feedrank.learners.algorithms.dual_ascent.updates import is_mistake, update_I, update_II, update_III

KINDS = ("additive", "logistic", "tilted")


def tilted(p, values):
    return Tilted(values @ p, values, lambda labels: np.log(p[:, labels]))


def response(kind, k, rng):
    """Scores as they would come from random weights."""
    if kind == "additive":
        return Additive(rng.normal(size=k) * rng.choice([0.1, 1.0, 10.0]), float(rng.uniform(0.1, 5.0)))
    theta = rng.normal(size=(30, k)) * rng.choice([0.1, 1.0, 3.0])
    p = np.exp(theta) / np.exp(theta).sum(axis=0)
    active = int(rng.integers(1, 29))
    if kind == "logistic":
        c = float(rng.choice([1.0, 0.2]))
        return Logistic(c * p[:active].sum(axis=0), c)
    return tilted(p[:active], rng.uniform(0.0, 2.0, size=active))


def reach(answer):
    """Beyond this no margin can be: entropic scores are averages of x."""
    if isinstance(answer, Additive):
        return 1.0
    return answer.c if isinstance(answer, Logistic) else float(answer.values.max())


def rounds(kind, seed, count, sizes=(2, 3, 5, 20, 101)):
    """Random rounds of which update III has something to learn."""
    rng = np.random.default_rng(seed)
    while count:
        k = int(rng.choice(sizes))
        answer = response(kind, k, rng)
        relevant = np.zeros(k, dtype=bool)
        relevant[rng.choice(k, int(rng.integers(1, k)) if rng.random() < 0.5 else 1, replace=False)] = True
        C, gamma = (
            float(rng.choice([0.01, 0.1, 1.0, 5.0, 30.0])),
            float(rng.choice([0.01, 0.1, 0.5, 0.9, 2.0])),
        )
        gamma *= 0.45 * reach(answer)  # a margin that the scores can have
        hinge = gamma + answer.scores[~relevant].max() - answer.scores[relevant].min()
        if hinge > 0:
            count -= 1
            yield answer, relevant, C, gamma, hinge


def gain(answer, alpha, relevant, gamma):
    """What a step adds to the dual objective."""
    return gamma * alpha[relevant].sum() - answer.growth(alpha)


def assert_feasible(alpha, relevant, C):
    assert (alpha[relevant] >= 0).all()
    assert (alpha[~relevant] <= 0).all()
    assert abs(alpha.sum()) <= 1e-9 * C
    assert alpha[relevant].sum() <= C * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_growth_is_the_integral_of_the_scores_and_at_its_derivatives(kind):
    rng = np.random.default_rng(1)
    answer = response(kind, 4, rng)
    assert np.allclose(answer.at(np.zeros(4))[0], answer.scores)
    alpha, h = rng.normal(size=4), 1e-5
    for r in range(4):
        step = h * np.eye(4)[r]
        slope = (answer.growth(alpha + step) - answer.growth(alpha - step)) / (2 * h)
        bend = (answer.at(alpha + step)[0] - answer.at(alpha - step)[0]) / (2 * h)
        value, curvature = answer.at(alpha)
        assert slope == pytest.approx(value[r], rel=1e-6, abs=1e-9)
        assert bend[r] == pytest.approx(curvature[r], rel=1e-6, abs=1e-9)


def test_logistic_is_tilted_on_binary_instances():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(9), size=5).T[:4]
    for c in (1.0, 0.3):
        general, closed = tilted(p, np.full(4, c)), Logistic(c * p.sum(axis=0), c)
        alpha = rng.normal(size=5)
        assert np.allclose(general.at(alpha), closed.at(alpha), rtol=1e-12)
        assert general.growth(alpha) == pytest.approx(closed.growth(alpha), rel=1e-12)
        assert general.pair(0, 3, 0.2 * c, 9.0) == pytest.approx(closed.pair(0, 3, 0.2 * c, 9.0), abs=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_update_II_is_the_best_step_on_the_worst_pair(kind):
    for answer, relevant, C, gamma, hinge in rounds(kind, 3, 30, (2, 3, 5)):
        alpha = update_II(answer, relevant, C, gamma)
        r = np.flatnonzero(relevant)[answer.scores[relevant].argmin()]
        s = np.flatnonzero(~relevant)[answer.scores[~relevant].argmax()]
        direction = np.zeros(len(relevant))
        direction[r], direction[s] = 1.0, -1.0
        assert np.array_equal(alpha, alpha[r] * direction)

        def lost(tau, answer=answer, direction=direction, relevant=relevant, gamma=gamma):
            return -gain(answer, tau * direction, relevant, gamma)

        best = minimize_scalar(lost, bounds=(0.0, C), method="bounded", options={"xatol": 1e-12})
        assert lost(alpha[r]) <= best.fun + 1e-12 * C * hinge
        assert_feasible(alpha, relevant, C)


@pytest.mark.parametrize("kind", KINDS)
def test_update_III_against_a_general_solver(kind):
    for answer, relevant, C, gamma, hinge in rounds(kind, 4, 20, (2, 3, 5)):
        alpha = update_III(answer, relevant, C, gamma)
        assert_feasible(alpha, relevant, C)

        def lost(alpha, answer=answer, relevant=relevant, gamma=gamma):
            return -gain(answer, alpha, relevant, gamma)

        constraints = [
            LinearConstraint(np.ones(len(relevant)), 0, 0),
            LinearConstraint(relevant * 1.0, -np.inf, C),
        ]
        best = minimize(
            lost,
            np.zeros(len(relevant)),
            bounds=[(0, C) if inside else (-C, 0) for inside in relevant],
            constraints=constraints,
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 500},
        )
        assert lost(alpha) <= best.fun + 1e-8 * C * hinge
        # The solver may stop early; it must not be far behind either, or it checks nothing.
        assert lost(alpha) >= best.fun - 1e-3 * C * hinge


@pytest.mark.parametrize("kind", KINDS)
def test_the_exact_update_III_and_the_interior_point_agree(kind):
    for answer, relevant, C, gamma, hinge in rounds(kind, 5, 150):
        exact, solved = update_III(answer, relevant, C, gamma), interior_point(answer, relevant, C, gamma)
        assert solved.gap <= 1e-8
        assert_feasible(exact, relevant, C)
        difference = gain(answer, exact, relevant, gamma) - gain(answer, solved.alpha, relevant, gamma)
        assert abs(difference) <= 1e-8 * C * hinge


def test_the_interior_point_meets_its_gap_on_any_curve():
    worst = 0
    for answer, relevant, C, gamma, _ in rounds("tilted", 6, 60):
        solved = interior_point(answer, relevant, C, gamma)
        assert solved.gap <= 1e-8
        assert_feasible(solved.alpha, relevant, C)
        worst = max(worst, solved.iterations)
    assert worst < 60


@pytest.mark.parametrize("kind", KINDS)
def test_each_update_gains_at_least_what_the_one_before_gains(kind):
    for answer, relevant, C, gamma, hinge in rounds(kind, 7, 50):
        first, second, third = (u(answer, relevant, C, gamma) for u in (update_I, update_II, update_III))
        gains = [gain(answer, alpha, relevant, gamma) for alpha in (second, third)]
        assert gains[0] >= -1e-12
        assert gains[1] >= gains[0] - 1e-8 * C * hinge
        if is_mistake(answer.scores, relevant):
            assert gains[0] >= gain(answer, first, relevant, gamma) - 1e-12 * C * hinge
            assert np.abs(first).sum() == 2 * C
        else:
            assert first is None


@given(
    st.lists(st.floats(-5, 5), min_size=2, max_size=8),
    st.integers(0, 7),
    st.floats(0.01, 10),
    st.floats(0.01, 3),
)
def test_water_fill_meets_the_optimality_conditions(scores, chosen, C, gamma):
    """Labels that move on one side end at one score; the two scores are gamma apart, or all of C is used."""
    scores = np.array(scores)
    relevant = np.arange(len(scores)) == chosen % len(scores)
    answer = Additive(scores, 0.7)
    alpha = update_III(answer, relevant, C, gamma)
    if alpha is None:
        assert scores[relevant].min() - scores[~relevant].max() >= gamma * (1 - 1e-9)
        return
    after, _ = answer.at(alpha)
    low, high = after[relevant].min(), after[~relevant].max()
    moved = ~relevant & (alpha < -1e-9)
    assert np.allclose(after[moved], high, atol=1e-9)
    assert low - high <= gamma + 1e-9
    assert low - high >= gamma - 1e-9 or alpha[relevant].sum() == pytest.approx(C)


@pytest.mark.parametrize("kind", ["logistic", "tilted"])
@pytest.mark.parametrize("update", [update_II, update_III])
def test_a_margin_out_of_reach_takes_all_of_C(kind, update):
    for answer, relevant, C, _, _ in rounds(kind, 8, 20):
        alpha = update(answer, relevant, C, 1.01 * reach(answer))
        assert_feasible(alpha, relevant, C)
        assert alpha[relevant].sum() == pytest.approx(C)


def test_ties_are_mistakes_and_need_a_pair():
    t = np.array([1.0, 1.0, 0.0])
    assert is_mistake(t, np.array([True, False, False]))
    assert not is_mistake(t, np.array([True, True, False]))
    assert not is_mistake(t, np.zeros(3, dtype=bool))
    assert not is_mistake(t, np.ones(3, dtype=bool))


@settings(max_examples=50)
@given(st.lists(st.floats(-2, 2), min_size=4, max_size=4), st.integers(1, 14))
def test_the_searches_of_the_ranking_task_against_all_orders(scores, chosen):
    task, t = Relevant(), np.array(scores)
    y = np.array([chosen >> i & 1 for i in range(4)], dtype=float)
    orders = [np.array(order) for order in itertools.permutations(range(4))]

    def value(order, extra):
        return extra * task.loss(order, y) + task.rep(order, 4) @ t

    assert value(task.augmented(y, t), 1.0) == pytest.approx(max(value(order, 1.0) for order in orders))
    wrong = [value(order, 0.0) for order in orders if task.loss(order, y)]
    assert task.loss(task.rival(y, t), y) == 1.0
    assert value(task.rival(y, t), 0.0) == pytest.approx(max(wrong))


@given(st.floats(-20, 20), st.floats(0.01, 50))
def test_root_finds_the_zero_of_a_steep_curve(zero, steepness):
    def curve(at):
        value = float(np.tanh(steepness * (at - zero)))
        return value, steepness * (1.0 - value**2)

    result = root(curve, -25.0, 25.0)
    assert result == pytest.approx(zero, abs=1e-9)
