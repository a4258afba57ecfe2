"""The automatic learner's round in the native kernel against its specification in NumPy: the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.learners.kernel import adaptive, calibrate, elementary, reference, theta, trust, welford

native = pytest.importorskip("feedrank.learners.kernel._native", reason="the native kernel is not built")

SEEDS = st.integers(0, 2**32 - 1)


def bits(*arrays):
    return [(np.asarray(a).dtype.str, np.asarray(a).shape, np.asarray(a).tobytes()) for a in arrays]


def statistics(rng, features):
    """Counts, means, squared deviations and logarithms, as some events leave them: many features are new or constant."""
    counts = rng.integers(0, 4, features) * rng.integers(0, 50, features).astype(np.float64)
    means = rng.normal(size=features) * 10.0 ** rng.integers(-6, 7, features) * (counts > 0)
    deviations = rng.integers(0, 2, features) * rng.exponential(size=features) * (counts > 1)
    return np.stack((counts, means, deviations, elementary.log(1.0 + counts)), axis=1)


def instance(rng, features):
    rows = rng.permutation(features)[: rng.integers(1, features + 1)].astype(np.intp)
    raw = rng.normal(size=len(rows)) * 10.0 ** rng.integers(-9, 10, len(rows)) * rng.integers(0, 3, len(rows))
    return rows, raw


@given(SEEDS, st.booleans(), st.booleans(), st.integers(0, 150))
def test_a_vector_is_scaled_to_the_same_bits(seed, bias, idf, events):
    rng = np.random.default_rng(seed)
    parts = statistics(rng, 30)
    parts[rng.random(30) < 0.3, 0] = events
    rows, raw = instance(rng, 30)
    raw = np.where(rng.random(len(rows)) < 0.5, parts[rows, 1], raw)  # the value of all events so far
    rest = rng.normal(size=rng.integers(0, 4))
    ours = welford.scale(rows, raw, rest, parts, int(bias), idf, events)
    assert bits(*native.scale(rows, raw, rest, parts, int(bias), idf, events)) == bits(*ours)


@given(SEEDS, st.integers(0, 1))
def test_an_event_is_counted_to_the_same_bits_and_says_what_was_before(seed, bias):
    rng = np.random.default_rng(seed)
    parts = statistics(rng, 20)
    parts[:3, 0] = 65_533.0, 65_534.0, 1e6  # the last of the logarithms that are kept, and beyond
    rows, raw = instance(rng, 20)
    one, other = parts.copy(), parts.copy()
    before = welford.tally(rows, raw, one, bias)
    assert bits(native.tally(rows, raw, other, bias)) == bits(before)
    assert bits(one) == bits(other)
    assert bits(before) == bits(parts[rows[bias:]])


@given(SEEDS, st.lists(st.sampled_from([10.0, 10.0, 10.0, 25.0, 0.5]), max_size=90))
def test_logarithms_of_counts_climb_to_the_same_bits(seed, mores):
    rng = np.random.default_rng(seed)
    one = np.zeros((9, 5))[:, :4]  # rows that lie apart, as those of the weights
    other = np.zeros((9, 5))[:, :4]
    plain = np.zeros((9, 4))
    for more in mores:
        rows, column = instance(rng, 9)[0], int(rng.integers(4))
        old = welford.recount(one, rows, column, more)
        assert bits(native.recount(other, rows, column, more)) == bits(old)
        assert bits(old) == bits(plain[rows, column])
        plain[rows, column] = elementary.log(elementary.exp(old) + more)
    assert bits(one) == bits(other) == bits(plain)


@given(SEEDS, st.integers(1, 9))
def test_a_step_of_adagrad_has_the_same_bits_and_says_what_was_before(seed, labels):
    rng = np.random.default_rng(seed)
    one = np.zeros((12, 10))[:, :labels], np.zeros((12, 10))[:, :labels]  # rows that lie apart
    other = np.zeros((12, 10))[:, :labels], np.zeros((12, 10))[:, :labels]
    for _ in range(6):
        rows, values = instance(rng, 12)
        miss = rng.normal(size=labels) * rng.integers(0, 2, labels)
        old = adaptive.adapt(*one, rows, values, miss, 0.3)
        assert bits(old) == bits(np.concatenate((other[0][rows], other[1][rows])))
        assert bits(native.adapt(*other, rows, values, miss, 0.3)) == bits(old)
        assert bits(*one) == bits(*other)


@given(SEEDS, st.booleans(), st.integers(1, 4), st.integers(1, 12))
def test_a_round_of_the_pool_has_the_same_bits(seed, sigmoid, experts, labels):
    rng = np.random.default_rng(seed)
    present = rng.random(experts) < 0.8
    prior = np.full(1 + experts, 0.1 / experts)
    prior[0] = 0.9
    doubt = -float(elementary.log(prior).min())
    a = np.where(present, 0.5, 0.0)
    losses = np.zeros(1 + experts)
    w, weights = trust.hedge(prior, present, losses, doubt, 0.0, a)
    state = (a, trust.DAMPING * np.eye(experts), losses, w, weights)
    copy = tuple(part.copy() for part in state)
    gaps = 0.0
    for _ in range(8):
        Z = rng.normal(size=(experts, labels)) * 10.0 ** rng.integers(-3, 4)
        Z[~present] = 0.0  # who has left says nothing
        Y = rng.integers(0, 2, labels).astype(np.float64) if sigmoid else np.eye(labels)[rng.integers(labels)]
        weight, teaches = float(rng.choice([1.0, 0.5, 3.0])), int(rng.random() < 0.8)
        rest = (prior, present, doubt, gaps)
        loss, after = trust.pool_round(Z, Y, weight, sigmoid, teaches, state, *rest)
        assert native.pool_round(Z, Y, weight, sigmoid, teaches, copy, *rest) == (loss, after)
        assert bits(*state) == bits(*copy)
        gaps = after


def test_the_native_round_refuses_what_would_read_beyond_its_arrays():
    parts = np.zeros((3, 4))
    rows, raw = np.array([0, 3]), np.ones(2)
    with pytest.raises(IndexError):
        native.scale(rows, raw, np.empty(0), parts, 0, 1, 1)
    with pytest.raises(IndexError):
        native.tally(rows, raw, parts, 0)
    with pytest.raises(IndexError):
        native.recount(np.zeros((3, 2)), rows, 0, 1.0)
    with pytest.raises(IndexError):
        native.adapt(np.zeros((3, 2)), np.zeros((3, 2)), rows, raw, np.zeros(2), 0.3)
    with pytest.raises(ValueError, match="rows in one piece"):
        native.adapt(np.zeros((2, 3)).T, np.zeros((3, 2)), rows[:1], raw[:1], np.zeros(2), 0.3)
    with pytest.raises(ValueError, match="bias"):
        native.tally(rows[:1], raw[:1], parts, 2)
    state = (np.zeros(2), np.eye(2), np.zeros(2), np.zeros(3), np.zeros(2))
    with pytest.raises(ValueError, match="length"):
        native.pool_round(
            np.zeros((2, 3)), np.zeros(3), 1.0, 0, 1, state, np.ones(3), np.ones(2, bool), 1.0, 0.0
        )


@given(SEEDS, st.integers(1, 5), st.booleans())
def test_naive_bayes_scores_an_instance_to_the_same_bits(seed, labels, known):
    rng = np.random.default_rng(seed)
    kept = theta.Weights(), native.Weights()
    for weights in kept:
        weights.grow(30, labels)
        weights.theta[:] = np.random.default_rng(seed).exponential(size=(30, labels))
    rows, u = instance(rng, 30)
    dense = rng.random(len(rows)) < 0.3
    unseen = np.empty(0) if known else rng.normal(size=3)
    words, events = rng.integers(0, 50, (2, labels + 1)).astype(np.float64)
    ours, theirs = (
        module.word_scores(weights, (rows, u, dense, unseen), words, events, 3.1)
        for module, weights in zip((welford, native), kept, strict=True)
    )
    assert bits(*ours) == bits(*theirs)


@given(SEEDS, st.lists(st.sampled_from([0.0, 1e-9, 0.2, 0.5, 0.51, 0.97, 1.0]), max_size=12))
def test_bits_are_calibrated_to_the_same_bits(seed, numbers):
    rng = np.random.default_rng(seed)
    one = np.stack((rng.exponential(40.0, calibrate.KNOTS), rng.normal(0.0, 3.0, calibrate.KNOTS)))
    other = one.copy()
    for _ in range(3):
        p = np.array(numbers) * rng.choice([1.0, 0.7])
        Y = rng.random(len(p)) < 0.5
        assert bits(native.calibrated_bits(p, other)) == bits(calibrate.calibrated_bits(p, one))
        calibrate.recalibrate_bits(p, Y, one)
        native.recalibrate_bits(p, Y, other)
        assert bits(one) == bits(other)
    never = np.array([0.5, np.nan])
    assert (
        bits(native.calibrated_bits(never, one)) == bits(calibrate.calibrated_bits(never, one)) == bits(never)
    )


# The kernel's exp is never below e^-708, and so no probability is.
@given(st.lists(st.floats(1e-300, 1.0), max_size=6), SEEDS, st.booleans())
def test_probabilities_are_calibrated_to_the_same_bits(numbers, seed, right):
    p = np.array(numbers)
    sums = np.random.default_rng(seed).normal(size=(2, 8))
    assert bits(calibrate.calibrated(p, sums)) == bits(native.calibrated(p, sums))
    one, other = sums.copy(), sums.copy()
    calibrate.recalibrate(max(numbers, default=0.5), right, one)
    native.recalibrate(max(numbers, default=0.5), right, other)
    assert bits(one) == bits(other)


@given(SEEDS)
def test_cells_that_were_kept_can_be_put_back(seed):
    rng = np.random.default_rng(seed)
    rows, u = instance(rng, 12)
    g = rng.normal(size=5) * rng.integers(0, 2, 5)
    x = reference.Vector(rows, u)
    for weights in (theta.Weights(), native.Weights()):
        weights.grow(12, 5)
        weights.theta[:] = rng.normal(size=(12, 5))
        before = weights.theta.copy()
        cells = weights.cells(x, g)
        weights.step(x, g, 1.0)
        weights.cells(x, g, cells)
        assert bits(weights.theta.copy()) == bits(before)
