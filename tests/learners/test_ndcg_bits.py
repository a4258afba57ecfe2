"""NDCG and values scaled within their list: the native pieces have the bits of the NumPy ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.learners.kernel import ndcg

native = pytest.importorskip("feedrank.learners.kernel._native", reason="the native kernel is not built")

SIZES = st.sampled_from([1, 2, 5, 7, 8, 9, 10, 16, 100, 127, 128, 129, 200, 257, 1000])


def grades_of(rng, count):
    kinds = [
        rng.integers(0, 5, count).astype(float),
        rng.random(count) * 10.0 ** rng.integers(-4, 5),
        np.zeros(count),
        rng.random(count) * 0.02,
    ]
    return kinds[rng.integers(len(kinds))]


@given(st.integers(0, 2**32 - 1), SIZES)
def test_gains_and_losses_have_the_same_bits(seed, count):
    rng = np.random.default_rng(seed)
    grades = grades_of(rng, count)
    gained = ndcg.gains(grades)
    assert native.gains(grades).tobytes() == gained.tobytes()
    order = rng.permutation(count).astype(np.intp)
    discounts = 1 / np.log2(np.arange(2, 2 + rng.integers(1, count + 1)))
    assert native.ndcg_loss(order, gained, discounts) == ndcg.ndcg_loss(order, gained, discounts)


@given(st.integers(0, 2**32 - 1), SIZES, st.integers(1, 40))
def test_a_list_is_scaled_to_the_same_bits(seed, count, features):
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=(count, features)), rng.integers(0, 9))
    assert native.list_scaled(values).tobytes() == ndcg.list_scaled(values).tobytes()


def test_what_would_read_beyond_its_arrays_is_refused():
    gained, discounts = np.array([1.0, 0.0, 0.5]), np.ones(3)
    with pytest.raises(IndexError):
        native.ndcg_loss(np.array([0, 1, 3]), gained, discounts)
    with pytest.raises(ValueError, match="shapes"):
        native.ndcg_loss(np.array([0, 1]), gained, discounts)
    assert native.ndcg_loss(np.array([0, 2, 1]), gained, np.ones(9)) == 0.0
