"""How the scores answer to the dual variables: rho_r(a) = d/da G(theta_r + a x), for one instance x and every label r.

G is the Fenchel conjugate of the complexity F, so rho_r(0) is the score of label r and rho_r(a) its score after the step
theta_r <- theta_r + a x. That is all the updates have to know about F:

    squared norm   F = |w|^2 / 2               G = |theta|^2 / 2             rho_r(a) = rho_r + a |x|^2
    entropy        F = sum w_j log(n w_j)      G = log(sum exp theta_j / n)  rho_r(a) = E_p[x e^(a x)] / E_p[e^(a x)]

with p = exp(theta_r) / Z_r. Where x takes the values 0 and c only, rho_r(a) = c sigmoid(logit(rho_r / c) + c a). So in
`Additive` and `Logistic` all labels move along one curve, `value`, each from its own `level`; a step of a moves the level
by a. That is what gives the closed forms of Section 4, and an exact update III. `Tilted` is the general case.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...instances import Floats
from ...kernel import exp, exp_of, log, log_of, times
from ...kernel.powers import expm1, log1p

__all__ = ["Additive", "Leveled", "Logistic", "Response", "Tilted", "root"]


# Beyond these, a probability says no more in float64 than that it is 0 or 1.
SMALLEST, LARGEST = 1e-300, 1.0 - 2.0**-53


class Response(Protocol):
    """What every update and the certificate need."""

    scores: Floats

    def at(self, alpha: Floats) -> tuple[Floats, Floats]:
        """rho_r(alpha_r) and its derivative, for all labels: G' and G'' along x."""

    def growth(self, alpha: Floats) -> float:
        """sum_r G(theta_r + alpha_r x) - G(theta_r): what the step takes from the dual objective."""

    def only(self, labels: NDArray[np.intp]) -> Response:
        """The same for some of the labels."""

    def pair(self, r: int, s: int, gamma: float, most: float) -> float:
        """The tau in [0, most] at which rho_r(tau) - rho_s(-tau) = gamma, or the end that comes nearest."""


class Leveled(Response, Protocol):
    """A response in which all labels share one curve."""

    levels: Floats

    def value(self, level: float) -> float:
        """The score at a level."""

    def slope(self, level: float) -> float:
        """Its derivative."""


class Additive:
    """The squared norm: score = |x|^2 level."""

    def __init__(self, scores: Floats, squared_norm: float) -> None:
        self.scores = scores
        self.squared_norm = squared_norm
        self.levels: Floats = scores / squared_norm

    def value(self, level: float) -> float:
        return self.squared_norm * level

    def slope(self, level: float) -> float:
        del level
        return self.squared_norm

    def at(self, alpha: Floats) -> tuple[Floats, Floats]:
        return self.scores + self.squared_norm * alpha, np.full(alpha.shape, self.squared_norm)

    def growth(self, alpha: Floats) -> float:
        return float((alpha * self.scores).sum() + 0.5 * self.squared_norm * (alpha * alpha).sum())

    def only(self, labels: NDArray[np.intp]) -> Additive:
        return Additive(self.scores[labels], self.squared_norm)

    def pair(self, r: int, s: int, gamma: float, most: float) -> float:
        """tau = (gamma - (rho_r - rho_s)) / (2 |x|^2)."""
        tau = (gamma - float(self.scores[r] - self.scores[s])) / (2.0 * self.squared_norm)
        return min(max(tau, 0.0), most)


class Logistic:
    """Entropy where x is 0 or c: score = c sigmoid(c level)."""

    def __init__(self, scores: Floats, c: float = 1.0) -> None:
        self.scores = scores
        self.c = c
        self.q: Floats = np.minimum(np.maximum(scores / c, SMALLEST), LARGEST)

    @cached_property
    def levels(self) -> Floats:
        """logit(q) / c."""
        levels: Floats = (log(self.q) - log1p(-self.q)) / self.c
        return levels

    def value(self, level: float) -> float:
        return self.c * _sigmoid(self.c * level)

    def slope(self, level: float) -> float:
        p = _sigmoid(self.c * level)
        return self.c * self.c * p * (1.0 - p)

    def at(self, alpha: Floats) -> tuple[Floats, Floats]:
        z = self.c * (self.levels + alpha)
        tail = exp(-np.abs(z))
        p = np.where(z > 0.0, 1.0, tail) / (1.0 + tail)
        return self.c * p, self.c * self.c * tail / ((1.0 + tail) * (1.0 + tail))

    def growth(self, alpha: Floats) -> float:
        moved = alpha.nonzero()[0]
        z, q = self.c * alpha[moved], self.q[moved]
        # log(1 + q (e^z - 1)), from the other end where e^z could overflow.
        near = log1p(q * expm1(np.minimum(z, 1.0)))
        far = z + log(q + (1.0 - q) * exp(-np.maximum(z, 1.0)))
        return float(np.where(z > 1.0, far, near).sum())

    def only(self, labels: NDArray[np.intp]) -> Logistic:
        return Logistic(self.scores[labels], self.c)

    def pair(self, r: int, s: int, gamma: float, most: float) -> float:
        """tau = log(beta) / c, beta the positive root of A beta^2 - B beta - D, with q = rho / c and gamma / c.

        A = q_r (1 - q_s)(1 - gamma), B = gamma (q_r q_s + (1 - q_r)(1 - q_s)), D = q_s (1 - q_r)(1 + gamma).
        A margin of 1 or more is out of reach of probabilities: then tau is `most`.
        """
        gamma /= self.c
        q, p = float(self.q[r]), float(self.q[s])
        A = q * (1.0 - p) * (1.0 - gamma)
        if A <= 0.0:
            return most
        B = gamma * (q * p + (1.0 - q) * (1.0 - p))
        D = p * (1.0 - q) * (1.0 + gamma)
        beta = (B + math.sqrt(B * B + 4.0 * A * D)) / (2.0 * A)
        return min(max(log_of(beta) / self.c, 0.0), most)


class Tilted:
    """Entropy for any non-negative x; `columns(labels)` gives log p = theta - log Z of some: (active features, labels)."""

    def __init__(self, scores: Floats, values: Floats, columns: Callable[[NDArray[np.intp]], Floats]) -> None:
        self.scores = scores
        self.values = values
        self.columns = columns
        self.powers: Floats = np.array([np.ones(len(values)), values, values * values])

    @cached_property
    def log_p(self) -> Floats:
        return self.columns(np.arange(len(self.scores)))

    @cached_property
    def log_rest(self) -> Floats:
        """The mass on features that are not active: it keeps its weight whatever the step."""
        rest = np.maximum(1.0 - exp(self.log_p).sum(axis=0), 0.0)
        log_rest: Floats = log(np.maximum(rest, SMALLEST))
        log_rest[rest == 0.0] = -np.inf
        return log_rest

    def only(self, labels: NDArray[np.intp]) -> Tilted:
        log_p = self.columns(labels)
        return Tilted(self.scores[labels], self.values, lambda some: log_p[:, some])

    def moments(self, alpha: Floats) -> tuple[Floats, Floats, Floats]:
        """log E_p[e^(a x)], and the mean and variance of x under p e^(a x), all by label."""
        # The largest exponent of a label is taken out: then the total is at least 1, however far alpha goes.
        exponents = self.log_p + np.multiply.outer(self.values, alpha)
        top = np.maximum(exponents.max(axis=0), self.log_rest)
        total, first, second = times(self.powers, exp(exponents - top))
        total = total + exp(self.log_rest - top)
        mean = first / total
        return log(total) + top, mean, np.maximum(second / total - mean * mean, 0.0)

    def at(self, alpha: Floats) -> tuple[Floats, Floats]:
        _, mean, variance = self.moments(alpha)
        return mean, variance

    def growth(self, alpha: Floats) -> float:
        moved = alpha.nonzero()[0]
        return float(self.only(moved).moments(alpha[moved])[0].sum())

    def pair(self, r: int, s: int, gamma: float, most: float) -> float:
        """A safeguarded Newton search: the margin grows with tau."""
        two, sign = self.only(np.array([r, s])), np.array([1.0, -1.0])

        def margin(tau: float) -> tuple[float, float]:
            mean, variance = two.at(tau * sign)
            return float(mean[0] - mean[1]) - gamma, float(variance[0] + variance[1])

        return root(margin, 0.0, most)


def _sigmoid(z: float) -> float:
    if z >= 0.0:
        return 1.0 / (1.0 + exp_of(-z))
    tail = exp_of(z)
    return tail / (1.0 + tail)


class _Increasing(Protocol):
    def __call__(self, at: float, /) -> tuple[float, float]: ...


def root(increasing: _Increasing, low: float, high: float, tolerance: float = 1e-12) -> float:
    """The zero in [low, high] of a non-decreasing function that returns (value, derivative); else the nearer end.

    Newton's step where it stays inside the bracket and the bracket shrinks, a bisection where it does not.
    """
    value, slope = increasing(low)
    if value >= 0.0:
        return low
    if increasing(high)[0] <= 0.0:
        return high
    at, before = low, high - low
    for _ in range(200):
        step = -value / slope if slope > 0.0 else math.inf
        # A Newton step must at least halve the one before, else bisect: then the bracket shrinks geometrically.
        if not low < at + step < high or abs(step) > 0.5 * before:
            step = 0.5 * (low + high) - at
        before = abs(step)
        at += step
        value, slope = increasing(at)
        if before <= tolerance * max(1.0, abs(at)) or value == 0.0:
            break
        if value < 0.0:
            low = at
        else:
            high = at
    return at
