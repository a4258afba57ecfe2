"""The automatic learner on lists: its formulas, its bounds, both kernels, what a click says, and what fails."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedrank.learners import ItemList, build, dump, fingerprint, load
from feedrank.learners.algorithms.auto import list_pool
from feedrank.learners.algorithms.auto.list_pool import ListPool, gains_of
from feedrank.learners.kernel import lists
from feedrank.learners.lessons import skip_above
from feedrank.learners.losses.rankings import discounts, ndcg_loss

try:
    from feedrank.learners.kernel import _native as native
except ImportError:
    native = None

SPEC = {"task": "subset-ranking"}


def listed(X):
    return ItemList.dense([str(i) for i in range(len(X))], X)


def stream(seed, rounds=30, items=12, features=6):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=features)
    for _ in range(rounds):
        X = rng.normal(size=(items, features))
        t = X @ w + rng.normal(size=items)
        yield X, np.digitize(t, np.quantile(t, [0.5, 0.8, 0.95])).astype(float)


def taught(spec, seed=0, **sizes):
    learner = build(spec)
    for X, y in stream(seed, **sizes):
        learner.learn(listed(X), {"relevance": y})
    return learner


def ranks(column):
    below = (column[:, None] > column).sum(axis=1)
    above = (column[:, None] < column).sum(axis=1)
    return (below - above) / (2 * (len(column) - 1))


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 20, 161, 400]))
@settings(max_examples=25)
def test_an_input_is_a_value_and_a_centred_rank(seed, items):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(items, 4)) * 10.0 ** rng.integers(-3, 4), rng.integers(0, 6))
    C = lists.list_inputs(X)
    assert np.allclose(C[:, 0::2], X - X.mean(axis=0))
    single = X.astype(np.float32)
    assert np.allclose(C[:, 1::2], np.stack([ranks(single[:, j]) for j in range(4)], axis=1), atol=1e-15)


def test_the_weights_solve_the_equations_of_second_order():
    """(kappa A + lambda) w + r is what b was made of: kappa H w + C' d of every list."""
    learner = build(SPEC)
    model = learner.model
    b, A = np.zeros((12, 3)), np.zeros((12, 12))
    for X, y in stream(3):
        before = np.zeros((12, 3))
        before[: len(model.state.w)] = model.state.w[:12, :3]
        scaled = (X - X.min(axis=0)) / np.ptp(X, axis=0)
        C = lists.list_inputs(scaled)
        s, G, m = C @ before, 2.0**y - 1, len(X)
        W = np.maximum(G[:, None] - G, 0)
        pairs = W / W.sum() / (1 + np.exp(s[:, 2][:, None] - s[:, 2]))
        p = np.exp(s[:, 1]) / np.exp(s[:, 1]).sum()
        d = np.stack(
            [(G - G.mean() - s[:, 0]) / m, G / G.sum() - p, pairs.sum(axis=1) - pairs.sum(axis=0)], axis=1
        )
        H = C.T @ C / m
        A += H
        b += (H @ before) * lists.KAPPA + C.T @ d
        learner.learn(listed(X), {"relevance": y})
        state = model.state
        left = (A @ state.w[:12, :3]) * lists.KAPPA + state.w[:12, :3] * lists.RIDGE + state.r
        assert np.allclose(left, b, atol=1e-9)
        assert np.allclose(state.A, A)
    assert np.abs(model.state.r).max() < 0.05 * np.abs(b).max()  # two steps a list keep up


def test_a_hedged_member_loses_at_most_the_bound_more_than_the_best():
    for seed in range(6):
        certificate = taught(SPEC, seed, rounds=60).certificate
        assert certificate["loss"] <= certificate["best_loss"] + certificate["bound"] + 1e-9
        assert certificate["regret"] == certificate["loss"] - certificate["best_loss"]
        assert "not bounded" in certificate["theorem"]


def test_the_losses_of_the_members_are_those_of_their_orders():
    rng = np.random.default_rng(4)
    for count in (3, 10, 40):
        E, y = np.round(rng.normal(size=(6, count)), 1), rng.integers(0, 3, count).astype(float)
        y[0] = 2
        got = lists.top_losses(E, gains_of(y), discounts(min(10, count)))
        expected = [ndcg_loss((-row).argsort(kind="stable"), y, 10) for row in E]
        assert got == pytest.approx(expected)


@pytest.mark.parametrize("count", [2, 30, 700])
def test_pairs_push_as_their_derivative_says(count):
    rng = np.random.default_rng(count)
    s, G = rng.normal(size=count), rng.integers(0, 4, count).astype(float)
    G[0] += 1
    stride = -(-count // lists.PAIRED)
    apart = np.arange(count)[:, None] - np.arange(count)
    W = np.maximum(G[:, None] - G, 0) * (apart % stride == 0)
    pushed = W / W.sum() / (1 + np.exp(s[:, None] - s))
    assert np.allclose(lists.pair_push(s, G), pushed.sum(axis=1) - pushed.sum(axis=0))


def state_of(known, wide):
    size = 2 * known
    square = np.zeros(size) if wide else np.zeros((size, size))
    return lists.ListState(
        np.zeros((size, 4)),
        np.zeros((0 if wide else size, 3)),
        square,
        np.zeros((known, 4)),
        np.full(4, 0.25),
        10 * np.eye(4),
        np.zeros(6),
        np.full(6, 1 / 6),
    )


def bits(parts):
    return [(part.shape, part.tobytes()) for part in map(np.asarray, parts)]


@pytest.mark.skipif(native is None, reason="the native kernel is not built")
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_both_kernels_leave_the_same_bits(seed):
    rng = np.random.default_rng(seed)
    features, items = int(rng.integers(1, 40)), int(rng.choice([1, 2, 3, 5, 20, 100, 161, 300, 600]))
    known, wide = features + int(rng.integers(0, 5)), rng.random() < 0.3
    ours, theirs, gaps, other_gaps = state_of(known, wide), state_of(known, wide), 0.0, 0.0
    for _ in range(4):
        values = rng.random((items, features))
        if rng.random() < 0.5:
            values = np.round(values * 4) / 4 * rng.choice([-1, 1, 0], size=(items, features))
        rows = rng.permutation(known)[:features].astype(np.intp)
        C = lists.list_inputs(values)
        assert bits([native.list_inputs(values)]) == bits([C])
        looked = lists.list_scores(C, rows, ours.w, ours.a, ours.shares)
        assert bits(native.list_scores(C, rows, theirs.w, theirs.a, theirs.shares)) == bits(looked)
        grades = rng.integers(0, 3, items).astype(float)
        grades[0] += 1
        truth = gains_of(grades), grades, discounts(min(10, items))
        weight = float(rng.choice([1.0, 0.3, 1000.0]))
        call = (C, values, rows), truth, looked[:2], weight
        one, gaps = lists.list_round(*call, ours, gaps)
        other, other_gaps = native.list_round(*call, theirs, other_gaps)
        assert (one, gaps) == (other, other_gaps)
        assert bits(ours) == bits(theirs)


@pytest.mark.skipif(native is None, reason="the native kernel is not built")
def test_the_native_round_refuses_what_would_read_beyond_its_arrays():
    C, rows, state = np.zeros((3, 4)), np.array([0, 2]), state_of(2, False)
    with pytest.raises(IndexError):
        native.list_scores(C, rows, state.w, state.a, state.shares)
    with pytest.raises(ValueError, match="length"):
        native.list_scores(C, rows[:1], state.w, state.a, state.shares)
    truth, looked = (np.ones(3), np.ones(3), np.ones(3)), (np.zeros((4, 3)), np.zeros((6, 3)))
    good = [(C, np.zeros((3, 2)), np.array([0, 1])), truth, looked, 1.0, state, 0.0]
    native.list_round(*good)
    for place, wrong in [
        (0, (C, np.zeros((3, 3)), rows)),
        (0, (C, np.zeros((3, 2)), np.array([0, -1]))),
        (1, (np.ones(2), np.ones(3), np.ones(3))),
        (1, (np.ones(3), np.ones(3), np.ones(2))),
        (2, (np.zeros((4, 2)), np.zeros((6, 3)))),
        (4, state._replace(A=np.zeros((4, 3)))),
        (4, state._replace(r=np.zeros((0, 3)))),
        (4, state._replace(coin=np.zeros((1, 4)))),
        (4, state_of(1, False)),
        (4, state[:7]),
    ]:
        with pytest.raises((ValueError, IndexError)):
            native.list_round(*good[:place], wrong, *good[place + 1 :])


@pytest.mark.parametrize("spec", [SPEC, {**SPEC, "context": True}])
def test_contributions_sum_to_the_scores(spec):
    learner = build(spec)
    rng = np.random.default_rng(1)
    for X, y in stream(2):
        instance = {
            "items": {"ids": [*map(str, range(12))], "columns": list("abcdef"), "rows": X.tolist()},
            **({"features": {"user": float(rng.normal())}} if "context" in spec else {}),
        }
        prediction = learner.predict(instance, explain=True)
        for (_, score), parts in zip(prediction.ranking, prediction.contributions, strict=True):
            assert sum(parts.values()) == pytest.approx(score, abs=1e-9)
        grades = dict(zip(map(str, range(12)), y.tolist(), strict=True))
        learner.learn(instance, {"relevance": grades})
    assert max(abs(score) for _, score in learner.predict(instance).ranking) > 0.5


def test_many_features_are_learned_on_a_diagonal_and_saved(monkeypatch):
    monkeypatch.setattr(list_pool, "WIDEST", 4)
    narrow = {"items": [{"id": i, "features": {"x": n, "y": n % 2}} for n, i in enumerate("abc")]}
    wide = {"items": [{"id": i, "features": {f"f{j}": n * j for j in range(9)}} for n, i in enumerate("abc")]}
    learner = build(SPEC)
    for _ in range(5):
        learner.learn(narrow, {"relevance": {"c": 1}})
    model = learner.model
    weights = model.state.w[:4].copy()
    assert not model.wide
    learner.learn(wide, {"relevance": {"a": 0, "b": 1, "c": 2}})
    assert model.wide
    assert np.array_equal(model.state.w[:4], weights)
    for _ in range(10):
        learner.learn(wide, {"relevance": {"a": 0, "b": 1, "c": 2}})
    assert [name for name, _ in learner.predict(wide).ranking] == ["c", "b", "a"]
    again = load(dump(learner))
    assert fingerprint(again) == fingerprint(learner)
    assert again.predict(wide).ranking == learner.predict(wide).ranking


def test_an_event_that_fails_while_the_matrix_leaves_changes_nothing(monkeypatch):
    monkeypatch.setattr(list_pool, "WIDEST", 4)
    learner = taught(SPEC, features=4)
    before = fingerprint(learner)
    wide = {"items": [{"id": i, "features": {f"f{j}": n * j for j in range(9)}} for n, i in enumerate("abc")]}

    def fails(*given):
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr(list_pool, "list_round", fails)
        with pytest.raises(MemoryError):
            learner.learn(wide, {"relevance": {"a": 1}})
    assert fingerprint(learner) == before
    learner.learn(wide, {"relevance": {"a": 1}})
    other = taught(SPEC, features=4)
    other.learn(wide, {"relevance": {"a": 1}})
    assert fingerprint(learner) == fingerprint(other)


def test_grades_of_any_size_leave_finite_weights():
    learner = build(SPEC)
    for top in (1e100, 1e-100, 3.0, 1000.0):
        learner.learn(listed(np.eye(3)), {"relevance": np.array([top, 0.0, top / 2])})
    assert np.isfinite(learner.model.state.w).all()
    assert np.isfinite([score for _, score in learner.predict(listed(np.eye(3))).ranking]).all()


def test_gains_are_those_of_ndcg_up_to_a_grade_of_five():
    assert np.allclose(gains_of(np.array([0.0, 1.0, 4.0])), [0, 1, 15])
    assert np.allclose(gains_of(np.array([0.0, 7.0])), [0, 31.75])
    assert np.allclose(gains_of(np.array([0.0, 0.001])), [0, 2**0.001 - 1])


# ---- clicks


def test_below_the_last_click_so_many_items_count_but_only_of_what_was_shown():
    order = np.array([3, 1, 0, 2])
    for below, shown, kept in [
        (0, 4, [3]),
        (1, 4, [1, 3]),
        (2, 4, [0, 1, 3]),
        (9, 4, [0, 1, 2, 3]),
        (9, 2, [1, 3]),
    ]:
        items, grades = skip_above(order, [3], below, shown)
        assert items.tolist() == kept
        assert grades.tolist() == [float(item == 3) for item in kept]
    assert not len(skip_above(order, [], 5)[0])


def test_a_click_on_the_first_place_teaches_that_it_is_better_than_the_next():
    items = [{"id": name, "features": {name: 1.0}} for name in "abc"]
    learner = build(SPEC)
    assert learner.spec["below"] == 1
    outcome = learner.learn({"items": items}, {"clicks": ["a"]}, served={"ranking": ["a", "b", "c"]})
    assert outcome.updated
    scores = dict(learner.predict({"items": items}).ranking)
    assert scores["a"] > scores["c"] > scores["b"]
    for other in ({"preset": "subset-ranking-1"}, {"below": 0}, {"algorithm": "listnet"}):
        learner = build({**SPEC, **other})
        assert learner.spec["below"] == 0
        served = {"ranking": ["a", "b", "c"]}
        assert not learner.learn({"items": items}, {"clicks": ["a"]}, served=served).updated


def test_what_was_not_shown_says_nothing():
    items = [{"id": name, "features": {name: 1.0}} for name in "abc"]
    learner = build({**SPEC, "below": 2})
    assert not learner.learn({"items": items}, {"clicks": ["a"]}, served={"ranking": ["a"]}).updated


def test_what_counts_has_the_ranks_of_the_list_that_was_served():
    rows = [[0.0], [1.0], [9.0], [10.0]]
    learner = build(SPEC)
    columns = {"ids": list("abcd"), "columns": ["x"], "rows": rows}
    learner.learn({"items": columns}, {"clicks": ["d"]}, served={"ranking": ["d", "a", "b", "c"]})
    whole = lists.list_inputs(np.array(rows) / 10)
    C = whole[[0, 3]] - whole[[0, 3]].mean(axis=0)
    assert np.allclose(learner.model.state.A, C.T @ C / 2)


def test_below_has_no_meaning_with_chances_of_being_seen():
    spec = {**SPEC, "examination": [1.0, 0.5]}
    assert "below" not in build(spec).spec
    with pytest.raises(Exception, match="examination"):
        build({**spec, "below": 1})


def test_the_pool_has_its_members_with_shares_that_sum_to_one():
    learner = taught(SPEC)
    experts = learner.describe()["experts"]
    assert [row["name"] for row in experts] == ["ridge", "list", "pair", "coin", "mean", "stack"]
    assert sum(row["weight"] for row in experts) == pytest.approx(1.0)
    assert all(0 <= row["mean_loss"] <= 1 for row in experts)
    assert isinstance(learner.model, ListPool)
