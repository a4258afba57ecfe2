"""The bounds of the perceptrons for lists hold on separable streams, and the adversary beats everyone."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedrank.learners.algorithms import rates
from feedrank.learners.algorithms.listnet import ListNet
from feedrank.learners.algorithms.minimax import Minimax
from feedrank.learners.algorithms.rates import Paced
from feedrank.learners.algorithms.slam import Slam
from feedrank.learners.instances import Matrix
from feedrank.learners.losses.rankings import ap_loss, ndcg, ndcg_loss
from feedrank.learners.model import Round
from feedrank.learners.theory import list_bounds as theory


def theory_paced(slam, R):
    return Paced(slam, rates.theory(slam.v, R))


class Bare:
    """w <- w - eta X' g around a surrogate: nothing but the algorithm."""

    def __init__(self, surrogate, dimension, eta=1.0):
        self.surrogate, self.w, self.eta = surrogate, np.zeros(dimension), eta

    def predict(self, X):
        return np.argsort(-(X @ self.w), kind="stable")

    def learn(self, X, y):
        g = self.surrogate.direction(Round(X @ self.w, y, Matrix(np.arange(X.shape[1]), X)))
        if g is not None:
            self.w -= self.eta * (X.T @ g)


def run(surrogate, stream, eta=1.0):
    learner, orders = Bare(surrogate, stream[0][0].shape[1], eta), []
    for X, y in stream:
        orders.append(learner.predict(X))
        learner.learn(X, y)
    return orders


def radius(stream):
    return max(np.linalg.norm(X, axis=1).max() for X, _ in stream)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("measure", "cutoff"), [("ndcg", None), ("ndcg", 5), ("ap", None)])
def test_slam_meets_corollary_7_at_the_rate_of_the_theory(seed, measure, cutoff):
    stream = list(theory.separable(seed, 400, items=8, dimension=6, levels=3, gamma=1.5))
    R = radius(stream)
    loss = ap_loss if measure == "ap" else lambda order, y: ndcg_loss(order, y, cutoff)
    places = cutoff or 8
    bound = theory.slam_margin_bound(R, 1.5, places, 1.0 if measure == "ap" else theory.ndcg_v_max(2, places))
    orders = run(theory_paced(Slam(measure, cutoff), R), stream)
    total = sum(loss(order, y) for order, (_, y) in zip(orders, stream, strict=True))
    assert 0 < total <= bound
    fixed = theory.slam_rate(R, places, 1.0 if measure == "ap" else theory.ndcg_v_max(2, places))
    orders = run(Paced(Slam(measure, cutoff), rates.constant(fixed)), stream)
    assert sum(loss(order, y) for order, (_, y) in zip(orders, stream, strict=True)) <= bound


@pytest.mark.parametrize("seed", range(3))
def test_the_minimax_perceptron_makes_no_more_mistakes_than_corollary_11(seed):
    stream = list(theory.separable(seed, 800, gamma=0.5))
    bound = theory.minimax_margin_bound(radius(stream), 0.5)
    mistakes = sum(
        ndcg_loss(order, y) > 0 for order, (_, y) in zip(run(Minimax(), stream), stream, strict=True)
    )
    assert 0 < mistakes <= bound


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.floats(0.1, 5.0))
def test_theorem_10_holds_for_any_ranker_on_any_data(seed, size):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=4)
    w *= size / np.linalg.norm(w)
    stream = []
    for _ in range(40):
        X = rng.normal(size=(6, 4))
        stream.append((X, np.clip(np.round(X @ w / size + 0.5 * rng.normal(size=6)), 0, 2)))
    loss = surrogate = 0.0
    for order, (X, y) in zip(run(Minimax(), stream), stream, strict=True):
        cost = ndcg_loss(order, y)
        loss += cost
        if cost > 0:
            s = X @ w
            surrogate += max(max(0.0, 1 + s[j] - s[i]) for i in range(6) for j in range(6) if y[i] > y[j])
    assert loss <= theory.minimax_bound(radius(stream), size, surrogate) + 1e-9


def test_minimax_does_not_depend_on_its_rate_and_slam_does():
    stream = list(theory.separable(3, 60, gamma=0.3))
    alike = [run(Minimax(), stream, eta) for eta in (1.0, 0.125, 64.0)]
    assert all(
        np.array_equal(a, b) for one, other in pairwise(alike) for a, b in zip(one, other, strict=True)
    )
    few, many = run(Slam(), stream, 2.0**-10), run(Slam(), stream, 2.0**4)
    assert any(not np.array_equal(a, b) for a, b in zip(few, many, strict=True))


@pytest.mark.parametrize(
    "surrogate",
    [Slam(), Slam("ap"), Paced(Slam(), rates.scale_free), Minimax(), Paced(ListNet(), rates.scale_free)],
)
@pytest.mark.parametrize(("measure", "items"), [("ndcg", 2), ("ndcg", 7), ("ap", 5)])
def test_nobody_beats_the_adversary(surrogate, measure, items):
    R, gamma, d = 2.0, 0.5, 40
    learner = Bare(surrogate, d)
    fooled = theory.adversary(
        learner.predict, learner.learn, R=R, gamma=gamma, dimension=d, items=items, measure=measure
    )
    assert len(fooled.rounds) == d - 1
    assert fooled.loss >= theory.lower_bound(R, gamma, d, measure) - 1e-9 > 0
    assert np.linalg.norm(fooled.ranker) <= 1 + 1e-12
    for X, y in fooled.rounds:
        assert np.linalg.norm(X, axis=1).max() <= R
        s = X @ fooled.ranker
        assert s[y > 0].min() - s[y == 0].max() == pytest.approx(gamma)


def test_minimax_stays_under_its_bound_against_the_adversary_too():
    R, gamma, d = 3.0, 0.6, 1000
    learner = Bare(Minimax(), d)
    fooled = theory.adversary(learner.predict, learner.learn, R=R, gamma=gamma, dimension=d, items=6)
    assert len(fooled.rounds) == 99  # 4 R^2 / gamma^2 - 1
    assert theory.lower_bound(R, gamma, d) - 1e-9 <= fooled.loss <= theory.minimax_margin_bound(R, gamma)


def test_the_separable_stream_has_the_margin_it_promises():
    ranker = np.random.default_rng(5).normal(size=20)
    ranker /= np.linalg.norm(ranker)
    for X, y in theory.separable(5, 50, gamma=0.25):
        s = X @ ranker
        gaps = [s[i] - s[j] for i in range(20) for j in range(20) if y[i] > y[j]]
        assert min(gaps) >= 0.25 - 1e-12


def test_figure_1_both_perceptrons_go_to_one_and_listnet_goes_slowly():
    stream = list(theory.separable(1, 600))
    means, late = {}, {}
    for name, surrogate in (
        ("slam", Paced(Slam(), rates.scale_free)),
        ("minimax", Minimax()),
        ("listnet", Paced(ListNet(), rates.scale_free)),
    ):
        orders = run(surrogate, stream)
        values = [ndcg(order, y, 10) for order, (_, y) in zip(orders, stream, strict=True)]
        means[name], late[name] = np.mean(values), np.mean(values[-100:])
    assert min(means["slam"], means["minimax"]) > means["listnet"]
    assert min(late["slam"], late["minimax"]) > 0.997 > late["listnet"]


@pytest.mark.parametrize("surrogate", [Paced(Slam(), rates.scale_free), theory_paced(Slam(), 10.0)])
def test_one_level_lists_do_not_disturb_the_rates(surrogate):
    learner = Bare(surrogate, 3)
    learner.learn(np.ones((4, 3)), np.ones(4))
    assert not learner.w.any()
    learner.learn(np.zeros((2, 3)), np.array([0.0, 1.0]))
    assert not learner.w.any()
