"""The list learners as a user builds them: rates, scales, long lists, labels, margins."""

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from feedrank.learners import InputError, InstanceError, SpecError, TruthError, build, dump, kernel
from feedrank.learners.instances import ItemList, read_items
from feedrank.learners.theory import list_bounds as theory

ALGORITHMS = ["slam", "minimax-perceptron", "listnet"]


def item_list(X):
    return ItemList.dense([str(i) for i in range(len(X))], X)


def orders(spec, stream, scale=1.0):
    """The ranking before each round of a stream, by the learner of a spec."""
    learner, result = build({"task": "subset-ranking", **spec}), []
    for X, y in stream:
        result.append([name for name, _ in learner.predict(item_list(scale * X)).ranking])
        learner.learn(item_list(scale * X), {"relevance": y})
    return result


STREAM = list(theory.separable(7, 60, items=12, dimension=8, levels=3))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("scale", [1000.0, 1 / 1024])
def test_defaults_do_not_see_the_scale_of_the_features(algorithm, scale):
    assert orders({"algorithm": algorithm}, STREAM, scale) == orders({"algorithm": algorithm}, STREAM)


def test_a_fixed_rate_does_see_it_and_matters_to_slam():
    fixed = {"algorithm": "slam", "learning_rate": 0.05}
    assert orders(fixed, STREAM, 1024.0) != orders(fixed, STREAM)
    assert orders({**fixed, "learning_rate": 5.0}, STREAM) != orders(fixed, STREAM)


def test_the_rate_of_the_theory_needs_R_and_keeps_the_bound():
    spec = {"task": "subset-ranking", "algorithm": "slam", "measure": "ap", "learning_rate": "theory"}
    with pytest.raises(SpecError) as refused:
        build(spec)
    assert refused.value.pointer == "/R"
    stream = list(theory.separable(2, 200, items=6, dimension=4, levels=2, gamma=2.0))
    R = max(np.linalg.norm(X, axis=1).max() for X, _ in stream)
    learner = build({**spec, "R": R})
    loss = sum(learner.learn(item_list(X), {"relevance": y}).loss for X, y in stream)
    assert 0 < loss <= theory.slam_margin_bound(R, 2.0, 6, 1.0)
    with pytest.raises(SpecError):
        build({"task": "subset-ranking", "algorithm": "slam", "R": 1.0})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_named_sparse_and_dense_features_teach_the_same(algorithm):
    rng = np.random.default_rng(0)
    spec = {"task": "subset-ranking", "algorithm": algorithm}
    dense, thin = build(spec), build(spec)
    for _ in range(10):
        X = rng.random((6, 40)) * (rng.random((6, 40)) < 0.1)
        y, ids, names = rng.integers(0, 3, 6).astype(float), list("abcdef"), [str(i) for i in range(40)]
        one = dense.learn(ItemList(ids, names, X), {"relevance": y})
        other = thin.learn(ItemList(ids, names, sparse.csr_array(X)), {"relevance": y})
        assert one.loss == pytest.approx(other.loss, abs=1e-12)
    probe = {"items": [{"id": i, "features": {str(n): 1}} for n, i in enumerate("abcdef")]}
    for (name, score), (same, close) in zip(
        dense.predict(probe).ranking, thin.predict(probe).ranking, strict=True
    ):
        assert (name, score) == (same, pytest.approx(close, abs=1e-12))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_ten_thousand_items_are_routine(algorithm):
    rng = np.random.default_rng(2)
    learner = build({"task": "subset-ranking", "algorithm": algorithm, "normalize": "list"})
    X, w = rng.random((10_000, 20)), rng.normal(size=20)
    y = np.digitize(X @ w, np.quantile(X @ w, [0.5, 0.8, 0.95, 0.99])).astype(float)
    first = learner.learn(item_list(X), {"relevance": y}).loss
    for _ in range(20):
        last = learner.learn(item_list(X), {"relevance": y}).loss
    assert last < first


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_labels_are_ranked_as_items_are(algorithm):
    learner = build({"task": "label-ranking", "algorithm": algorithm})
    for _ in range(20):
        learner.learn({"features": {"x": 1}}, {"relevance": {"a": 2, "b": 1, "c": 0}})
        learner.learn({"features": {"z": 1}}, {"relevance": {"c": 2, "b": 1, "a": 0}})
    assert [name for name, _ in learner.predict({"features": {"x": 1}}).ranking] == ["a", "b", "c"]
    assert [name for name, _ in learner.predict({"features": {"z": 1}}).ranking] == ["c", "b", "a"]


@pytest.mark.parametrize("cutoff", [None, 1, 2, 9])
def test_the_margin_is_the_smallest_gap_that_would_change_the_top(cutoff):
    learner = build({"task": "subset-ranking", "algorithm": "slam", "cutoff": cutoff, "learning_rate": 1.0})
    for X, y in STREAM:
        learner.learn(item_list(X), {"relevance": y})
    result = learner.predict(item_list(STREAM[0][0]))
    gaps = [a - b for (_, a), (_, b) in pairwise(result.ranking)]
    assert result.margin == pytest.approx(min(gaps[:cutoff]))


def test_average_precision_has_no_cutoff():
    for algorithm in ("slam", "minimax-perceptron"):
        with pytest.raises(SpecError) as refused:
            build({"task": "subset-ranking", "algorithm": algorithm, "measure": "ap", "cutoff": 3})
        assert refused.value.pointer == "/cutoff"


def test_the_preset_is_at_home_with_raw_features():
    """Features from 0 to 10^7 of which the small one carries the grade."""
    rng = np.random.default_rng(3)
    learner = build({"task": "subset-ranking"})
    losses = []
    for _ in range(200):
        y = rng.integers(0, 3, 15).astype(float)
        X = np.column_stack([rng.random(15) * 1e7, 0.01 * y + 0.004 * rng.random(15), rng.random(15) * 1e4])
        losses.append(learner.learn(item_list(X), {"relevance": y}).loss)
    assert np.mean(losses[-50:]) < 0.02 < np.mean(losses[:3])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_grades_of_thirty_and_more_stay_finite(algorithm):
    learner = build({"task": "subset-ranking", "algorithm": algorithm})
    items = [{"id": name, "features": {name: 1.0}} for name in "abcd"]
    for _ in range(5):
        learner.learn({"items": items}, {"relevance": {"a": 1, "b": 2000, "c": 30}})
    ranking = learner.predict({"items": items}).ranking
    assert all(np.isfinite(score) for _, score in ranking)
    assert ranking[0][0] == "b"


def test_grades_as_an_array_are_the_grades_by_name():
    X = np.random.default_rng(1).random((4, 3))
    named, listed = build({"task": "subset-ranking"}), build({"task": "subset-ranking"})
    grades = np.array([0, 2, 1, 0])
    named.learn(item_list(X), {"relevance": {str(i): int(grade) for i, grade in enumerate(grades)}})
    listed.learn(item_list(X), {"relevance": grades})
    assert dump(named) == dump(listed)
    assert listed.learn(item_list(X), {"relevance": grades}, served={"ranking": list("0123")}).served_loss > 0
    for wrong in (
        np.zeros(3),
        np.array([0, 1, np.nan, 0]),
        np.array([0, -1, 0, 0]),
        np.zeros((4, 1)),
        np.array(list("abcd")),
    ):
        with pytest.raises(TruthError):
            listed.learn(item_list(X), {"relevance": wrong})


rows = st.lists(
    st.tuples(st.floats(-5, 5), st.integers(-3, 3)).map(lambda pair: {"a": pair[0], "b": pair[1]}),
    min_size=2,
    max_size=5,
)


@given(rows)
def test_features_written_in_another_order_make_the_same_list(features):
    turned = [features[0], *({"b": row["b"], "a": row["a"]} for row in features[1:])]
    plain = [list(row.values()) for row in features]
    read = [
        read_items([{"id": str(i), "features": row} for i, row in enumerate(version)])
        for version in (features, turned, plain)
    ]
    assert read[0].names == read[1].names == ["a", "b"]
    assert all(np.array_equal(one.values, read[0].values) for one in read)


@pytest.mark.parametrize("bad", ["1", True, None, float("nan"), 1e101, 10**400])
def test_a_bad_number_is_pointed_at_in_lists_that_are_read_in_one_go(bad):
    for features, place in (({"a": 1.0, "b": bad}, "b"), ([1.0, bad], "1")):
        with pytest.raises(InstanceError) as refused:
            read_items([{"id": "x", "features": type(features)(features)}, {"id": "y", "features": features}])
        assert refused.value.pointer == f"/items/0/features/{place}"


def test_the_example_of_the_page_runs_and_says_what_it_prints(capsys):
    page = (Path(__file__).parents[2] / "docs" / "lists.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    exec(compile(block, "docs/lists.md", "exec"), {})
    assert capsys.readouterr().out.strip() == block.strip().rpartition("# ")[2]


@pytest.mark.parametrize("algorithm", ["slam", "listnet"])
@pytest.mark.parametrize("scale", [0.0, 1e-160, 1e-90, 1e90, 1e100])
def test_features_of_any_size_keep_the_scores_finite(algorithm, scale):
    learner = build({"task": "subset-ranking", "algorithm": algorithm})
    for X, y in STREAM[:5]:
        learner.learn(item_list(np.clip(X, -1, 1) * scale), {"relevance": y})
    for probe in (scale, 1.0):
        ranking = learner.predict(item_list(np.clip(STREAM[6][0], -1, 1) * probe)).ranking
        assert all(np.isfinite(score) for _, score in ranking)


@pytest.mark.parametrize(
    ("grades", "y"),
    [
        ({"a": 1, "c": 2.5}, [1.0, 0.0, 2.5]),
        ({}, [0.0, 0.0, 0.0]),
        ({"a": True}, None),
        ({"a": -1}, None),
        ({"a": float("nan")}, None),
        ({"a": 10**400}, None),
        ({"d": 1}, None),
        ({1: 1}, None),
        ([1], None),
    ],
)
def test_plain_grades_are_read_in_the_order_of_the_list(grades, y):
    got = kernel.listed_grades(grades, {"a": 0, "b": 1, "c": 2}, 1e100)
    assert (None if got is None else got.tolist()) == y


def test_columns_are_refused_whatever_came_before():
    learner = build({"task": "subset-ranking"})
    for columns in (["x", "x"], ["x", ""], ["x", 1], ["x", ["y"]], [*map(str, range(1100)), "0"]):
        for _ in range(2):
            with pytest.raises(InputError):
                learner.predict({"items": {"ids": ["a"], "columns": columns, "rows": [[0.0] * len(columns)]}})
