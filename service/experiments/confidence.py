"""Confidence sequences for running means of bounded differences, valid at every look.

For predictable guesses x^_i of X_i with X_i - x^_i >= -c, and 0 <= lambda < 1/c, Fan's inequality makes

    exp(lambda sum (X_i - E[X_i | past]) - psi(lambda) sum (X_i - x^_i)^2),
    psi(lambda) = (-log(1 - c lambda) - c lambda) / c^2,

a nonnegative supermartingale (Howard, Ramdas, McAuliffe and Sekhon 2021, Theorem 4; Waudby-Smith and Ramdas 2024,
section 3.2). So is its mixture over a fixed grid of lambda, and Ville's inequality bounds for all times at once how far
sum X_i may stray from the sum of its conditional means. Since each lambda is constant in time, what is covered is the plain
running mean of the effect, *whatever its drift*: arms that learn need just that, and it is why the capital of
a bet on one fixed mean is not used here. The state is three numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# lambda c over three decades with half-Cauchy weights: flat below the scale (large samples), 1 / lambda above (small).
_SCALE = 0.2
_BETS: Floats = np.geomspace(_SCALE / 300, 0.95, 40)
_LOG_WEIGHTS: Floats = np.log(_BETS / (1 + (_BETS / _SCALE) ** 2))
_LOG_WEIGHTS -= np.log(np.exp(_LOG_WEIGHTS).sum())
_PSI: Floats = -np.log1p(-_BETS) - _BETS


@dataclass(slots=True)
class Sums:
    """n, sum X_i and sum (X_i - x^_i)^2."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float, guess: float) -> None:
        """Take in X_i = `value`; `guess` must have been known before it."""
        self.n += 1
        self.total += value
        self.squares += (value - guess) ** 2


def log_capital(total: ArrayLike, squares: ArrayLike, c: float) -> Floats:
    """log of the mixture at sum (X_i - mean) = `total`, entry by entry; against mean 0 it tests `no better than`."""
    s = np.asarray(total, dtype=np.float64)[..., None] / c
    v = np.asarray(squares, dtype=np.float64)[..., None] / c**2
    exponents = _BETS * s - _PSI * v + _LOG_WEIGHTS
    top = exponents.max(axis=-1)
    result: Floats = top + np.log(np.exp(exponents - top[..., None]).sum(axis=-1))
    return result


def boundary(squares: float, alpha: float, c: float) -> float:
    """The s at which the mixture reaches 1 / alpha: P(ever sum X_i - sum E[X_i | past] >= s) <= alpha."""
    v = squares / c**2
    goal = log(1 / alpha)
    s = sqrt(2 * v * goal) + goal
    # The log of a mixture of exponentials is convex and increasing: Newton comes down to the root from the right.
    for _ in range(100):
        exponents = _BETS * s - _PSI * v + _LOG_WEIGHTS
        top = float(exponents.max())
        parts = np.exp(exponents - top)
        mass = float(parts.sum())
        step = (top + log(mass) - goal) * mass / float(parts @ _BETS)
        s -= step
        if abs(step) <= 1e-10 * (1 + s):
            break
    return s * c


def interval(sums: Sums, alpha: float, c: float, bound: float = 1.0) -> tuple[float, float]:
    """The two-sided confidence sequence of the running mean, at its present place, within [-bound, bound]."""
    if sums.n == 0:
        return -bound, bound
    mean, width = sums.total / sums.n, boundary(sums.squares, alpha / 2, c) / sums.n
    return max(mean - width, -bound), min(mean + width, bound)


def needed(sums: Sums, alpha: float, c: float) -> int | None:
    """How many more rounds until the sequence leaves 0 out, were effect and spread to stay as they are now.

    0 when it does already; None when there is no effect to go by.
    """
    if sums.n == 0 or sums.total == 0.0:
        return None
    mean, spread = abs(sums.total) / sums.n, sums.squares / sums.n

    def decided(n: float) -> bool:
        return boundary(spread * n, alpha / 2, c) <= mean * n

    if decided(sums.n):
        return 0
    low, high = float(sums.n), 2.0 * sums.n
    while not decided(high):
        low, high = high, 2 * high
        if high > 1e12:
            return None
    while high - low > max(1.0, 0.001 * low):
        middle = (low + high) / 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return int(np.ceil(high)) - sums.n
