"""Every search of every task against brute force over all decisions of small problems."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedrank.learners.losses import subsets
from feedrank.learners.tasks.classes import REJECT, Binary, Multiclass, Ordinal, Reject
from feedrank.learners.tasks.multilabel import ErrorSetSize, Hamming, Multilabel, SubsetZeroOne
from feedrank.learners.tasks.rankings import AP, NDCG, Precision

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
    assert loss.min() == 0.0

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


def f_measure_loss(a, b, c, d):
    return (b + c) / np.maximum(1, 2 * a + b + c)


@pytest.mark.parametrize(
    "task",
    [
        SubsetZeroOne(),
        Hamming(),
        ErrorSetSize(),
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


@pytest.mark.parametrize("small", [0, 24])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_rankings(small, data):
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
    with pytest.MonkeyPatch.context() as patch:  # 0 lets the merge take lists that the assignment would
        patch.setattr("feedrank.learners.tasks.rankings.SMALL", small)
        for task in (
            NDCG(None, position, exponent),
            NDCG(k, position, exponent),
            Precision(k, position, exponent),
        ):
            check(task, orders(m), t, y)
        check(AP(None, position, exponent), orders(m), t, y)
