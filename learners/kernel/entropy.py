"""Steps of entropic weights, in place: the specification. `entropic_step` is that of the expert `entropy`, on two labels;
`entropic_move` that of weights/entropic.py, on some columns.

Cells d_jk = u_jk - 1 and their sums D_k make w_jk = u_jk / Z_k, Z_k = size + D_k: see algorithms/auto/entropy_expert.py.

    rho_k(a) = sum_j x_j u_jk e^(a x_j) / (Z_k + sum_j u_jk (e^(a x_j) - 1))        the score of label k after a step of a
    tau      in [0, most]:  rho_r(tau) - rho_s(-tau) = margin, `most` where that is not enough
    u_jr <- u_jr e^(tau x_j),   u_js <- u_js e^(-tau x_j),   both kept in [LEAST, HIGHEST]
"""

import math
from collections.abc import Callable

import numpy as np

from .elementary import Floats, exp, log, total
from .products import times
from .reference import Ints

LEAST, HIGHEST = 1e-6, 1e9  # of u: 1 + d keeps its digits, and so does a sum of d that grew and shrank again
STEPS = 40
CLOSE = 1e-9  # relative, of tau
FARTHEST = 400.0  # theta - m; e^400 is 1e173
ROUNDING = 2.0**-52
SUMS_END = 1e200  # beyond it, or below its inverse, a sum of u gets another level
TOLERANCE = 1e-10  # of the relative error of a sum


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


def entropic_move(
    theta: Floats,
    u: Floats,
    sums: tuple[Floats, Floats, Floats],
    rows: Ints,
    values: Floats,
    columns: Ints,
    steps: Floats,
) -> tuple[Floats, list[int]]:
    """theta <- theta - x steps' in these columns, u = exp(theta - level) and the sums of u with their errors after it.

    `sums` are (Z, level, drift), one a label. Given back: the old theta, and of each column 1 if its level must be made
    anew, 2 if its sum must.
    """
    Z, level, drift = sums
    places = (rows[:, None], columns)
    old, before = theta[places], u[places]
    moved = old - np.multiply.outer(values, steps)
    raised = moved - level[columns]
    near = raised.max(axis=0, initial=0.0) <= FARTHEST
    new = exp(np.minimum(raised, FARTHEST))
    delta = times(np.ones(len(new)), new - before)
    after = Z[columns] + delta
    safe = np.where(after > 0.0, after, 1.0)
    noise = ROUNDING * (8.0 + np.abs(level[columns]) + np.abs(log(safe))) * (np.abs(after) + np.abs(delta))
    wrong = (drift[columns] * Z[columns] + noise) / safe
    kept = near & (after > 1.0 / SUMS_END) & (after < SUMS_END)
    codes = np.where(kept, np.where(wrong > TOLERANCE, 2, 0), 1).tolist()
    # Nothing that could fail comes after the first of these.
    theta[places], u[places], Z[columns], drift[columns] = moved, new, after, wrong
    return old, codes


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
