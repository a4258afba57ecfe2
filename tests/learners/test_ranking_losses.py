"""Ranking losses against their definitions, written out with loops."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.learners.losses import rankings as R

grade_lists = st.lists(st.integers(0, 4), min_size=1, max_size=7).map(lambda y: np.array(y, dtype=float))
graded = grade_lists.flatmap(lambda y: st.tuples(st.just(y), st.permutations(range(len(y))).map(np.array)))
cutoffs = st.one_of(st.none(), st.integers(1, 9))


def dcg(order, y, k):
    return sum((2 ** y[i] - 1) / math.log2(p + 2) for p, i in enumerate(order) if k is None or p < k)


@given(graded, cutoffs)
def test_ndcg_is_dcg_over_the_best_dcg(case, k):
    y, order = case
    best = (
        max(dcg(o, y, k) for o in permutations(range(len(y)))) if len(y) <= 5 else dcg(np.argsort(-y), y, k)
    )
    expected = 1 - dcg(order, y, k) / best if best else 0.0
    assert R.ndcg_loss(order, y, k) == pytest.approx(expected, abs=1e-12)
    assert R.ndcg(order, y, k) == pytest.approx(1 - expected, abs=1e-12)


@given(graded)
def test_ap_is_the_mean_precision_at_relevant_positions(case):
    y, order = case
    result, parts = 0, []
    for p, i in enumerate(order, start=1):
        if y[i] > 0:
            result += 1
            parts.append(result / p)
    expected = sum(parts) / len(parts) if parts else 1.0
    assert R.ap(order, y) == pytest.approx(expected, abs=1e-12)
    assert R.ap_loss(order, y) == pytest.approx(1 - expected, abs=1e-12)


@given(graded, st.integers(1, 9))
def test_precision_counts_what_the_first_k_miss(case, k):
    y, order = case
    relevant = sum(g > 0 for g in y)
    hits = sum(y[i] > 0 for i in order[:k])
    assert R.precision_loss(order, y, k) == pytest.approx((min(k, relevant) - hits) / k)


@given(graded, cutoffs)
def test_reciprocal_rank(case, k):
    y, order = case
    ranks = [p for p, i in enumerate(order, start=1) if y[i] > 0]
    expected = 1.0 if not ranks else (1 / ranks[0] if k is None or ranks[0] <= k else 0.0)
    assert R.mrr(order, y, k) == expected


@given(graded, cutoffs, st.sampled_from([None, 4.0]))
def test_err_is_the_expected_reciprocal_rank_of_stopping(case, k, highest):
    y, order = case
    top = max(y) if highest is None else highest
    expected, reach = 0.0, 1.0
    for p, i in enumerate(order[:k], start=1):
        stop = (2 ** y[i] - 1) / 2**top
        expected += reach * stop / p
        reach *= 1 - stop
    assert R.err(order, y, k, highest) == pytest.approx(expected, abs=1e-12)


@given(graded)
def test_pairwise_disagreement_is_the_share_of_wrong_pairs(case):
    y, order = case
    position = {item: p for p, item in enumerate(order)}
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
    wrong = sum(position[i] > position[j] for i, j in pairs)
    assert R.pairwise_disagreement_loss(order, y) == pytest.approx(wrong / len(pairs) if pairs else 0.0)


@given(grade_lists, cutoffs)
def test_a_perfect_order_loses_exactly_nothing_however_ties_fall(y, k):
    for order in (np.argsort(-y, kind="stable"), np.lexsort((-np.arange(len(y)), -y))):
        assert R.ndcg_loss(order, y, k) == 0.0
        assert R.ap_loss(order, y) == 0.0
        assert R.precision_loss(order, y, k or 3) == 0.0
        assert R.pairwise_disagreement_loss(order, y) == 0.0


@pytest.mark.parametrize("grade", [0.0, 3.0])
def test_lists_of_one_level_lose_nothing(grade):
    y, order = np.full(6, grade), np.array([5, 3, 1, 0, 2, 4])
    assert [R.ndcg_loss(order, y), R.ap_loss(order, y), R.precision_loss(order, y, 2)] == [0, 0, 0]


@pytest.mark.parametrize("top", [30.0, 2000.0, 1e-9])
def test_no_grade_overflows_and_small_ones_keep_their_digits(top):
    # Two items in the wrong order lose 1 - D(2), whatever their scale.
    loss = R.ndcg_loss(np.array([1, 0]), np.array([top, 0.0]))
    assert loss == pytest.approx(1 - 1 / math.log2(3), rel=1e-12)
    assert R.ndcg_loss(np.array([0, 2, 1]), np.array([top, top / 2, 0.0])) > 0 or top == 2000.0


def test_discounts_do_not_depend_on_what_was_asked_before():
    long = R.discounts(5000)[:10].copy()
    assert np.array_equal(R.discounts(10), long)
    assert not R.discounts(10).flags.writeable


@given(st.floats(0, 2000), st.integers(1, 40))
def test_grade_zero_gains_exactly_nothing(top, zeros):
    y = np.zeros(zeros + 1)
    y[zeros // 2] = top
    gained = R.gains(y)
    assert np.count_nonzero(gained) == (top > 0)
    assert (gained >= 0).all()
