"""The online ridge regression against a direct solve, in every form it takes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedrank.learners.algorithms.quadratic.regression import Regression
from feedrank.learners.algorithms.quadratic.resolvent import Resolvent
from feedrank.learners.instances import Matrix, Vector


class Direct:
    """The batch problem, solved anew: ridge r sqrt(events) on all rows."""

    def __init__(self, d, targets, r, bandwidth):
        self.X, self.Y = np.zeros((0, d)), np.zeros((0, targets))
        self.events, self.r, self.bandwidth = 0, r, bandwidth

    def learn(self, X, Y):
        self.X, self.Y, self.events = np.vstack((self.X, X)), np.vstack((self.Y, Y)), self.events + 1

    def kernel(self, A, B):
        if self.bandwidth is None:
            return A @ B.T
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=-1) / (2 * self.bandwidth**2))

    def predict(self, Z):
        ridge = self.r * np.sqrt(self.events) * np.eye(len(self.X))
        return self.kernel(Z, self.X) @ np.linalg.solve(self.kernel(self.X, self.X) + ridge, self.Y)


def streams(seed, events, d, lists, targets=6):
    """Sparse rows whose features and targets appear over time: (x, dense rows, columns, values)."""
    rng = np.random.default_rng(seed)
    for n in range(events):
        reach = max(1, min(d, 2 * d * (n + 1) // events))
        rows = np.sort(rng.choice(reach, size=min(reach, int(rng.integers(0, 6))), replace=False))
        count = int(rng.integers(1, 5)) if lists else 1
        values = rng.normal(size=(count, len(rows)))
        dense = np.zeros((count, d))
        dense[:, rows] = values
        columns = rng.choice(min(targets, 1 + n // 4), size=1 if n < 4 else 2, replace=False)
        x = Matrix(rows, values) if lists else Vector(rows, values[0])
        yield x, dense, columns, rng.normal(size=(count, len(columns)))


def probe(rng, d, lists):
    Z = rng.normal(size=(3 if lists else 1, d))
    return (Matrix(np.arange(d), Z) if lists else Vector(np.arange(d), Z[0])), Z


CASES = {
    "few features": (8, 90, None, None, "features"),
    "many features": (150, 40, None, None, "rows"),
    "past the budget, few features": (20, 90, None, 25, "features"),
    "gaussian": (12, 40, 2.0, None, "rows"),
}


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_equals_a_direct_solve_at_any_n(case, lists):
    d, events, bandwidth, budget, last = CASES[case]
    ours, direct, rng = (
        Regression(0.3, bandwidth, budget),
        Direct(d, 6, 0.3, bandwidth),
        np.random.default_rng(5),
    )
    for n, (x, dense, columns, values) in enumerate(streams(1, events, d, lists)):
        ours.learn(x, columns, values)
        Y = np.zeros((len(dense), 6))
        Y[:, columns] = values
        direct.learn(dense, Y)
        if n > 20 and n % 4:
            continue
        asked, Z = probe(rng, d, lists)
        result = ours.predict(asked, np.arange(6))
        assert np.abs(result - direct.predict(Z)).max() < 1e-8
        assert ours.exact
    assert lists or ours.form == last


def test_goes_back_to_rows_when_features_overtake_them():
    ours, direct, rng, forms = (
        Regression(0.3, None, 60),
        Direct(100, 1, 0.3, None),
        np.random.default_rng(0),
        [],
    )
    for reach in [2] * 10 + [100] * 60:
        rows = np.sort(rng.choice(reach, size=2, replace=False))
        values = rng.normal(size=2)
        dense = np.zeros((1, 100))
        dense[0, rows] = values
        ours.learn(Vector(rows, values), np.array([0]), np.ones((1, 1)))
        direct.learn(dense, np.ones((1, 1)))
        if ours.exact:
            asked, Z = probe(rng, 100, False)
            assert np.abs(ours.predict(asked, np.array([0])) - direct.predict(Z)).max() < 1e-8
        if forms[-1:] != [ours.form]:
            forms.append(ours.form)
    assert forms == ["rows", "features", "rows", "hashed"]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([None, 1.5]), st.sampled_from([5, 40]), st.booleans())
def test_save_and_load_in_the_middle_changes_no_bit(seed, bandwidth, budget, lists):
    straight, broken = Regression(0.5, bandwidth, budget), Regression(0.5, bandwidth, budget)
    rng = np.random.default_rng(seed)
    for n, (x, _, columns, values) in enumerate(streams(seed, 40, 30, lists)):
        straight.learn(x, columns, values)
        broken.learn(x, columns, values)
        if n % 5 == 2:
            again = Regression(0.5, bandwidth, budget)
            again.restore(broken.arrays(), broken.counters())
            broken = again
        asked, _ = probe(rng, 30, lists)
        assert np.array_equal(straight.predict(asked, np.arange(6)), broken.predict(asked, np.arange(6)))
    assert straight.counters() == broken.counters()
    for name, array in straight.arrays().items():
        assert np.array_equal(array, broken.arrays()[name]), name


def test_nothing_changes_when_landmarks_take_over():
    exact, nystrom = Regression(0.2, 1.0, 1000), Regression(0.2, 1.0, 30)
    rng = np.random.default_rng(0)
    for n in range(31):
        x, value = Vector(np.arange(3), rng.normal(size=3)), rng.normal(size=(1, 1))
        for one in (exact, nystrom):
            one.learn(x, np.array([0]), value)
        asked = Vector(np.arange(3), rng.normal(size=3))
        gap = abs(exact.predict(asked, np.array([0])) - nystrom.predict(asked, np.array([0])))[0, 0]
        assert gap < (1e-9 if n < 30 else 0.05)
    assert nystrom.form == "landmarks"
    assert not nystrom.exact


@pytest.mark.parametrize("bandwidth", [None, 1.0])
def test_memory_is_bounded_by_the_budget(bandwidth):
    ours, rng, sizes = Regression(1.0, bandwidth, 20), np.random.default_rng(3), []
    for _ in range(300):
        rows = np.sort(rng.choice(500, size=4, replace=False))
        ours.learn(Vector(rows, rng.normal(size=4)), np.array([0]), np.ones((1, 1)))
        sizes.append(ours.nbytes())
    assert len(set(sizes[-200:])) == 1
    assert ours.form == ("hashed" if bandwidth is None else "landmarks")


def test_hashed_features_still_learn():
    """A word that decides the target, met among words far beyond the budget, early or late."""
    rng = np.random.default_rng(2)
    for deciding in (3, 700):
        ours = Regression(0.1, None, 64)
        for n in range(600):
            rows = np.unique(np.append(rng.choice(np.arange(4, 700), size=5), deciding if n % 2 else 0))
            ours.learn(Vector(rows, np.ones(len(rows))), np.array([0]), np.array([[float(n % 2)]]))
        assert ours.form == "hashed"
        without, within = (
            ours.predict(Vector(np.array([word]), np.ones(1)), np.array([0]))[0, 0] for word in (0, deciding)
        )
        assert within > without + 0.5


def test_contributions_sum_in_every_linear_form():
    for budget in (10, 1000):
        ours, rng, forms = Regression(0.3, None, budget), np.random.default_rng(1), set()
        for x, _, columns, values in streams(4, 50, 40, False):
            ours.learn(x, columns, values)
            T = rng.normal(size=(3, ours.targets))
            asked, _ = probe(rng, 45, False)
            g = ours.predict(asked, np.arange(ours.targets))[0]
            assert np.allclose(ours.contributions(asked, T).sum(axis=0), T @ g, atol=1e-10)
            forms.add(ours.form)
        assert ("hashed" in forms) == (budget == 10)


def test_a_ridge_below_the_rounding_of_the_data_stays_finite():
    ours, rng = Regression(1e-12, None, None), np.random.default_rng(0)
    row = rng.normal(size=4) * 1e100
    for n in range(30):
        x = Vector(np.arange(4), row if n % 2 else row * (1 + 1e-15))
        ours.learn(x, np.array([0]), np.ones((1, 1)))
        assert np.isfinite(ours.predict(x, np.array([0]))).all()


def test_a_prediction_changes_nothing():
    ours = Regression(1.0)
    for x, _, columns, values in streams(9, 20, 6, False):
        ours.learn(x, columns, values)
        before = {name: array.copy() for name, array in ours.arrays().items()}
        ours.predict(x, np.arange(6))
        assert all(np.array_equal(before[name], array) for name, array in ours.arrays().items())


def test_conjugate_gradients_take_few_steps(monkeypatch):
    """The window keeps the condition number near 1: about six products with P, however long the stream."""
    from feedrank.learners.algorithms.quadratic import resolvent

    products = []
    times = resolvent.times
    monkeypatch.setattr(resolvent, "times", lambda A, F: products.append(1) or times(A, F))
    ours, rng = Resolvent(), np.random.default_rng(0)
    ours.grow(40)
    for n in range(1, 400):
        ours.add(ours.pad(rng.normal(size=(40, 1))), 0.5 * n**0.5)
        products.clear()
        ours.solve(0.5 * n**0.5, ours.pad(rng.normal(size=(40, 1))))
        assert len(products) <= 11
