"""Wrong cells: one value of a thousand times its size may not ruin its feature's scale; a new unit must get through."""

import numpy as np
import pytest

from feedrank.learners import build
from feedrank.learners.instances import EMPTY
from feedrank.learners.kernel import scale, tally

ROW = np.zeros(1, dtype=np.intp)


def spread(values):
    statistics = np.zeros((1, 4))
    for value in values:
        tally(ROW, np.array([value]), statistics, 0)
    count, _, deviations, _ = statistics[0]
    return float(np.sqrt(deviations / count))


def test_one_wrong_cell_moves_the_scale_a_little():
    values = np.random.default_rng(0).normal(3.0, 2.0, 1000)
    wrong = values.copy()
    wrong[[7, 500]] *= 1e6
    assert spread(wrong) < 1.3 * spread(values)


def test_a_wrong_cell_of_a_constant_is_worth_a_few_constants():
    assert spread([1.0] * 50 + [1e6] + [1.0] * 50) < 1.0


@pytest.mark.parametrize("before", [20, 300])
def test_a_new_unit_gets_through(before):
    rng = np.random.default_rng(1)
    values = np.concatenate((rng.normal(size=before), 1000.0 * rng.normal(size=20 * before)))
    assert spread(values) > 300.0


def test_the_same_at_any_unit():
    values = np.random.default_rng(2).standard_cauchy(200)
    assert spread(values * 1024.0) == 1024.0 * spread(values)


def test_extreme_values_leave_finite_inputs():
    statistics = np.zeros((1, 4))
    for value in [1e150, -1e150, 0.0, 5e-324, 1e150, 1e-308, -1e150] * 3:
        tally(ROW, np.array([value]), statistics, 0)
        u, _, z, _, _ = scale(ROW, np.array([value]), EMPTY, statistics, 0, 1, 5)
        assert np.abs(np.concatenate((u, z))).max() <= 2.0


def mistakes(named, wrong):
    rng = np.random.default_rng(4)
    learner = build({"task": "multiclass", "experts": ["dual-ascent", "adagrad"]})
    for _ in range(600):
        x = dict(zip("abcdef", rng.normal(size=6).tolist(), strict=True))
        label = str(x["a"] + x["b"] + x["c"] > 0.0)
        cells = {f"{name}{value > 0.0}": 1.0 for name, value in x.items()} if named else x
        spoilt = {name: value * (1e6 if rng.random() < wrong else 1.0) for name, value in cells.items()}
        learner.learn({"features": spoilt}, {"label": label})
    return learner.progress.mistakes


@pytest.mark.parametrize("named", [True, False])
def test_the_preset_stands_a_wrong_cell_in_five_hundred(named):
    assert mistakes(named, 0.002) < 1.3 * mistakes(named, 0.0) + 10
