"""Powers and logarithms: close to the true values, exact where those are whole."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from feedrank.learners.kernel import powers


def close(ours, true, units=16):
    assert np.abs(ours - true).max(initial=0.0) <= units * np.spacing(np.abs(true).max(initial=1.0))


@given(st.floats(1e-8, 1e8), st.floats(0.1, 30.0))
def test_powers_are_close(x, q):
    assert np.isclose(powers.power(np.array([x]), q)[0], x**q, rtol=1e-12)


@given(st.floats(-600.0, 600.0))
def test_exponentials_and_logarithms_are_close(x):
    at = np.array([x])
    assert np.isclose(powers.exp2(at)[0], np.exp2(x), rtol=1e-14)
    assert np.isclose(powers.expm1(at)[0], np.expm1(x), rtol=1e-14)
    assert np.isclose(powers.logaddexp(at, np.array([1.0]))[0], np.logaddexp(x, 1.0), rtol=1e-14)
    if x > 0.0:
        close(powers.log2(at), np.log2(at))
    if x > -1.0:
        assert np.isclose(powers.log1p(at)[0], np.log1p(x), rtol=1e-14)


def test_whole_numbers_come_out_whole():
    k = np.arange(-1000.0, 1000.0)
    assert (powers.exp2(k) == np.ldexp(1.0, k.astype(int))).all()
    assert (powers.log2(np.ldexp(1.0, k.astype(int))) == k).all()
    assert powers.power(np.array([0.0, 1.0]), 2.5).tolist() == [0.0, 1.0]
    tiny = np.array([0.0, 1e-300, -1e-18])
    assert powers.expm1(tiny).tolist() == powers.log1p(tiny).tolist() == tiny.tolist()
