"""Every search of every task against brute force over all decisions of small problems."""

from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from feedrank.learners import build
from feedrank.learners.algorithms.predtron import Predtron
from feedrank.learners.losses import subsets
from feedrank.learners.losses.costs import CostMatrix
from feedrank.learners.losses.rankings import discounts, gains
from feedrank.learners.model import Round
from feedrank.learners.tasks import permutations as permutations_of_items
from feedrank.learners.tasks import searches
from feedrank.learners.tasks.multilabel import ErrorSetSize, Hamming, Multilabel, OnlyTruth, SubsetZeroOne
from feedrank.learners.tasks.one_class import REJECT, Binary, Costs, Multiclass, Ordinal, Reject, TwoCosts
from feedrank.learners.tasks.permutations import AP, NDCG, Precision
from feedrank.learners.tasks.searches import merge
from feedrank.learners.theory.predtron_bounds import constants

score = st.one_of(st.integers(-2, 2).map(float), st.floats(-4, 4, allow_nan=False).map(lambda v: round(v, 3)))


def orders(m):
    return [np.array(p, dtype=np.intp) for p in permutations(range(m))]


def masks(m):
    return [np.array(v, dtype=bool) for v in product([False, True], repeat=m)]


def check(task, decisions, t, y):
    """decide, correct, augmented and rival are argmaxes over `decisions`, and what they return is one of them."""
    d = t.size
    keys = [np.asarray(s).tolist() for s in decisions]
    similarity = np.array([task.rep(s, d) @ t for s in decisions])
    loss = np.array([task.loss(s, y) for s in decisions])
    assert np.allclose([np.linalg.norm(task.rep(s, d)) for s in decisions], 1.0)
    loss -= loss.min()  # what a decision costs beyond a correct one; 0 but for a matrix
    if not isinstance(task, ErrorSetSize):  # which judges a score of exactly 0 as wrong
        assert task.excess(t, y) == pytest.approx(loss[keys.index(np.asarray(task.decide(t)).tolist())])

    def value(sigma):
        index = keys.index(np.asarray(sigma).tolist())
        return similarity[index], loss[index]

    eps = 1e-9 * (1 + np.abs(t).max())
    assert value(task.decide(t))[0] >= similarity.max() - eps
    s, cost = value(task.correct(y, t))
    assert cost == 0.0
    assert s >= similarity[loss == 0.0].max() - eps
    s, cost = value(task.augmented(y, t))
    assert s + cost >= (similarity + loss).max() - eps
    rival = task.rival(y, t)
    if (loss == 0.0).all():
        assert rival is None
    else:
        s, cost = value(rival)
        assert cost > 0.0
        assert s >= similarity[loss > 0.0].max() - eps


@given(st.data())
def test_classes(data):
    m = data.draw(st.integers(1, 5))
    t = np.array(data.draw(st.lists(score, min_size=m, max_size=m)))
    y = data.draw(st.integers(0, m - 1))
    costs = data.draw(st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0]), max_size=m))
    check(Multiclass(), range(m), t, y)
    check(Multiclass(costs), range(m), t, y)
    check(Ordinal(), range(m), t, y)
    if m > 1:
        check(Reject(costs), [*range(m), REJECT], t, y)
    check(Binary(costs), [0, 1], t[:1], y % 2)
    cost = st.sampled_from([0.0, 0.25, 1.0, 3.0])
    names = st.sampled_from([*map(str, range(m)), "later"])
    named = data.draw(st.dictionaries(names, st.dictionaries(names, cost, max_size=3), max_size=3))
    check(Costs(CostMatrix(named, {str(i): i for i in range(m)})), range(m), t, y)
    check(TwoCosts(CostMatrix(named, {"0": 0, "1": 1})), [0, 1], t[:1], y % 2)


@given(st.data())
def test_a_matrix_is_what_it_names_over_zero_one(data):
    m = data.draw(st.integers(1, 5))
    cost = st.floats(0, 9).map(lambda v: round(v, 2))
    names = st.sampled_from(["a", "b", "c", "d", "e", "later"])
    named = data.draw(st.dictionaries(names, st.dictionaries(names, cost)))
    index = {name: i for i, name in enumerate("abcde"[:m])}
    L = np.array([[named.get(y, {}).get(s, float(s != y)) for y in index] for s in index])
    matrix, p = CostMatrix(named, index), np.array(data.draw(st.lists(score, min_size=m, max_size=m)))
    assert [[matrix.cost(s, y) for y in range(m)] for s in range(m)] == L.tolist()
    assert np.allclose(matrix.gains(p), p.sum() - L @ p)
    assert np.allclose(matrix.functionals(m) @ p, matrix.gains(p))
    assert matrix.highest == max(
        1.0, max((c for y, r in named.items() for s, c in r.items() if {y, s} <= set(index)), default=0)
    )
    assert [matrix.excess(s, y) for y in range(m) for s in range(m)] == [
        L[s, y] - L[:, y].min() for y in range(m) for s in range(m)
    ]
    assert matrix.cost(REJECT, 0) == max(
        1.0, *named.get("a", {}).values(), 0
    )  # no decision costs what the dearest can
    assert np.allclose(matrix.gains(p[:-1]), (p[:-1].sum() - L @ np.append(p[:-1], 0))[:-1])


@pytest.mark.parametrize("variant", ["standard", "loss-driven"])
@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_a_matrix_that_names_nothing_is_zero_one_to_the_bit(task, variant):
    spec = {"task": task, "algorithm": "predtron", "variant": variant, "labels": ["no", "yes"]}
    plain, empty = build(spec), build(spec | {"loss": "matrix", "matrix": {}})
    rng = np.random.default_rng(3)
    for _ in range(60):
        instance = {"features": rng.standard_normal(4).round(2).tolist()}
        truth = {"label": ["no", "yes", "other"][int(rng.integers(2 + (task == "multiclass")))]}
        assert plain.learn(instance, truth) == empty.learn(instance, truth)
        assert plain.predict(instance).ranking == empty.predict(instance).ranking


@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize("discount", ["log", "reciprocal"])
def test_ndcg_counts_what_the_spec_says(gain, discount):
    y, k = np.array([0.0, 3.0, 1.0, 0.0, 2.0]), 3
    G = y if gain == "linear" else 2.0**y - 1.0
    D = 1.0 / np.arange(1, 6) if discount == "reciprocal" else 1.0 / np.log2(np.arange(2, 7))
    ideal = np.sort(G)[::-1][:k] @ D[:k]
    task = NDCG(k, gain=gain, discount=discount)
    for sigma in orders(5):
        assert task.loss(sigma, y) == pytest.approx(1.0 - G[sigma][:k] @ D[:k] / ideal)
    everything = [task.loss(sigma, y) for sigma in orders(5)]
    c_L, C_L = constants(NDCG(None, gain=gain, discount=discount), 5, 3)
    assert 0 < c_L <= min(loss for loss in everything if loss > 1e-12)
    assert max(everything) <= C_L


def f_measure_loss(a, b, c, d):
    return (b + c) / np.maximum(1, 2 * a + b + c)


@pytest.mark.parametrize(
    "task",
    [
        SubsetZeroOne(),
        Hamming(),
        ErrorSetSize(),
        OnlyTruth(subsets.f_score),
        OnlyTruth(subsets.jaccard),
        Multilabel(subsets.jaccard),
        Multilabel(subsets.subset_zero_one),
        Multilabel(subsets.hamming),
        Multilabel(f_measure_loss),
        Multilabel(lambda a, b, c, d: 2.0 * (b > 0) + c * (d + 1)),
    ],
)
@given(data=st.data())
def test_multilabel(task, data):
    m = data.draw(st.integers(1, 5))
    t = np.array(data.draw(st.lists(score, min_size=m, max_size=m)))
    y = np.array(data.draw(st.lists(st.booleans(), min_size=m, max_size=m)))
    check(task, masks(m), t, y)


positions = st.sampled_from(
    [("linear", 1.1), ("reciprocal", 1.1), ("power", 1.1), ("power", 2.0), ("power", 0.3)]
)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_rankings(data):
    m = data.draw(st.integers(1, 6))
    t = np.array(data.draw(st.lists(score, min_size=m, max_size=m)))
    grade = data.draw(
        st.sampled_from(
            [st.sampled_from([0.0, 1.0]), st.integers(0, 3).map(float), st.sampled_from([0.5, 2.0])]
        )
    )
    y = np.array(data.draw(st.lists(grade, min_size=m, max_size=m)))
    k = data.draw(st.integers(1, 7))
    position, exponent = data.draw(positions)
    for task in (
        NDCG(None, position, exponent),
        NDCG(k, position, exponent),
        NDCG(k, position, exponent, "linear", "log"),
        NDCG(None, position, exponent, "exponential", "reciprocal"),
        NDCG(None, position, exponent, "linear", "reciprocal"),
        Precision(k, position, exponent),
    ):
        check(task, orders(m), t, y)
    check(AP(None, position, exponent), orders(m), t, y)


def objective(task, t, y, sigma):
    return task.loss(sigma, y) + task.rep(sigma, t.size) @ t


@pytest.mark.parametrize("m", [40, 220])
def test_cheaper_searches_equal_the_assignment(m):
    """Merges, and prices for long lists, against the plain assignment of Lemma 3; merges of both kinds occur."""
    rng = np.random.default_rng(m)
    for trial in range(24):
        position = ["linear", "reciprocal", "power"][trial % 3]
        t = rng.standard_normal(m) * 10.0 ** rng.integers(-3, 2)
        k = [None, 5][trial % 2]
        task = NDCG(k, position, 2.0)
        for top in (1, 4):
            y = rng.integers(0, top + 1, m).astype(float)
            gain = gains(y)
            D = discounts(m) * (np.arange(m) < (k or m))
            value = np.outer(t, task.F(m)) - np.outer(gain / (np.sort(gain)[::-1] @ D), D)
            best = 1.0 + value[linear_sum_assignment(value, maximize=True)].sum()
            assert objective(task, t, y, task.augmented(y, t)) == pytest.approx(best, abs=1e-9)


def test_merge_where_the_rows_disagree():
    """With f = 1/i the rows' own maxima need not rise: the answer then comes from the recursion."""
    disagreed = 0
    rng = np.random.default_rng(0)
    for _ in range(120):
        m, R = 5, 3
        t = np.sort(rng.standard_normal(m))[::-1] * rng.choice([0.1, 1.0])
        upper = np.sort(rng.permutation(m)[:R])
        lower = np.setdiff1d(np.arange(m), upper)
        bonus, F = rng.standard_normal((R, m - R + 1)), 1.0 / np.arange(1, m + 1)

        def value(order, upper=upper, t=t, bonus=bonus, F=F):
            above = [a - i for i, a in enumerate(np.flatnonzero(np.isin(order, upper)))]
            return F @ t[order] + sum(bonus[i, b] for i, b in enumerate(above))

        def is_merge(order, upper=upper, lower=lower):
            return all(np.all(np.diff(order[np.isin(order, part)]) > 0) for part in (upper, lower))

        values = {tuple(o): value(o) for o in orders(m) if is_merge(o)}
        result = merge(upper, lower, t, F, lambda a, b, bonus=bonus: bonus[np.int_(a) - 1, np.int_(b)])
        assert values[tuple(result)] == pytest.approx(max(values.values()))
        single = [max(range(m - R + 1), key=lambda b, a=a: bonus[a, b]) for a in range(R)]
        disagreed += any(later < earlier for earlier, later in pairwise(single))
    assert disagreed > 30


@pytest.mark.parametrize(
    ("task", "m"), [(Hamming(), 10_000), (SubsetZeroOne(), 10_000), (ErrorSetSize(), 1000)]
)
def test_many_labels_are_within_reach(task, m):
    rng = np.random.default_rng(2)
    t, y = rng.standard_normal(m), rng.random(m) < 0.3
    assert task.judge(t, y) > 0
    gap = objective(task, t, y, task.augmented(y, t)) - objective(task, t, y, task.decide(t))
    assert gap >= -1e-9


def test_lists_of_any_shape():
    for task in (NDCG(), NDCG(3), Precision(3), AP()):
        assert task.judge(np.array([0.0]), np.array([2.0])) == 0.0  # one item
        assert task.judge(np.array([1.0, 2.0]), np.array([3.0, 3.0])) == 0.0  # equal grades
        assert task.judge(np.array([1.0, 2.0]), np.zeros(2)) == 0.0  # nothing relevant
        assert task.judge(np.empty(0), np.empty(0)) == 0.0
        y = np.array([0.0, 31.0, 2000.0, 1e100])
        for t in (np.zeros(4), np.array([4.0, 3.0, 2.0, 1.0])):
            sigma = task.augmented(y, t)
            assert sorted(sigma.tolist()) == [0, 1, 2, 3]
            assert np.isfinite(task.loss(sigma, y))
    assert NDCG().margin(np.array([1.0])) is None
    assert NDCG(1).margin(np.array([1.0, 0.25, 0.2])) == 0.75
    assert NDCG().margin(np.array([0.2, 1.0, 0.25])) == pytest.approx(0.05)


def test_a_zero_score_is_wrong_for_the_error_set_size_only():
    y = np.array([True, False, False])
    assert ErrorSetSize().judge(np.zeros(3), y) == 2.0
    assert ErrorSetSize().loss(ErrorSetSize().decide(np.zeros(3)), y) == 0.0
    assert Hamming().judge(np.zeros(3), y) == 1.0
    # The first step then raises what is relevant and lowers what is not.
    g = Predtron(ErrorSetSize()).direction(Round(np.zeros(3), y))
    assert (g < 0).tolist() == [True, False, False]
    assert (g > 0).tolist() == [False, True, True]


def test_margins_of_classes():
    assert Binary().margin(np.array([-1.5])) == 3.0
    assert Multiclass().margin(np.array([1.0, 4.0, 2.5])) == 1.5
    assert Multiclass().margin(np.array([1.0])) is None
    assert Multiclass().decide(np.empty(0)) == REJECT
    assert Reject().margin(np.array([3.0, -1.0])) == pytest.approx(3.0 - 2.0 / np.sqrt(2))
    assert Hamming().margin(np.array([3.0, -0.5])) == 0.5
    assert Hamming().margin(np.empty(0)) is None


@pytest.mark.parametrize("position", ["linear", "power", "reciprocal"])
@pytest.mark.parametrize("loss", ["ap", "ndcg", "ndcg at 3", "precision"])
def test_every_way_of_merging_two_classes_finds_the_best_order(loss, position, monkeypatch):
    task = {
        "ap": lambda: AP(position=position),
        "ndcg": lambda: NDCG(position=position),
        "ndcg at 3": lambda: NDCG(3, position=position),
        "precision": lambda: Precision(2, position=position),
    }[loss]()
    monkeypatch.setattr(searches, "CELLS", 3)  # a row at a time
    rng = np.random.default_rng(5)
    for trial in range(40):
        m = int(rng.integers(2, 6))
        t = rng.standard_normal(m) * 10 ** rng.uniform(-2, 1)
        t, y = (np.round(t) if trial % 4 == 0 else t), (rng.random(m) < 0.5).astype(float)
        best = max(objective(task, t, y, order) for order in orders(m))
        for pairs_of_even in (-1, 1 << 30):
            monkeypatch.setattr(permutations_of_items, "EVEN", pairs_of_even)
            assert objective(task, t, y, task.augmented(y, t)) == pytest.approx(best, abs=1e-10)


@pytest.mark.parametrize("task", [AP(), NDCG()], ids=["ap", "ndcg"])
def test_merging_by_halves_is_as_good_as_by_rows_on_long_lists(task, monkeypatch):
    rng = np.random.default_rng(6)
    for _ in range(20):
        m = int(rng.integers(60, 240))
        t, y = rng.standard_normal(m) * 10 ** rng.uniform(-3, 2), (rng.random(m) < rng.random()).astype(float)
        values = []
        for pairs_of_even in (-1, 1 << 30):
            monkeypatch.setattr(permutations_of_items, "EVEN", pairs_of_even)
            values.append(objective(task, t, y, task.augmented(y, t)))
        assert values[0] == pytest.approx(values[1], abs=1e-10)
