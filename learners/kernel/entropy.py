"""A step of entropic weights on one pair of labels, in place: the specification of the expert `entropy`.

Cells d_jk = u_jk - 1 and their sums D_k make w_jk = u_jk / Z_k, Z_k = size + D_k: see algorithms/auto/entropy_expert.py.

    rho_k(a) = sum_j x_j u_jk e^(a x_j) / (Z_k + sum_j u_jk (e^(a x_j) - 1))        the score of label k after a step of a
    tau      in [0, most]:  rho_r(tau) - rho_s(-tau) = margin, `most` where that is not enough
    u_jr <- u_jr e^(tau x_j),   u_js <- u_js e^(-tau x_j),   both kept in [LEAST, HIGHEST]
"""

import math
from collections.abc import Callable

import numpy as np

from .elementary import Floats, exp, total
from .reference import Ints

LEAST, HIGHEST = 1e-6, 1e9  # of u: 1 + d keeps its digits, and so does a sum of d that grew and shrank again
STEPS = 40
CLOSE = 1e-9  # relative, of tau
FARTHEST = 400.0


def entropic_step(
    cells: Floats,
    sums: Floats,
    rows: Ints,
    values: Floats,
    pair: tuple[int, int],
    size: float,
    most: float,
    margin: float,
) -> Floats:
    """The old cells of r, then those of s; `pair` is (r, s), `rows` and `values` > 0 are x."""
    r, s = pair
    old = cells[rows, r], cells[rows, s]
    up, down = 1.0 + old[0], 1.0 + old[1]
    rests = max(size + float(sums[r]) - total(up), 0.0), max(size + float(sums[s]) - total(down), 0.0)

    def gap(tau: float) -> tuple[Floats, float, float]:
        """e^(tau x), the margin that is left over, and its slope."""
        powers = exp(np.minimum(tau * values, FARTHEST))
        high, more = _moments(up * powers, values, rests[0])
        low, less = _moments(down / powers, values, rests[1])
        return powers, (high - low) - margin, more + less

    powers = _root(gap, most)
    for column, before, raised in ((r, old[0], up * powers), (s, old[1], down / powers)):
        after = np.minimum(np.maximum(raised, LEAST), HIGHEST) - 1.0
        sums[column] += total(after - before)
        cells[rows, column] = after
    return np.concatenate(old)


def _moments(weights: Floats, x: Floats, rest: float) -> tuple[float, float]:
    """Mean and variance of x under these weights, `rest` being the weight of 0."""
    first = weights * x
    whole = rest + total(weights)
    mean = total(first) / whole
    return mean, max(total(first * x) / whole - mean * mean, 0.0)


def _root(gap: Callable[[float], tuple[Floats, float, float]], most: float) -> Floats:
    """e^(tau x) where the gap, which grows with tau, is 0: Newton's steps, a bisection where one leaves the bracket."""
    at = low = 0.0
    high, bounded = most, False
    powers, value, slope = gap(at)
    for _ in range(STEPS):
        if value == 0.0 or (value > 0.0 and at == 0.0):
            break
        to = at + (-value / slope if slope > 0.0 else math.inf)
        if to >= high and not bounded:
            to = high
        elif not low < to < high:
            to = 0.5 * (low + high)
        moved, at = abs(to - at), to
        powers, value, slope = gap(at)
        if value <= 0.0 and at >= high:
            break
        if value > 0.0:
            high, bounded = at, True
        else:
            low = at
        if moved <= CLOSE * at:
            break
    return powers
