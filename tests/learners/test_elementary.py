"""The elementary functions against `math`, and their sums against plain loops."""

import math

import numpy as np
import pytest

from feedrank.learners.kernel import elementary


def worst(approximate, exact):
    return max(abs(a - e) / abs(e) if e else abs(a) for a, e in zip(approximate.tolist(), exact, strict=True))


@pytest.mark.parametrize("width", [1e-12, 1e-3, 1.0, 40.0, 708.0])
def test_exp_agrees_with_math(width):
    x = np.random.default_rng(1).uniform(-width, width, 20_000)
    assert worst(elementary.exp(x), map(math.exp, x.tolist())) < 5e-16


def test_exp_is_finite_and_positive_everywhere():
    values = elementary.exp(np.array([-1e308, -800.0, 0.0, 800.0, 1e308, -np.inf, np.inf]))
    assert np.isfinite(values).all()
    assert (values > 0).all()
    assert values[2] == 1.0


@pytest.mark.parametrize(("low", "high"), [(-320, 300), (-3, 3), (-1e-4, 1e-4)])
def test_log_agrees_with_math(low, high):
    x = 10.0 ** np.random.default_rng(2).uniform(low, high, 20_000)
    assert worst(elementary.log(x), map(math.log, x.tolist())) < 5e-16
    assert elementary.log(np.array([1.0]))[0] == 0.0


def test_arrays_have_the_bits_of_single_numbers_where_exponents_change():
    """Just below, at and above every power of two and its root, where the bits of a number are split."""
    k = np.arange(-1_021, 1_024)
    edges = np.concatenate([np.ldexp(start, k) for start in (1.0, elementary.HALF_ROOT)])
    x = np.concatenate((np.nextafter(edges, 0.0), edges, np.nextafter(edges, np.inf)))
    for values in (x, np.append(x, [5e-324, 1e-310])):  # beside numbers that are not normal too
        assert elementary.log(values).tolist() == [elementary.log_of(value) for value in values.tolist()]
    x = np.concatenate((elementary.log(x), np.arange(-2_042.0, 2_046.0) / elementary.INVERSE_LN2 / 2.0))
    for values in (x, np.append(x, [-0.0, 0.0, 800.0, -800.0])):
        assert elementary.exp(values).tolist() == [elementary.exp_of(value) for value in values.tolist()]
    assert elementary.exp_to_one(-np.abs(x)).tolist() == elementary.exp(-np.abs(x)).tolist()


def test_cosine_agrees_with_math():
    turns = np.random.default_rng(3).uniform(-20, 20, 50_000)
    parts = turns - np.rint(turns)  # exact, so that `math` starts from the same angle
    exact = np.array([math.cos(2 * math.pi * f) for f in parts.tolist()])
    assert np.abs(elementary.cos_turns(turns) - exact).max() < 6e-16
    quarters = elementary.cos_turns(np.array([0.0, 0.25, 0.5, 0.75, 1.0, -0.5]))
    assert np.abs(quarters - [1, 0, -1, 0, 1, -1]).max() < 3e-16


def test_probabilities_sum_to_one_at_any_scale():
    for scale in (1e-9, 1.0, 1e4):
        p = elementary.softmax(np.random.default_rng(4).normal(size=30) * scale)
        assert abs(p.sum() - 1) < 1e-15
    t = np.linspace(-50, 50, 1001)
    assert np.abs(elementary.sigmoid(t) + elementary.sigmoid(-t) - 1).max() < 3e-16


@pytest.mark.parametrize("columns", [1, 2, 3, 100])
def test_sums_go_from_the_first_to_the_last(columns):
    rows = np.random.default_rng(5).normal(size=(257, columns)) * 10.0 ** np.arange(257)[:, None] ** 0.5
    plain = [0.0] * columns
    for row in rows.tolist():
        plain = [a + b for a, b in zip(plain, row, strict=True)]
    assert elementary.row_total(rows).tolist() == plain
    assert elementary.total(rows[:, 0]) == plain[0]
    assert elementary.total(np.empty(0)) == 0.0


@pytest.mark.parametrize(
    ("rows", "width"), [(0, 4), (5, 1), (1, 2), (3_000, 2), (7, 3), (300, 104), (40, 9_000)]
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_product_of_rows_rounds_twice_and_adds_from_the_first_to_the_last(rows, width, order):
    rng = np.random.default_rng(rows + width)
    values, block = rng.normal(size=rows), np.asarray(rng.normal(size=(rows, width)), order=order)
    expected = np.zeros(width)
    for value, row in zip(values, block, strict=True):
        expected = expected + value * row
    assert elementary.row_product(values, block).tobytes() == expected.tobytes()
