"""The native kernel against its specification in NumPy: the same bits, on whatever comes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_inputs import FEATURES, NAMES, as_reference, bits

from feedrank.learners.kernel import ascent, elementary, feature_blocks, products, theta
from feedrank.learners.kernel import table as by_name

native = pytest.importorskip("feedrank.learners.kernel._native", reason="the native kernel is not built")


def same_vector(one, other):
    assert bits(one.rows) == bits(other.rows)
    assert bits(one.values) == bits(other.values)
    assert bits(one.unseen) == bits(other.unseen)
    assert list(one.unknown) == list(other.unknown)
    assert one.fresh == other.fresh
    assert one.squared_norm() == other.squared_norm()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_elementary_functions_have_the_same_bits(numbers):
    x = np.array(numbers)
    assert bits(native.exp(x)) == bits(elementary.exp(x))
    turns = np.clip(x, -1e6, 1e6)
    assert bits(native.cos_turns(turns)) == bits(elementary.cos_turns(turns))
    positive = np.abs(x[x != 0.0])
    assert bits(native.log(positive)) == bits(elementary.log(positive))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_functions_of_one_number_have_the_bits_of_those_of_an_array(x):
    assert elementary.exp_of(x) == native.exp_of(x) == elementary.exp(np.array([x]))[0]
    if x > 0.0:
        assert elementary.log_of(x) == native.log_of(x) == elementary.log(np.array([x]))[0]


def test_products_have_the_same_bits_and_are_close_to_those_of_blas():
    rng = np.random.default_rng(2)
    for m, K, n in ((1, 1, 1), (3, 0, 2), (5, 40, 1), (17, 33, 9), (2, 200, 3)):
        A, B = rng.standard_normal((m, K)) * 10.0 ** rng.integers(-9, 9, (m, K)), rng.standard_normal((K, n))
        for one, other in (
            (A, B),
            (A, B[:, 0]),
            (A[0], B),
            (A[0], np.asfortranarray(B)),
            (A[0], B[:, 0]),
            (B.T, A.T),
        ):
            ours, theirs = products.times(one, other), native.times(one, other)
            assert bits(ours) == bits(theirs)
            assert np.allclose(ours, one @ other, rtol=1e-9, atol=1e-9 * (np.abs(A).max(initial=1.0)))


def test_sums_and_links_have_the_same_bits():
    rng = np.random.default_rng(4)
    for shape in ((0, 3), (1, 1), (40, 1), (40, 7), (3, 200)):
        M = rng.standard_normal(shape) * 10.0 ** rng.integers(-9, 9, shape)
        for one in (M, np.asfortranarray(M)):
            assert bits(elementary.row_total(one)) == bits(native.row_total(one))
        for x in (M[:, 0], M.T[0], M.reshape(-1)):
            assert elementary.total(x) == native.total(x)
            assert bits(elementary.softmax(x)) == bits(native.softmax(x))
            assert bits(elementary.sigmoid(x)) == bits(native.sigmoid(x))


def test_outer_products_and_inverses_have_the_same_bits_and_are_symmetric():
    rng = np.random.default_rng(3)
    for n, columns in ((1, 1), (6, 2), (40, 3)):
        F = rng.standard_normal((n, columns))
        A, B = np.eye(n), np.eye(n)
        products.add_outer(A, 0.3, F)
        native.add_outer(B, 0.3, F)
        assert bits(A) == bits(B)
        assert bits(A) == bits(A.T.copy())
        ours, theirs = products.sweep(A), native.sweep(A)
        assert (bits(ours[0]), bits(ours[1])) == (bits(theirs[0]), bits(theirs[1]))
        assert bits(ours[0]) == bits(ours[0].T.copy())
        assert np.allclose(ours[0] @ A, np.eye(n), atol=1e-10)
        assert np.allclose(np.sqrt(ours[1]), np.linalg.cholesky(A).diagonal())
    assert (native.sweep(np.array([[1.0, 2.0], [2.0, 1.0]]))[1] > 0.0).tolist() == [True, False]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(FEATURES, st.integers(0, 6), st.booleans()), max_size=25),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(1, 3),
)
def test_a_stream_leaves_the_same_bits_in_both(events, idf, unit, bias, single, update):
    tables = by_name.Table(idf, unit, bias), native.Table(idf, unit, bias)
    weights = theta.Weights(single), native.Weights(single)
    labels = 1
    for features, label, several in events:
        labels = max(labels, label + 1)
        x, z = tables[0].look(as_reference(features)), tables[1].look(native.read(features))
        same_vector(x, z)
        for table, weight in zip(tables, weights, strict=True):
            weight.grow(len(table), labels)
        t, u = weights[0].scores(x), weights[1].scores(z)
        assert bits(t) == bits(u)
        relevant = np.arange(labels) % 2 == label % 2 if several else label
        square = x.squared_norm()
        ours = ascent.ascend(t, relevant, square, update, 1.0, 1.0)
        theirs = native.ascend(u, relevant, square, update, 1.0, 1.0)
        assert (ours[0], ours[2:]) == (theirs[0], theirs[2:])
        assert (ours[1] is None) == (theirs[1] is None)
        x, z = tables[0].join(x), tables[1].join(z)
        same_vector(x, z)
        for table, weight in zip(tables, weights, strict=True):
            weight.grow(len(table), labels)
        if ours[1] is not None:
            assert bits(ours[1]) == bits(theirs[1])
            weights[0].step(x, ours[1], 0.7)
            weights[1].step(z, theirs[1], 0.7)
        tables[0].count(x)
        tables[1].count(z)
        assert bits(weights[0].theta.copy()) == bits(weights[1].theta.copy())
    assert list(tables[0]) == list(tables[1])
    assert tables[0].text() == tables[1].text()
    assert bits(tables[0].counts) == bits(tables[1].counts)
    assert tables[0].nbytes() == tables[1].nbytes()
    assert weights[0].nbytes() == weights[1].nbytes()
    for kind in (by_name, native):
        again = kind.Table(idf, unit, bias)
        again.restore(*tables[1].text(), np.array(tables[0].counts), tables[0].events)
        assert list(again) == list(tables[0])


@given(st.lists(NAMES), st.lists(NAMES), st.booleans())
def test_blocks_grow_and_shrink_alike(first, then, bias):
    both = [
        (kind.Table(bias=bias), kind_of())
        for kind, kind_of in ((by_name, feature_blocks.FeatureBlocks), (native, native.FeatureBlocks))
    ]
    for own, counted in both:
        for name in first:
            own.add(name)
        counted.grow(own)
        rows, count = counted.rows, len(counted)
        assert rows == len(own)
        assert [counted[b] for b in counted.numbers.tolist()] == [
            feature_blocks.block_of(name) for name in own
        ]
        counted.right[:], counted.wrong[:] = 3.0, 2.0
        for name in then:
            own.add(name)
        counted.grow(own)
        counted.right[count:] = 1.0
        with pytest.raises(ValueError):
            counted.shrink(rows, len(counted) + 1)
        counted.shrink(rows, count)
        assert (counted.rows, len(counted), counted.right.sum()) == (
            rows,
            count,
            3.0 * count,
        )
        counted.grow(own)
    (_, one), (_, other) = both
    assert list(one) == list(other)
    assert [one.find(name) for name in one] == [other.find(name) for name in one] == list(range(len(one)))
    assert one.find("no such block") == other.find("no such block") == one.find(1) == other.find(1) == -1
    for array in ("numbers", "right", "wrong"):
        assert bits(getattr(one, array)) == bits(getattr(other, array))


def test_the_sums_of_long_vectors_run_from_the_first_to_the_last_in_both():
    rng = np.random.default_rng(0)
    for features, labels in ((1, 1), (7, 1), (1000, 1), (1000, 2), (333, 7), (300, 101)):
        names = [f"f{i}" for i in range(features)]
        values = rng.standard_normal(features) * 10.0 ** rng.integers(-12, 12, features)
        W = rng.standard_normal((features, labels))
        scores = []
        for kind, weights in ((by_name, theta.Weights()), (native, native.Weights())):
            table = kind.Table(unit=True)
            x = table.join(table.look(kind.Features(names, values)))
            weights.grow(len(table), labels)
            weights.theta[:] = W
            scores.append(weights.scores(x))
        total = np.zeros(labels)
        for row, value in zip(W, table.look(native.Features(names, values)).values, strict=True):
            total = total + value * row
        assert bits(scores[0]) == bits(scores[1]) == bits(total)


@given(st.lists(st.floats(-3, 3) | st.sampled_from([0.0, -0.0, 1.0]), max_size=60), st.integers(0, 70))
def test_the_best_scores_are_the_same_with_ties_to_what_joined_first(scores, count):
    t = np.array(scores)
    labels, values = native.best(t, count)
    assert (labels, values) == ascent.best(t, count)
    assert labels == sorted(range(len(t)), key=lambda i: (-t[i], i))[:count]


def test_many_labels_are_cut_as_a_full_sort_would():
    t = np.round(np.random.default_rng(1).standard_normal(3000), 1)
    for count in (0, 1, 10, 40, 3000):
        expected = sorted(range(len(t)), key=lambda i: (-t[i], i))[:count]
        assert native.best(t, count)[0] == ascent.best(t, count)[0] == expected
