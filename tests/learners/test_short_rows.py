"""Short rows of the native kernel's weights: the same bits as one array of all of them, whatever is done to both."""

import math
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedrank.learners import build, dump, load
from feedrank.learners.kernel import theta

native = pytest.importorskip("feedrank.learners.kernel._native", reason="the native kernel is not built")

KINDS = ["grow", "step", "step", "step", "shrink", "put", "wide", "wide", "taken back", "count", "uncount"]
NUMBERS = st.floats(-1e3, 1e3) | st.sampled_from([0.0, -0.0, 5e-324, 1e-200, 1e100, -1e100])

WEIGHTS = st.floats(-1e3, 1e3, width=32).map(lambda number: number + 0.0)  # no weight is ever -0


def bits(array):
    array = np.asarray(array)
    return array.dtype.str, array.shape, array.tobytes()


def vector(rows, values):
    return types.SimpleNamespace(
        rows=np.array(rows, dtype=np.int64), values=np.array(values, dtype=np.float64)
    )


def same(short, whole):
    assert bits(short.theta) == bits(np.ascontiguousarray(whole.theta))
    assert (short.features, short.labels) == (whole.features, whole.labels)


def draw_vector(data, features):
    rows = sorted(data.draw(st.sets(st.integers(0, features - 1), max_size=8))) if features else []
    return vector(rows, [data.draw(NUMBERS) for _ in rows])


@settings(max_examples=150, deadline=None)
@given(st.data(), st.booleans())
def test_whatever_is_done_gives_the_bits_of_whole_rows(data, single):
    short, whole = native.Weights(single, 16), theta.Weights(single)
    for kept in (short, whole):
        kept.grow(0, 0)
    for _ in range(data.draw(st.integers(1, 12))):
        features, labels = whole.features, whole.labels
        kind = data.draw(st.sampled_from(KINDS))
        if kind == "grow":
            size = (
                features + data.draw(st.integers(0, 20)),
                labels + data.draw(st.sampled_from([0, 3, 30, 200])),
            )
            short.grow(*size)
            whole.grow(*size)
        elif kind == "shrink":
            size = data.draw(st.integers(0, features)), data.draw(st.integers(0, labels))
            short.shrink(*size)
            whole.shrink(*size)
        elif kind == "put" and features:
            first = data.draw(st.integers(0, features - 1))
            rows = np.zeros((data.draw(st.integers(0, features - first)), labels), whole.theta.dtype)
            for row in rows if labels else []:
                for column in data.draw(st.sets(st.integers(0, labels - 1), max_size=8)):
                    row[column] = data.draw(WEIGHTS)
            short.put(first, rows)
            whole.put(first, rows)
        elif kind in ("step", "wide", "taken back") and labels:
            x, g = draw_vector(data, features), np.zeros(labels)
            for column in data.draw(
                st.sets(st.integers(0, labels - 1), max_size=4 if kind == "step" else 40)
            ):
                g[column] = data.draw(st.floats(-10.0, 10.0))
            for kept in (short, whole):
                before = kept.cells(x, g) if kind == "taken back" and not single else None
                kept.step(x, g, 0.5)
                if before is not None:
                    kept.cells(x, g, before)
        elif kind in ("count", "uncount") and labels and not single and not (whole.theta < 0.0).any():
            rows, column = draw_vector(data, features).rows, data.draw(st.integers(0, labels - 1))
            old = short.recount(rows, column, 10.0)
            assert bits(old) == bits(whole.recount(rows, column, 10.0))
            for kept in (short, whole) if kind == "uncount" else ():
                kept.set_column(rows, column, old)
        same(short, whole)
        assert bits(short.ends()) == bits(whole.ends())
        x = draw_vector(data, whole.features)
        if np.isfinite(scores := whole.scores(x)).all():
            assert bits(short.scores(x)) == bits(scores)
        assert bits(short.take(x.rows)) == bits(whole.take(x.rows))
        first = data.draw(st.integers(0, whole.features))
        assert bits(short.rows(first, whole.features)) == bits(whole.rows(first, whole.features))


def test_rows_are_long_until_there_are_many_labels_and_then_short():
    weights = native.Weights(brief=16)
    weights.grow(3, 16)
    assert not weights.short_rows
    weights.theta[1, 2] = 7.0
    weights.grow(3, 17)
    assert weights.short_rows
    assert weights.theta[1].tolist() == [0.0, 0.0, 7.0, *[0.0] * 14]
    assert not native.Weights().short_rows


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("algorithm", ["predtron", "dual-ascent"])
def test_a_learner_of_many_labels_is_saved_and_goes_on(algorithm, precision):
    learner = build({"task": "multiclass", "algorithm": algorithm, "precision": precision})
    events = [
        ({"features": {f"w{(i * j) % 97}": 1.0 + j / 7 for j in range(1, 9)}}, {"label": f"l{i * i % 41}"})
        for i in range(300)
    ]
    for instance, truth in events[:200]:
        learner.learn(instance, truth)
    data = dump(learner)
    other = load(data)
    assert dump(other) == data
    for instance, truth in events[200:]:
        assert learner.learn(instance, truth) == other.learn(instance, truth)
        assert learner.predict(instance).ranking == other.predict(instance).ranking
    assert dump(other) == dump(learner)


def test_what_does_not_fit_is_refused():
    weights = native.Weights(brief=16)
    weights.grow(4, 20)
    before = bits(weights.theta)
    for first, rows in (
        (0, np.zeros((1, 19))),
        (4, np.zeros((1, 20))),
        (-1, np.zeros((1, 20))),
        (0, np.zeros((5, 20))),
        (0, np.zeros(20)),
        (0, np.zeros((1, 20), np.float32)),
    ):
        with pytest.raises(ValueError, match="do not fit"):
            weights.put(first, rows)
    for arguments in ((0, 5), (-1, 2), (3, 2)):
        with pytest.raises(IndexError):
            weights.rows(*arguments)
    with pytest.raises(IndexError):
        weights.take(np.array([4]))
    for rows, column in (([4], 0), ([-1], 0), ([0], 20), ([0], -1)):
        with pytest.raises(IndexError):
            weights.recount(np.array(rows), column, 1.0)
        with pytest.raises(IndexError):
            weights.set_column(np.array(rows), column, np.zeros(1))
    with pytest.raises(ValueError, match="type and length"):
        weights.set_column(np.array([0]), 0, np.zeros(2))
    assert bits(weights.theta) == before


def test_rare_words_take_a_line_of_the_cache_each():
    """Freed rows are taken again: what comes and goes needs no more memory than what is there."""
    weights, g = native.Weights(brief=16), np.zeros(64)
    weights.grow(0, 64)
    g[[3, 60]] = 1.0, -1.0
    for _ in range(50):
        weights.grow(100, 64)
        weights.step(vector(range(100), np.ones(100)), g, 1.0)
        assert math.isclose(weights.scores(vector(range(100), np.ones(100))).max(), 100.0)
        weights.shrink(0, 64)
    weights.grow(100, 64)
    assert not weights.theta.any()


def test_a_round_on_fewer_rows_than_the_table_has_is_left_to_the_pieces():
    table, weights = native.Table(), native.Weights(brief=16)
    for i in range(5000):
        table.add(f"n{i}")
    weights.grow(3, 20)
    rounds = native.Rounds(table, weights)
    assert rounds.plan(native.read([f"n{i}" for i in range(0, 5000, 50)]), 0, 1.0, 1.0, ()) is None


def test_a_name_that_teaches_while_it_is_compared_does_no_harm():
    learner = build({"task": "multiclass", "algorithm": "predtron"})

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            if len(learner.features) < 3000:
                for i in range(40):
                    many = [f"{len(learner.features)}-{j}" for j in range(100)]
                    learner.learn({"features": many}, {"label": f"l{i}"})
            return str.__eq__(self, other)

    for i in range(40):
        learner.learn({"features": ["a", f"b{i}"]}, {"label": f"l{i}"})
    learner.predict({"features": ["a", "b1"]})
    learner.learn({"features": [Name("a"), Name("b2")]}, {"label": "l1"})
    other = load(dump(learner))
    assert dump(other) == dump(learner)
