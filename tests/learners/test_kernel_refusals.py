"""What the native kernel refuses, or leaves to the reader that says what is wrong, changes nothing."""

import math

import numpy as np
import pytest
from kernel_inputs import bits

from feedrank.learners.kernel import table as by_name

native = pytest.importorskip("feedrank.learners.kernel._native", reason="the native kernel is not built")


@pytest.mark.parametrize(
    "features",
    [
        [""],
        {"": 1.0},
        {"a": True},
        {"a": "1"},
        {1: 1.0},
        ["a", 1],
        [1, "a"],
        {"a": 10**400},
        {"a": math.nan},
        "a",
        None,
    ],
)
def test_unusual_features_are_left_to_the_reader_that_says_what_is_wrong(features):
    assert native.read(features) is None


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [[]],
        [[1, 2.5], [-0.0, 1e100]],
        [[True, 1.0]],
        [[1.0], [1.0, 2.0]],
        [[math.nan, 0.0]],
        [[10**400, 0]],
        [[math.inf, 1.0]],
        [["1", 2]],
        [(1.0, 2.0)],
        ([1.0, 2.0],),
        None,
        [None],
    ],
)
def test_a_matrix_of_plain_numbers_is_read_at_once_and_all_else_left_alone(rows):
    width = 0 if rows in ([], [[]]) else 2
    plain = isinstance(rows, list) and all(
        type(row) is list and len(row) == width and {int, float}.issuperset(map(type, row)) for row in rows
    )
    plain = plain and all(abs(number) <= 1e100 for row in rows for number in row)
    matrix = native.matrix(rows, width)
    if plain:
        assert bits(matrix) == bits(np.array(rows, dtype=np.float64).reshape(len(rows), width))
    else:
        assert matrix is None


def test_what_does_not_fit_into_memory_changes_nothing():
    weights = native.Weights()
    weights.grow(3, 2)
    weights.theta[:] = 1.0
    with pytest.raises(MemoryError):
        weights.grow(2**60, 8)
    assert weights.theta.tolist() == [[1.0, 1.0]] * 3


def test_views_stay_valid_when_the_table_grows():
    table, weights = native.Table(idf=True), native.Weights()
    x = table.join(table.look(native.read(["a"])))
    weights.grow(1, 1)
    counts, theta, rows = table.counts, weights.theta, x.rows
    for i in range(1000):
        table.add(f"n{i}")
        weights.grow(len(table), 1 + i // 10)
    del x
    assert (counts.tolist(), theta.tolist(), rows.tolist()) == ([0], [[0.0]], [0])


def test_a_vector_of_another_table_is_refused():
    large, small = native.Table(), native.Table()
    for i in range(50):
        large.add(f"n{i}")
    x = large.look(native.read(["n49"]))
    weights = native.Weights()
    weights.grow(10, 2)
    for call in (lambda: weights.scores(x), lambda: weights.step(x, np.ones(2), 1.0), lambda: small.count(x)):
        with pytest.raises(IndexError):
            call()


def test_a_feature_that_is_in_no_block_is_refused():
    table, weights, own = native.Table(), native.Weights(), native.FeatureBlocks()
    table.add("s:a")
    weights.grow(1, 2)
    own.grow(table)
    one = native.Rounds(table, weights, blocks=own)
    x = native.read(["s:a"])
    assert one.plan(x, 1, 1.0, 1.0, ()) == (True, True, ())
    own.shrink(1, 0)  # the row stays, its block leaves
    with pytest.raises(RuntimeError, match="no round was planned"):
        one.commit()
    one.clear()
    with pytest.raises(IndexError, match="in no block"):
        one.plan(x, 1, 1.0, 1.0, ())


def test_a_snapshot_of_names_that_does_not_fit_is_refused():
    table = by_name.Table()
    for name in ("a", "bc", "d"):
        table.add(name)
    text, ends = table.text()
    zeros = np.zeros(3, dtype=np.int64)
    wrong = [
        (text + b"x", ends, zeros),
        (text, ends, zeros[:2]),
        (b"aaad", np.array([1, 2, 4]).tobytes(), zeros),
        (text, np.array([3, 1, 4]).tobytes(), zeros),
        (b"\xff\xffbd", ends, zeros),
        (text, ends, zeros - 1),
    ]
    for kind in (by_name, native):
        for parts in wrong:
            other = kind.Table()
            with pytest.raises(ValueError):
                other.restore(*parts, 0)
            assert len(other) == 0
