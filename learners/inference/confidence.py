"""Confidence sequences for running means of bounded values, valid at every look.

For guesses g_t of X_t made before it, X_t - g_t >= -c, and a bet 0 <= lambda < 1/c that never changes, 1 + x <= e^x makes

    prod_t (1 + lambda (X_t - g_t)) / exp(lambda sum_t (E[X_t | past] - g_t))

a nonnegative supermartingale from 1: in expectation each factor above is 1 + lambda (E[X_t | past] - g_t). So is a
mixture over a fixed grid of lambda, and by Ville's inequality it reaches 1 / alpha at any time with probability at most
alpha. Solving for the sum of the conditional means gives a lower bound of their running mean for all times at once; the
upper bound is the same on -X. This is the capital of betting (Waudby-Smith and Ramdas 2024) around guesses instead of
one fixed mean: since each lambda is constant, what is covered is the plain running mean *whatever its drift*, which is
what learners that learn need.

It is never looser than Fan's inequality (Howard, Ramdas, McAuliffe and Sekhon 2021), log(1 + y) >= y + (log(1 - b) + b)
y^2 / b^2 for y >= -b: there a value far above its guess costs as much as one below it.

Products are kept as mantissa and exponent of two: multiplying has the same bits on every CPU, and a fold may depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..instances import Floats
from ..kernel import elementary

__all__ = ["BETS", "LOG_WEIGHTS", "WEIGHTS", "Capital", "log_mixture", "lower_bounds", "needed"]

Int64s = NDArray[np.int64]

# lambda c over three decades with half-Cauchy weights: flat below the scale (large samples), 1 / lambda above (small).
_SCALE = 0.3
BETS: Floats = np.geomspace(0.001, 0.97, 24)
_MASS: Floats = BETS / (1 + (BETS / _SCALE) ** 2)
WEIGHTS: Floats = _MASS / elementary.total(_MASS)
LOG_WEIGHTS: Floats = elementary.log(WEIGHTS)
_LN2 = 0.6931471805599453
_STEPS = 100  # of Newton; some ten are taken


@dataclass(slots=True)
class Capital:
    """prod_t (1 + lambda (X_t - g_t)) of several sequences (rows), for each lambda of the grid (columns)."""

    mantissa: Floats
    exponent: Int64s

    @classmethod
    def new(cls, rows: int) -> Capital:
        """Nothing bet yet: 1 everywhere."""
        return cls(np.full((rows, len(BETS)), 0.5), np.ones((rows, len(BETS)), dtype=np.int64))

    def add(self, rows: Sequence[int], deviations: Sequence[float]) -> None:
        """(X_t - g_t) / c, at least -1, of the named rows; the others are guessed exactly."""
        factors = 1 + np.asarray(deviations)[:, None] * BETS
        index = np.asarray(rows)
        mantissa, exponent = np.frexp(self.mantissa[index] * factors)
        self.mantissa[index] = mantissa
        self.exponent[index] += exponent

    def logs(self, rows: Sequence[int] | slice = slice(None)) -> Floats:
        """log of the products."""
        mantissa = self.mantissa[rows]
        logs: Floats = elementary.log(mantissa.ravel()).reshape(mantissa.shape) + _LN2 * self.exponent[rows]
        return logs


def log_mixture(logs: Floats, guesses: ArrayLike, c: ArrayLike) -> Floats:
    """log of the mixture against a mean of 0, entry by entry; `logs` ends in the grid, `guesses` are sums of g_t."""
    shift = (np.asarray(guesses, dtype=np.float64) / np.asarray(c, dtype=np.float64))[..., None]
    exponents = logs + LOG_WEIGHTS + BETS * shift
    top = exponents.max(axis=-1)
    mixture: Floats = top + np.log(np.exp(exponents - top[..., None]).sum(axis=-1))
    return mixture


def lower_bounds(
    logs: Floats, guesses: ArrayLike, n: ArrayLike, c: ArrayLike, alpha: ArrayLike
) -> list[float]:
    """The running means that the mixtures of the rows of `logs` exclude from below, each at its own `alpha`.

    (sum g + u) / n with log sum_k w_k exp(L_k - lambda_k u) = log(1 / alpha).
    """
    rows = len(logs)
    g, count, scale, level = (
        np.broadcast_to(np.asarray(each, dtype=np.float64), (rows,)) for each in (guesses, n, c, alpha)
    )
    goal = elementary.log(1 / level)
    exponents = logs + LOG_WEIGHTS
    # One bet alone reaches the goal here, so the mixture is past it. It is convex in u: Newton comes up to the root
    # from the left.
    u = ((exponents - goal[:, None]) / BETS).max(axis=1)
    for _ in range(_STEPS):
        shifted = exponents - BETS * u[:, None]
        top = shifted.max(axis=1)
        parts = elementary.exp((shifted - top[:, None]).ravel()).reshape(shifted.shape)
        mass, slope = (np.add.accumulate(each, axis=1)[:, -1] for each in (parts, parts * BETS))
        step = (top + elementary.log(mass) - goal) * mass / slope
        u = u + step
        if (np.abs(step) <= 1e-10 * (1 + np.abs(u))).all():
            break
    means: list[float] = ((g + u * scale) / count).tolist()
    return means


def needed(logs: Floats, guesses: float, n: int, c: float, alpha: float) -> int | None:
    """How many more values until the mixture excludes a mean of 0, were it to grow as it has so far.

    0 when it does already; None when it has not grown, or would take for ever.
    """
    if n == 0:
        return None
    rates = (logs + BETS * (guesses / c)) / n
    goal = float(elementary.log(np.array([1 / alpha]))[0])
    if float(rates.max()) <= 0:
        return None
    # sum_k w_k exp(m r_k) >= 1 / alpha: first by powers of two, then finer between one and the one before.
    grid, first = n * 2.0 ** np.arange(41), 0
    for finer in (32, 32, 0):
        reached = log_mixture(grid[:, None] * rates, 0.0, 1.0) >= goal
        if not reached.any():
            return None
        first = int(np.argmax(reached))
        if first == 0 or not finer:
            break
        grid = np.linspace(grid[first - 1], grid[first], finer + 1)
    return int(np.ceil(grid[first])) - n
