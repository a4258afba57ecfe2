"""Entropic weights against exact sums: carried sums neither overflow nor drift, and new names change nothing."""

import numpy as np
import pytest
from scipy.special import logsumexp

from feedrank.learners.instances import Matrix, Vector
from feedrank.learners.kernel.entropy import TOLERANCE
from feedrank.learners.weights.entropic import Entropic


def exact(weights):
    """log Z by summation over all n coordinates."""
    theta = weights.arrays()["theta"]
    unseen = np.zeros((weights.dimension - weights.features, weights.labels))
    return logsumexp(np.vstack((theta, unseen)), axis=0)


def wander(weights, rng, steps, size, active=3):
    """Random steps on two labels at a time, as the updates take them."""
    for _ in range(steps):
        x = Vector(rng.choice(weights.features, active, replace=False), rng.uniform(0.0, 1.0, active))
        g = np.zeros(weights.labels)
        r, s = rng.choice(weights.labels, 2, replace=False)
        g[r], g[s] = -size, size
        weights.step(x, g, 1.0)


@pytest.mark.parametrize("size", [0.01, 1.0, 40.0])
def test_carried_sums_are_the_exact_sums(size):
    rng = np.random.default_rng(3)
    weights = Entropic(20)
    weights.grow(12, 5)
    for _ in range(10):
        wander(weights, rng, 300, size)
        error = np.abs(weights.log_z[:5] - exact(weights))
        assert (error <= weights.drift[:5]).all(), "the bound that calls for a fresh sum must be one"
        assert (weights.drift[:5] <= TOLERANCE).all()
    x = Vector(np.arange(12), np.ones(12), np.ones(8))
    assert weights.scores(x) == pytest.approx(np.ones(5), abs=1e-9)


def test_sums_stay_exact_when_theta_leaves_the_range_of_exp():
    weights = Entropic(10)
    weights.grow(4, 2)
    x = Vector(np.array([0, 1]), np.ones(2))
    for direction in (1.0, -1.0, -1.0, 1.0):
        for _ in range(100):
            weights.step(x, direction * np.array([-20.0, 20.0]), 1.0)
        assert np.isfinite(weights.log_z).all()
        assert weights.log_z[:2] == pytest.approx(exact(weights), rel=1e-12, abs=1e-9)
    assert np.abs(weights.theta[:2, :2]).max() == 0.0
    assert weights.scores(x) == pytest.approx([0.2, 0.2], rel=1e-9)


@pytest.mark.slow
def test_many_updates_do_not_drift():
    rng = np.random.default_rng(4)
    weights = Entropic(50)
    weights.grow(40, 3)
    fresh = []
    summed = weights._sum_afresh
    weights._sum_afresh = lambda label: (fresh.append(label), summed(label))
    for _ in range(3):
        wander(weights, rng, 50_000, 0.3, active=2)
        assert np.abs(weights.log_z[:3] - exact(weights)).max() <= TOLERANCE
    assert 0 < len(fresh) < 300, "sums are taken afresh, and seldom"


def test_the_scores_are_the_softmax_of_theta():
    rng = np.random.default_rng(5)
    weights = Entropic(9)
    weights.grow(6, 4)
    wander(weights, rng, 50, 1.0)
    theta = np.vstack((weights.arrays()["theta"], np.zeros((3, 4))))
    w = np.exp(theta) / np.exp(theta).sum(axis=0)
    x = rng.uniform(size=9)
    seen = Vector(np.arange(6), x[:6], x[6:])
    assert weights.scores(seen) == pytest.approx(x @ w, rel=1e-12)
    assert weights.contributions(seen).sum(axis=0) == pytest.approx(x @ w, rel=1e-12)
    assert weights.conjugate() == pytest.approx((logsumexp(theta, axis=0) - np.log(9)).sum(), rel=1e-9)


def test_new_features_and_labels_weigh_as_if_they_had_been_there():
    rng = np.random.default_rng(6)
    early, late = Entropic(30), Entropic(30)
    early.grow(20, 9)
    late.grow(5, 2)
    for features, labels in ((5, 2), (11, 2), (11, 7), (20, 9)):
        late.grow(features, labels)
        for _ in range(20):
            x = Vector(rng.choice(features, 3, replace=False), np.ones(3))
            g = rng.normal(size=labels)
            late.step(x, g, 1.0)
            early.step(x, np.append(g, np.zeros(9 - labels)), 1.0)
    for name, array in late.arrays().items():
        assert np.array_equal(array, early.arrays()[name])


def test_n_grows_with_the_features():
    weights = Entropic(3)
    weights.grow(3, 2)
    weights.step(Vector(np.array([0]), np.ones(1)), np.array([-1.0, 1.0]), 1.0)
    weights.grow(8, 3)
    assert weights.dimension == 8
    assert weights.log_z[:3] == pytest.approx(exact(weights), rel=1e-14)
    assert weights.log_z[2] == np.log(8)


def test_restoring_is_exact_and_goes_on_with_the_same_bits():
    rng = np.random.default_rng(7)
    weights = Entropic(4)
    weights.grow(12, 6)
    wander(weights, rng, 100, 2.0)
    again = Entropic(1)
    again.grow(12, 6)
    again.restore(weights.arrays(), weights.counters())
    for one in (weights, again):
        one.grow(14, 7)
        wander(one, np.random.default_rng(8), 100, 2.0)
    assert all(np.array_equal(a, again.arrays()[name]) for name, a in weights.arrays().items())
    assert weights.counters() == again.counters()


def test_lists_are_refused():
    with pytest.raises(TypeError, match="list of items"):
        Entropic(3).scores(Matrix(np.array([0]), np.ones((2, 1))))
