"""The native kernel against its specification in NumPy: the same bits, the same refusals, on whatever comes."""

import json
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedrank.learners.kernel import ascent, elementary, feature_blocks, products, reference, theta

native = pytest.importorskip("feedrank.learners.kernel._native", reason="the native kernel is not built")

NUMBERS = (
    st.floats(-1e100, 1e100) | st.integers(-(2**53), 2**53) | st.sampled_from([0, 0.0, -0.0, 5e-324, 1e-200])
)
NAMES = (
    st.text(min_size=1, max_size=12)
    | st.sampled_from(["a", "b", "\ud800", "über", "\U0001f600", "\x00"])
    | st.sampled_from(["s:a", "s:b", "f:a", "f:x:y", "f:", ":", "\ud800:a", "ü:b"])
)
FEATURES = (
    st.lists(NAMES, max_size=12)
    | st.dictionaries(NAMES, NUMBERS, max_size=12)
    | st.lists(NUMBERS, max_size=8)
)


def as_reference(features):
    if isinstance(features, dict):
        return reference.Features(list(features), np.array(list(features.values()), dtype=np.float64))
    if features and isinstance(features[0], str):
        return reference.Features(features)
    values = np.array(features, dtype=np.float64)
    return reference.Features([str(i) for i in range(len(values))], values)


def bits(array):
    array = np.asarray(array)
    return array.dtype.str, array.shape, array.tobytes()


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
    tables = reference.Table(idf, unit, bias), native.Table(idf, unit, bias)
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
    for kind in (reference, native):
        again = kind.Table(idf, unit, bias)
        again.restore(*tables[1].text(), np.array(tables[0].counts), tables[0].events)
        assert list(again) == list(tables[0])


@given(st.lists(NAMES), st.lists(NAMES), st.booleans())
def test_blocks_grow_and_shrink_alike(first, then, bias):
    both = [
        (kind.Table(bias=bias), kind_of())
        for kind, kind_of in ((reference, feature_blocks.FeatureBlocks), (native, native.FeatureBlocks))
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
        for kind, weights in ((reference, theta.Weights()), (native, native.Weights())):
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


JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=6) | st.sampled_from(["items", "label"]), inner, max_size=4)
    ),
    max_leaves=12,
)


def plain(value):
    """What `loads` read, with the features as Python objects."""
    if isinstance(value, native.Features):
        values = value.values
        return value.names if values is None else dict(zip(value.names, values.tolist(), strict=True))
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, list) else value


def expected(value, items=False):
    """What a plain reader has, with the features as `plain` shows them."""
    if isinstance(value, dict):
        return {
            key: wanted(member)
            if key == "features" and not items and isinstance(member, list | dict)
            else expected(member, items or key == "items")
            for key, member in value.items()
        }
    return [expected(entry, items) for entry in value] if isinstance(value, list) else value


def wanted(features):
    if isinstance(features, dict):
        return {name: float(value) for name, value in features.items()}
    if features and isinstance(features[0], str):
        return list(dict.fromkeys(features))
    return {str(i): float(value) for i, value in enumerate(features)}


@settings(max_examples=150, deadline=None)
@given(JSON, FEATURES, st.booleans(), st.sampled_from([None, 1]))
def test_json_is_read_as_python_reads_it(rest, features, ascii_only, indent):
    document = {"predict": {"rest": rest, "features": features, "items": [{"features": [1]}]}, "n": [rest]}
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent, allow_nan=False)
    line = text.encode("utf-8", "surrogatepass")
    value = native.loads(line)
    unusual = any(0xD800 <= ord(c) < 0xE000 for c in json.dumps(document, ensure_ascii=False)) or '""' in text
    if value is None:
        assert (
            unusual
            or "-0" in text
            or any(len(word.strip("-,[]{}: ")) > 18 for word in text.split())
            or "e" in text
        )
        return
    assert plain(value) == expected(json.loads(line))
    raw = value["predict"]["features"].json
    assert json.loads(raw) == features


@settings(max_examples=150, deadline=None)
@given(FEATURES, st.randoms(use_true_random=False))
def test_damaged_json_is_never_read_as_something_else(features, chance):
    line = bytearray(
        json.dumps({"features": features, "label": "x"}, ensure_ascii=False).encode("utf-8", "replace")
    )
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(line))
        if chance.random() < 0.5:
            line[place] = chance.choice(b'"\\{}[],:0-.eu\x00\x80\xff\xed a')
        else:
            del line[place]
    value = native.loads(bytes(line))
    if value is not None:
        assert plain(value) == expected(json.loads(bytes(line)))


@pytest.mark.parametrize(
    "text",
    [
        '{"features": {"a": 1, "a": 2}}',
        '{"features": {"": 1}}',
        '{"features": [""]}',
        '{"features": {"a": 1e101}}',
        '{"features": {"a": NaN}}',
        '{"features": {"a": true}}',
        '{"features": ["a", 1]}',
        '{"features": [1, "a"]}',
        '{"features": ["\\ud800"]}',
        '{"features": {"a": 01}}',
        '{"features": {"a": 1.}}',
        '{"features": ["a\nb"]}',
        '{"a": 1} x',
        "[1]",
        "",
        '{"a": ' + "[" * 60 + "]" * 60 + "}",
        '{"a": 123456789012345678901}',
    ],
)
def test_what_is_unusual_is_left_to_the_other_reader(text):
    assert native.loads(text.encode()) is None


def test_numbers_are_the_nearest_ones():
    chance = random.Random(3)
    texts = [
        "0.1",
        "1e22",
        "1e23",
        "123456789012345.6",
        "5e-324",
        "2.2250738585072011e-308",
        "9007199254740993.0",
    ]
    texts += [f"{chance.randrange(10**17)}e{chance.randint(-60, 60)}" for _ in range(300)]
    texts += [repr(math.ldexp(chance.random(), chance.randint(-60, 60))) for _ in range(300)]
    for text in texts:
        assert native.loads(f'{{"v": {text}}}'.encode()) == {"v": float(text)}


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
    table = reference.Table()
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
    for kind in (reference, native):
        for parts in wrong:
            other = kind.Table()
            with pytest.raises(ValueError):
                other.restore(*parts, 0)
            assert len(other) == 0


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
