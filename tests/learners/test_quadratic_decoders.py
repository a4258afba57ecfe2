"""Every psi and decoder against brute force: the risk sum_i alpha_i L(z, y_i) over all decisions z of small problems.

L is computed here from its definition, the alphas may be negative, and no decoder is told anything but
theta = sum alpha psi(y).
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedrank.learners.algorithms.quadratic import decoders, orders, sets
from feedrank.learners.algorithms.quadratic.families import Items
from feedrank.learners.algorithms.quadratic.labels import Labels
from feedrank.learners.algorithms.quadratic.one_of_several import Classes
from feedrank.learners.algorithms.quadratic.sets import Sets
from feedrank.learners.losses.costs import CostMatrix

K = 2
BLOCKS = [0, 0, 1, -1, 1]
NAMED = {"0": {"1": 5.0, "4": 0.5}, "2": {"2": 0.25, "0": 0.0}, "later": {"0": 9.0}}


def masks(m):
    return [np.array(bits, dtype=bool) for bits in itertools.product((False, True), repeat=m)]


def permutations(m):
    return [np.array(order) for order in itertools.permutations(range(m))]


def block_of(j):
    return BLOCKS[j] if BLOCKS[j] >= 0 else 100 + j


def touched(z):
    return {block_of(j) for j in np.flatnonzero(z)}


def f_loss(z, y):
    return 1 - (2 * (z & y).sum() / (z.sum() + y.sum()) if z.any() or y.any() else 1.0)


def cost_of(z, y):
    return NAMED.get(str(y), {}).get(str(z), float(z != y))


def ndcg(order, y, cutoff, gains=None, discounts=None):
    gains = 2.0**y - 1 if gains is None else gains
    discounts = 1 / np.log2(np.arange(2, len(y) + 2)) if discounts is None else discounts
    if cutoff is not None:
        discounts[cutoff:] = 0
    ideal = np.sort(gains)[::-1] @ discounts
    return 1 - gains[order] @ discounts / ideal if ideal else 0.0


def ap(order, y):
    hits = (y[order] > 0).astype(float)
    return 1 - (np.cumsum(hits) / np.arange(1, len(y) + 1)) @ hits / hits.sum() if hits.any() else 0.0


def disagreement(order, y):
    place = np.argsort(order)
    unequal = [(j, k) for j in range(len(y)) for k in range(len(y)) if y[j] > y[k]]
    return sum(place[j] > place[k] for j, k in unequal) / len(unequal) if unequal else 0.0


def precision(order, y):
    return (min(K, int((y > 0).sum())) - int((y[order[:K]] > 0).sum())) / K


# name: (the family, all decisions, the truths to draw from, L, what makes two decisions one)
def same(z):
    return tuple(np.asarray(z).tolist())


PROBLEMS = {
    "zero-one": (lambda: Classes("zero-one"), range, range, lambda z, y: z != y, int),
    "weighted": (lambda: Classes("weighted"), range, range, lambda z, y: (z != y) * (1.0 + y), int),
    "multiclass block": (
        lambda: Classes("block-zero-one"), range, range, lambda z, y: block_of(z) != block_of(y), block_of
    ),
    "reject": (
        lambda: Classes("reject"), lambda m: [*range(m), -1], range,
        lambda z, y: 0.2 * (1.0 + y) if z < 0 else z != y, int,
    ),
    "matrix": (lambda: Classes("matrix"), range, range, cost_of, int),
    "absolute": (lambda: Classes("absolute"), range, range, lambda z, y: abs(z - y), int),
    "subset-zero-one": (lambda: Sets("hamming", K), masks, masks, lambda z, y: (z != y).any(), same),
    "hamming": (lambda: Sets("hamming", K), masks, masks, lambda z, y: (z != y).mean(), same),
    "f-score": (lambda: Sets("hamming", K), masks, masks, f_loss, same),
    "precision": (
        lambda: Sets("hamming", K),
        lambda m: [z for z in masks(m) if z.sum() == min(K, m)],
        masks,
        lambda z, y: (min(K, y.sum()) - (z & y).sum()) / K,
        same,
    ),
    "multilabel block": (
        lambda: Sets("block-zero-one", K), masks, masks, lambda z, y: touched(z) != touched(y),
        lambda z: frozenset(touched(z)),
    ),
    "ndcg of grades": (
        lambda: Labels("ndcg", K, ("linear", "reciprocal")), permutations, None,
        lambda z, y: ndcg(z, y, K, y, 1.0 / np.arange(1, len(y) + 1)), lambda z: same(z[:K]),
    ),
    "ndcg": (lambda: Labels("ndcg", None), permutations, None, lambda z, y: ndcg(z, y, None), same),
    "ndcg at 2": (lambda: Labels("ndcg", K), permutations, None, lambda z, y: ndcg(z, y, K), lambda z: same(z[:K])),
    "ranking precision": (
        lambda: Labels("precision", K), permutations, None, precision, lambda z: frozenset(z[:K].tolist())
    ),
    "ap": (lambda: Labels("ap", None), permutations, None, ap, same),
    "pairwise-disagreement": (lambda: Labels("pairwise-disagreement", None), permutations, None, disagreement, same),
}  # fmt: skip

LOSS_OF = {
    "multiclass block": "block-zero-one", "multilabel block": "block-zero-one", "ranking precision": "precision",
    "ndcg at 2": "ndcg", "ndcg of grades": "ndcg",
}  # fmt: skip


def drawn(name, m, rng, events):
    """The family after some events, the truths and their alphas, and theta in the columns that decoding asks for."""
    make, _, truths, _, _ = PROBLEMS[name]
    loss, family = LOSS_OF.get(name, name), make()
    family.grow(m)
    if isinstance(family, Classes):
        family.costs = [(0.2 if name == "reject" else 1.0) * (1.0 + j) for j in range(m)]
        family.blocks = BLOCKS
        family.charge(CostMatrix(NAMED, {str(j): j for j in range(m)}))
    if isinstance(family, Sets):
        family.blocks = BLOCKS
    pool = list(truths(m)) if truths else None
    ys = [
        pool[rng.integers(len(pool))] if pool else rng.integers(0, 3, size=m).astype(float)
        for _ in range(events)
    ]
    alphas = rng.normal(0.3, 1.0, size=events)
    learned = {}
    for y, alpha in zip(ys, alphas, strict=True):
        columns, values = family.psi(y)
        for column, value in zip(columns.tolist(), values[0].tolist(), strict=True):
            learned[column] = learned.get(column, 0.0) + alpha * value
    theta = np.array([[learned.get(column, 0.0) for column in family.columns(loss).tolist()]])
    return family, loss, ys, alphas, theta


@pytest.mark.parametrize("name", PROBLEMS)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), m=st.integers(1, 5), events=st.integers(0, 8))
def test_decision_and_margin_are_those_of_a_search_of_all_decisions(name, seed, m, events):
    if PROBLEMS[name][2] is range and not events:
        return
    _, decisions, _, L, key = PROBLEMS[name]
    family, loss, ys, alphas, theta = drawn(name, m, np.random.default_rng(seed), events)
    result = family.decode(loss, theta)
    risks = {}
    for z in decisions(m):
        value = sum(a * L(z, y) for a, y in zip(alphas, ys, strict=True))
        assert risks.setdefault(key(z), value) == pytest.approx(value, abs=1e-9)
    ours, best = risks[key(result.sigma)], min(risks.values())
    assert ours == pytest.approx(best, abs=1e-9)
    others = [value for k, value in risks.items() if k != key(result.sigma)]
    if not others:
        assert result.margin is None
    else:
        assert result.margin == pytest.approx(min(others) - ours, abs=1e-9)
    if result.objective is not None:
        assert result.objective == pytest.approx(ours, abs=1e-9)
    T = family.functionals(loss, theta)
    assert np.allclose(T @ theta[0], result.scores, atol=1e-9)
    for y in ys:
        assert family.loss(loss, result.sigma, y) == pytest.approx(float(L(result.sigma, y)), abs=1e-12)


@pytest.mark.parametrize("name", ["subset-zero-one", "hamming", "f-score", "precision"])
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), m=st.integers(3, 5), events=st.integers(1, 8))
def test_a_label_scores_the_gap_between_sets_with_and_without_it(name, seed, m, events):
    _, decisions, _, L, _ = PROBLEMS[name]
    family, loss, ys, alphas, theta = drawn(name, m, np.random.default_rng(seed), events)
    result = family.decode(loss, theta)
    risks = [(z, sum(a * L(z, y) for a, y in zip(alphas, ys, strict=True))) for z in decisions(m)]
    for j in range(m):
        gap = min(v for z, v in risks if not z[j]) - min(v for z, v in risks if z[j])
        assert result.scores[j] == pytest.approx(gap, abs=1e-9)
        assert abs(gap) < 1e-9 or result.sigma[j] == (gap > 0)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), m=st.integers(1, 5))
def test_items_are_sorted_as_the_search_finds(seed, m):
    """NDCG and precision of a list are exact; AP and disagreement are, where the truth is certain."""
    rng = np.random.default_rng(seed)
    family, ys, alphas = (
        Items("ndcg", K),
        [rng.integers(0, 3, size=m).astype(float) for _ in range(4)],
        rng.normal(size=4),
    )
    theta = sum(a * family.psi(y)[1] for a, y in zip(alphas, ys, strict=True))
    for loss, L in (("ndcg", lambda z, y: ndcg(z, y, K)), ("precision", precision)):
        result = family.decode(loss, theta[:, family.columns(loss)])
        risks = [sum(a * L(z, y) for a, y in zip(alphas, ys, strict=True)) for z in permutations(m)]
        assert sum(a * L(result.sigma, y) for a, y in zip(alphas, ys, strict=True)) == pytest.approx(
            min(risks), abs=1e-9
        )
    for loss, L in (("ap", ap), ("pairwise-disagreement", disagreement)):
        result = family.decode(loss, family.psi(ys[0])[1][:, family.columns(loss)])
        assert L(result.sigma, ys[0]) == pytest.approx(0.0, abs=1e-12)
    wins = family.psi(ys[0])[1][:, 3]
    assert np.allclose(wins.sum(), 0.0)
    assert np.abs(wins).max() <= 1.0


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), m=st.integers(1, 6), even=st.booleans())
def test_orders_exact_and_moves(seed, m, even):
    rng = np.random.default_rng(seed)
    a, Q, f = rng.normal(size=m), rng.normal(size=(m, m)), rng.normal(size=m)
    if even:
        f = np.ones(m)
    values = sorted(orders.objective(order, a, Q, f) for order in permutations(m))
    _, value, gap = orders.exact(a, Q, f)
    assert value == pytest.approx(values[0], abs=1e-10)
    assert gap is None if m == 1 else gap == pytest.approx(values[1] - values[0], abs=1e-10)
    start = rng.permutation(m)
    for p in range(m):
        for q in set(range(m)) - {p}:
            moved = np.insert(np.delete(start, p), q, start[p])
            change = orders.objective(moved, a, Q, f) - orders.objective(start, a, Q, f)
            for search in [orders.Weighed(a, Q, f, start)] + [orders.Even(Q, start)] * even:
                assert search.moves(p)[q] == pytest.approx(change, abs=1e-10)
                search.move(p, q)
                assert search.order.tolist() == moved.tolist()
    result, reached, near = orders.insertion(a, Q, f, start)
    assert sorted(result.tolist()) == list(range(m))
    assert values[0] - 1e-10 <= reached <= orders.objective(start, a, Q, f) + 1e-10
    if m > 1:
        neighbours = [
            orders.objective(np.insert(np.delete(result, p), q, result[p]), a, Q, f) - reached
            for p in range(m) for q in range(m) if p != q
        ]  # fmt: skip
        assert near == pytest.approx(min(neighbours), abs=1e-9)


def test_insertion_finds_what_is_there_to_find():
    """Planted orders are found; on noise it stays within a few percent of the exact optimum."""
    rng = np.random.default_rng(0)
    for m in (15, 40):
        planted = rng.permutation(m)
        place = np.argsort(planted)
        D = np.sign(place[None, :] - place[:, None]) * rng.uniform(0.1, 1, size=(m, m))
        assert decoders.pairwise_disagreement(D, 0.0).sigma.tolist() == planted.tolist()
    worst = 1.0
    for _ in range(30):
        D = np.triu(rng.normal(size=(9, 9)), 1)
        terms = decoders.disagreement_terms(D)
        best = orders.exact(*terms)[1]
        worst = min(worst, orders.insertion(*terms, np.arange(9))[1] / best)
        A = rng.uniform(size=(9, 9))
        terms = decoders.ap_terms(A + A.T)
        assert orders.insertion(*terms, np.arange(9))[1] <= 0.99 * orders.exact(*terms)[1]
    assert worst > 0.8


def test_an_unseen_set_wins_only_where_all_seen_ones_weigh_less():
    member = np.array([[True, False], [False, True]])
    h = np.array([0.5, -0.2])
    assert decoders.seen_sets(np.array([0.1, 0.3]), member, h).sigma.tolist() == [False, True]
    assert decoders.seen_sets(np.array([-0.1, -0.3]), member, h).sigma.tolist() == [True, True]
    everything = np.array([[False, False], [True, False], [False, True], [True, True]])
    assert decoders.seen_sets(np.array([-0.4, -0.3, -0.2, -0.9]), everything, h).sigma.tolist() == [
        False,
        True,
    ]
    assert decoders.seen_sets(np.zeros(0), np.zeros((0, 2), dtype=bool), np.zeros(2)).sigma.tolist() == [
        False,
        False,
    ]


def test_past_the_cap_on_sets_all_but_the_sets_stay_exact(monkeypatch):
    monkeypatch.setattr(sets, "SETS", 3)
    rng = np.random.default_rng(1)
    for name in ("hamming", "f-score", "precision"):
        for _ in range(20):
            family, loss, ys, alphas, theta = drawn(name, 4, rng, 12)
            assert family.set_columns.count <= 4
            _, decisions, _, L, _ = PROBLEMS[name]
            risks = [sum(a * L(z, y) for a, y in zip(alphas, ys, strict=True)) for z in decisions(4)]
            result = family.decode(loss, theta)
            assert sum(a * L(result.sigma, y) for a, y in zip(alphas, ys, strict=True)) == pytest.approx(
                min(risks)
            )
            assert np.allclose(family.functionals(loss, theta) @ theta[0], result.scores)


def test_targets_of_pairs_are_numbered_as_they_join_and_leave_again():
    family = Labels("pairwise-disagreement", None)
    family.grow(3)
    columns, _ = family.psi(np.array([2.0, 0.0, 1.0]))
    assert columns.tolist() == list(range(len(columns)))
    mark = family.mark()
    family.grow(40)
    later, values = family.psi(np.arange(1.0, 41.0))
    assert len(set(later.tolist())) == len(later) == values.shape[1]
    assert set(columns.tolist()) <= set(later.tolist())
    other = Labels("pairwise-disagreement", None)
    other.grow(40)
    other.restore(family.arrays())
    assert other.psi(np.arange(1.0, 41.0))[0].tolist() == later.tolist()
    assert other.columns("ap").tolist() == family.columns("ap").tolist()
    family.rewind(mark)
    assert family.count == len(columns)
    family.grow(40)
    assert family.psi(np.arange(1.0, 41.0))[0].tolist() == later.tolist()


@pytest.mark.parametrize(
    "keys",
    [
        [[9, 0, 0]],
        [[2, 2, 1]],
        [[2, 0, 3]],
        [[0, 0, 1]],
        [[2, 0, 1], [2, 0, 1]],
        [[4, 0, 1]],
        [[0, -1, -1]],
        [[0, 0]],
    ],
)
def test_forged_targets_are_refused(keys):
    family = Labels("ap", None)
    family.grow(3)
    with pytest.raises(ValueError, match="target"):
        family.restore({"targets": np.array(keys)})
