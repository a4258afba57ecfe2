"""Powers and logarithms of other bases, from the kernel's exp and log: the same bits on every CPU.

Exact where the true value is a whole number or a power of two: 2^3 is 8, and log2 8 is 3. All take and give arrays.
"""

import numpy as np

from . import exp, log
from .elementary import COTH, HALF_ROOT, Floats, polynomial

LN2 = float.fromhex("0x1.62e42fefa39efp-1")


def power(x: Floats, q: float) -> Floats:
    """x^q = e^(q ln x) for x of at least 0 and q above 0."""
    positive = x > 0.0
    return np.where(positive, exp(q * log(np.where(positive, x, 1.0))), 0.0)


def exp2(x: Floats) -> Floats:
    """2^x = 2^k e^((x - k) ln 2), k the nearest whole number; |x| of at most 1000."""
    k = np.rint(x)
    return np.asarray(np.ldexp(exp((x - k) * LN2), k.astype(np.int32)))


def log2(x: Floats) -> Floats:
    """log2 x = k + ln m / ln 2, x = m 2^k; x above 0."""
    m, k = np.frexp(x)
    low = m < HALF_ROOT
    return np.asarray((k - low) + log(np.where(low, m + m, m)) / LN2)


def expm1(x: Floats) -> Floats:
    """e^x - 1, by 2 x / (x coth(x / 2) - x) where it would cancel."""
    near = np.where(np.abs(x) < 0.34, x, 0.0)
    square = near * near
    small = 2.0 * near / (polynomial(COTH, square) * square + 2.0 - near)
    return np.where(np.abs(x) < 0.34, small, exp(x) - 1.0)


def log1p(x: Floats) -> Floats:
    """ln(1 + x), with what the rounding of u = 1 + x loses: ln(u) x / (u - 1); x above -1."""
    u = 1.0 + x
    rounded = u == 1.0
    return np.where(rounded, x, log(u) * (x / np.where(rounded, 1.0, u - 1.0)))


def logaddexp(a: Floats, b: Floats) -> Floats:
    """ln(e^a + e^b)."""
    top = np.maximum(a, b)
    return np.asarray(top + log1p(exp(np.minimum(a, b) - top)))
