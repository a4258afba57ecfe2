"""Trees on a window: the native kernel against its specification, and what the sums of the specification must be."""

import numpy as np
import pytest

from feedrank.learners.algorithms.auto import trees
from feedrank.learners.kernel import forest

LINKS = {"softmax": forest.SOFTMAX, "shared": forest.SHARED, "bits": forest.BITS}


def play(module, link, columns, features, events, seed):
    """The arrays after so many events."""
    rng = np.random.default_rng(seed)
    state = trees._forest(features, forest.WINDOW, columns, link)
    kinds = rng.integers(0, 4, features)
    for _ in range(events):
        x = rng.normal(size=features).astype(np.float32)
        x = np.where(kinds == 0, np.rint(x), x) * (kinds > 1 + (rng.random(features) < 0.5))
        x = (x + 0.0).astype(np.float32)
        truth = int(x[:2].sum() > 0) if columns == 1 else 1 << int(rng.integers(columns)) | int(x[0] > 0)
        weight = float(rng.choice([1.0, 1.0, 0.5, 1000.0]))
        assert module.forest_scores(state, x).shape == (columns,)
        module.forest_insert(state, x, truth, weight)
        for _ in range(module.forest_due(state, features)):
            module.forest_step(state, features)
    return state


def bits(state):
    return [(array.dtype.str, array.shape, array.tobytes()) for array in state[:-1]]


@pytest.mark.parametrize(
    ("link", "columns", "features", "events"),
    [
        ("softmax", 1, 6, 300),
        ("softmax", 4, 3, 150),
        ("softmax", 5, 90, 60),
        ("shared", 3, 5, 120),
        ("bits", 2, 7, 200),
        ("bits", 33, 4, 40),
        ("softmax", 1, 0, 20),
        ("softmax", 1, 2, forest.WINDOW + 300),
    ],
)
def test_both_kernels_leave_the_same_bits(link, columns, features, events):
    native = pytest.importorskip("feedrank.learners.kernel._native", reason="the native kernel is not built")
    ours = play(forest, LINKS[link], columns, features, events, 1)
    assert bits(play(native, LINKS[link], columns, features, events, 1)) == bits(ours)
    assert ours.clock[forest.GROWN] > 1
