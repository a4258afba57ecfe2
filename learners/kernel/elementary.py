"""Elementary functions whose bits are the same on every CPU: + - * / and powers of two only, in one fixed order.

NumPy's own exp, log and cos take another code path, and round otherwise, with every generation of vector
instructions; weights that depend on them would differ between replicas. IEEE 754 fixes + - * / and sqrt to the bit,
rint, frexp and ldexp are exact, and a ufunc never fuses two of them. Each function here agrees with the true value to
a few units of 1e-16, relative. A native version repeats the same operations, one element at a time.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# ln 2 in two parts: the upper one has 32 bits, so that k * LN2_HIGH is exact for |k| < 2^21.
LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
INVERSE_LN2 = float.fromhex("0x1.71547652b82fep+0")
EXP_LOWEST, EXP_HIGHEST = -708.0, 709.0
# r coth(r / 2) = 2 + r^2 / 6 - r^4 / 360 + ..., 2 B_2k / (2k)! with the Bernoulli numbers; highest power first.
COTH = (
    1.0 / 37362124800.0,
    -691.0 / 653837184000.0,
    1.0 / 23950080.0,
    -1.0 / 604800.0,
    1.0 / 15120.0,
    -1.0 / 360.0,
    1.0 / 6.0,
)
# artanh(s) / s = 1 + s^2 / 3 + s^4 / 5 + ...
ARTANH = tuple(1.0 / n for n in range(25, 1, -2))
HALF_ROOT = float.fromhex("0x1.6a09e667f3bcdp-1")
TURN = float.fromhex("0x1.921fb54442d18p+2")
# (1 - sin(x) / x) / x^2 = 1 / 3! - x^2 / 5! + x^4 / 7! - ...
SINE = (
    1.0 / 25852016738884976640000.0,
    -1.0 / 51090942171709440000.0,
    1.0 / 121645100408832000.0,
    -1.0 / 355687428096000.0,
    1.0 / 1307674368000.0,
    -1.0 / 6227020800.0,
    1.0 / 39916800.0,
    -1.0 / 362880.0,
    1.0 / 5040.0,
    -1.0 / 120.0,
    1.0 / 6.0,
)


def _ready(values: tuple[float, ...]) -> tuple[Floats, ...]:
    """Constants as arrays of no dimension: NumPy takes them as they are, where it converts a float in each call."""
    return tuple(np.array(value) for value in values)


_COTH, _ARTANH, _SINE = _ready(COTH), _ready(ARTANH), _ready(SINE)
_LN2_HIGH, _LN2_LOW, _INVERSE_LN2, _HALF_ROOT = _ready((LN2_HIGH, LN2_LOW, INVERSE_LN2, HALF_ROOT))
_LOWEST, _HIGHEST, _ONE, _TWO = _ready((EXP_LOWEST, EXP_HIGHEST, 1.0, 2.0))
# Beside 1.5 * 2^52 a number keeps its whole part alone, rounded as rint does, in its last bits.
_WHOLE = np.array(1.5 * 2.0**52)
_BITS, _EXPONENT = np.dtype(np.int64), np.array(52)
_HALF_ROOT_BITS = np.array(HALF_ROOT).view(_BITS)
LEAST_NORMAL = float(np.finfo(np.float64).tiny)


FEW = 14  # numbers that take less time one by one than some thirty calls of NumPy do


def polynomial(coefficients: tuple[float, ...] | tuple[Floats, ...], x: Floats) -> Floats:
    """Horner's rule, the highest power first; at least two coefficients."""
    value: Floats = x * coefficients[0]
    value += coefficients[1]
    for coefficient in coefficients[2:]:
        value *= x
        value += coefficient
    return value


def exp(x: Floats) -> Floats:
    """e^x = 2^k (1 + 2 r / (r coth(r / 2) - r)), r = x - k ln 2.

    x is taken to [-708, 709]: the result is always finite and above 0.
    """
    if x.size <= FEW:
        return np.array([exp_of(value) for value in x.ravel().tolist()]).reshape(x.shape)
    return _exp(np.minimum(np.maximum(x, _LOWEST), _HIGHEST))


def exp_to_one(x: Floats) -> Floats:
    """The same, of numbers of at most 0."""
    return exp(x) if x.size <= FEW else _exp(np.maximum(x, _LOWEST))


def _exp(x: Floats) -> Floats:
    """e^x for x in [-708, 709]."""
    places = x * _INVERSE_LN2
    places += _WHOLE
    k = places - _WHOLE
    r: Floats = x - k * _LN2_HIGH
    k *= _LN2_LOW
    r -= k
    square = r * r
    even = polynomial(_COTH, square)
    even *= square
    even += _TWO
    even -= r
    r += r
    r /= even
    r += _ONE
    # Neither r nor 2^k r is beyond the normal numbers: k is added to the exponent.
    powers, bits = places.view(_BITS), r.view(_BITS)
    powers <<= _EXPONENT
    bits += powers
    return r


def log(x: Floats) -> Floats:
    """ln x = k ln 2 + 2 artanh((m - 1) / (m + 1)), x = m 2^k with m in [sqrt(1/2), sqrt(2)); x above 0, finite."""
    if x.size <= FEW:
        return np.array([log_of(value) for value in x.ravel().tolist()]).reshape(x.shape)
    if x.item(x.argmin()) >= LEAST_NORMAL and x.item(x.argmax()) < math.inf:
        # Of normal numbers k is how often the bits of sqrt(1/2) fit below, in exponents.
        bits = x.view(_BITS)
        k = bits - _HALF_ROOT_BITS
        k >>= _EXPONENT
        power = k.astype(np.float64)
        k <<= _EXPONENT
        m = np.subtract(bits, k, out=k).view(np.float64)
    else:
        m, exponents = np.frexp(x)
        low = m < _HALF_ROOT
        m = np.where(low, m + m, m)
        power = (exponents - low).astype(np.float64)
    s = m - _ONE
    m += _ONE
    s /= m
    square = s * s
    tail = polynomial(_ARTANH, square)
    tail *= square
    s += s
    tail *= s
    tail += power * _LN2_LOW
    tail += s
    power *= _LN2_HIGH
    power += tail
    return power


# log(1 + n) of small counts: most features are rare, and the logarithm is the dearest part of counting one.
LOGS = log(1.0 + np.arange(65_536.0))


def exp_of(x: float) -> float:
    """e^x of one number: the bits of `exp`."""
    if not EXP_LOWEST <= x <= EXP_HIGHEST:
        if math.isnan(x):
            return x
        x = EXP_LOWEST if x < 0.0 else EXP_HIGHEST
    k = float(round(x * INVERSE_LN2))
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    s = r * r
    a, b, c, d, e, f, g = COTH
    even = ((((((a * s + b) * s + c) * s + d) * s + e) * s + f) * s + g) * s + 2.0
    return math.ldexp(1.0 + 2.0 * r / (even - r), int(k))


def log_of(x: float) -> float:
    """ln x of one number: the bits of `log`."""
    m, k = math.frexp(x)
    if m < HALF_ROOT:
        m, k = m + m, k - 1
    s = (m - 1.0) / (m + 1.0)
    q = s * s
    a, b, c, d, e, f, g, h, i, j, n, o = ARTANH
    tail = ((((((a * q + b) * q + c) * q + d) * q + e) * q + f) * q + g) * q + h
    tail = ((((tail * q + i) * q + j) * q + n) * q + o) * q
    return k * LN2_HIGH + ((s + s) + ((s + s) * tail + k * LN2_LOW))


def cos_turns(turns: Floats) -> Floats:
    """cos(2 pi t) = sin(2 pi (1/4 - |f|)), f = t - rint(t): in turns the reduction is exact."""
    x = (0.25 - np.abs(turns - np.rint(turns))) * TURN
    square = x * x
    return np.asarray(x - x * square * polynomial(_SINE, square))


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + e^-x)."""
    return np.asarray(1.0 / (1.0 + exp(-x)))


def softmax(x: Floats) -> Floats:
    """e^x_i / sum e^x_j, summed from the first to the last."""
    if not len(x):
        return x
    powers = exp(x - x.max())
    return np.asarray(powers / total(powers))


_accumulate = np.add.accumulate


def total(values: Floats) -> float:
    """x_0 + x_1 + ..., from the first to the last: `np.sum` would go in blocks of eight."""
    if len(values) > 4:
        return float(_accumulate(values).item(-1))
    # One by one, as few unknown words are, they take less than an array does.
    sum_: float = values.item(0) if len(values) else 0.0
    for value in values[1:].tolist():
        sum_ += value
    return sum_


def row_total(rows: Floats) -> Floats:
    """The sum of the rows of a matrix, from the first to the last."""
    if rows.shape[1] == 1:
        # One column is one long row to NumPy, which it would sum in blocks.
        return np.array([total(rows[:, 0])])
    # Columns that lie one behind the other would be summed in blocks too.
    return np.asarray(np.add.reduce(np.ascontiguousarray(rows), axis=0))


# Past the search for arrays of other kinds, which takes as long as a short sum.
_einsum = getattr(np.einsum, "__wrapped__", np.einsum)


@cache
def _rounds_twice() -> bool:
    """Whether `np.einsum` rounds a product before it adds it, as + and * do, and adds the rows in their order.

    Its code is one for all CPUs of a kind, so that a small trial says it: a fused multiply-add shows in some of the bits.
    """
    for width in (2, 3, 4, 5, 7, 8, 9, 16, 31, 104):
        block = np.sqrt(np.arange(2.0, 2.0 + 9 * width)).reshape(9, width)
        values = 1.0 / np.arange(3.0, 12.0)
        if (_einsum("i,ij->j", values, block) != np.add.reduce(block * values[:, None], axis=0)).any():
            return False
    return True


def row_product(values: Floats, block: Floats) -> Floats:
    """v' B, every column from the first row to the last. A sum is never -0."""
    if block.shape[1] > 1 and _rounds_twice():
        # Columns that lie one behind the other would be summed in blocks.
        return np.asarray(_einsum("i,ij->j", values, np.ascontiguousarray(block)))
    return row_total(block * values[:, None]) + 0.0
