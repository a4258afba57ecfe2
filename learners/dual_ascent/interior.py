"""Update III by the primal-dual interior point method of Section 4, O(k) an iteration.

With w_r = |alpha_r| and a slack w_0, problem (11) takes the form (12) of the paper, with signs gone:

    min sum_r f_r(w_r)   s.t.  w >= 0,  sum_{r in Y} w_r + w_0 = C,  sum_{r not in Y} w_r + w_0 = C

where f_r(w) = G(theta_r +- w x) - gamma w / 2 and f_0 = 0 (the reward gamma is shared by the two sides). The conditions
(16), (17), linearised at (w, lambda, nu), with mu a part of the gap eta = <lambda, w> over d = k + 1:

    f' + f'' dw - (lambda + dlambda) + A'(nu + dnu) = 0,    lambda w + lambda dw + w dlambda = mu

Eliminating dlambda leaves z dw = u - A' dnu with z = f'' + lambda / w and u = mu / w - f' - A' nu (the printed (19) and
(20) have slips), and A dw = b - A w leaves a 2 x 2 system for dnu.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .responses import Array, Response

__all__ = ["Solution", "interior_point"]

GAP = 1e-9  # of C times the hinge loss, the most that a round can add to the dual objective
MOST_ITERATIONS = 60  # ends a round at the edge of float64


class Solution(NamedTuple):
    """alpha, the duality gap that is left (of C times the hinge loss), and the number of iterations."""

    alpha: Array
    gap: float
    iterations: int


def interior_point(response: Response, relevant: NDArray[np.bool_], C: float, gamma: float) -> Solution:
    """The optimum of Eq. (11), to a duality gap of 1e-9 of C times the hinge loss of the round, which must be positive."""
    k, inside = len(relevant), int(relevant.sum())
    A = np.array([np.append(relevant, 1.0), np.append(~relevant, 1.0)])
    sign = np.where(relevant, 1.0, -1.0)
    hinge = gamma + float(response.scores[~relevant].max() - response.scores[relevant].min())

    def derivatives(w: Array) -> tuple[Array, Array]:
        slopes, bends = response.at(sign * w[:-1])
        return np.append(sign * slopes - 0.5 * gamma, 0.0), np.append(bends, 0.0)

    w = np.append(np.where(relevant, 0.5 * C / inside, 0.5 * C / (k - inside)), 0.5 * C)
    multipliers, nu = C * hinge / (k + 1) / w, np.zeros(2)
    slopes, bends = derivatives(w)
    iterations, s = 0, 0.0
    while True:
        eta = float(multipliers @ w)
        residual = slopes - multipliers + nu @ A
        gap = max(eta, C * float(np.abs(residual).max())) / (C * hinge)
        if gap <= GAP or iterations == MOST_ITERATIONS:
            return Solution(sign * w[:-1], gap, iterations)
        iterations += 1
        # The paper contracts the gap to a tenth; after a step that went nearly all the way, a hundredth is safe.
        mu = (0.01 if s > 0.9 else 0.1) * eta / (k + 1)
        z = bends + multipliers / w
        u = mu / w - slopes - nu @ A
        dnu = _solve(relevant, 1.0 / z, A @ (u / z) - (C - A @ w))
        dw = (u - dnu @ A) / z
        dmultipliers = (mu - multipliers * dw) / w - multipliers
        s = min(1.0, 0.99 * min(_room(w, dw), _room(multipliers, dmultipliers)))
        merit = _merit(C * residual, multipliers * w - mu)
        while True:
            w_, multipliers_, nu_ = w + s * dw, multipliers + s * dmultipliers, nu + s * dnu
            slopes, bends = derivatives(w_)
            residual = slopes - multipliers_ + nu_ @ A
            if s < 1e-6 or _merit(C * residual, multipliers_ * w_ - mu) <= (1.0 - 0.01 * s) * merit:
                break
            s *= 0.5
        w, multipliers, nu = w_, multipliers_, nu_


def _merit(residual: Array, centring: Array) -> float:
    """How far (16) and (17) are from holding, both as amounts of the objective."""
    return math.sqrt(residual @ residual + centring @ centring)


def _solve(relevant: NDArray[np.bool_], h: Array, e: Array) -> Array:
    """dnu of (A H A') dnu = e; a, b, c are the sums of h over Y, the others, the slack, so that nothing cancels."""
    a, b, c = float(h[:-1][relevant].sum()), float(h[:-1][~relevant].sum()), float(h[-1])
    return np.array([(b + c) * e[0] - c * e[1], (a + c) * e[1] - c * e[0]]) / (a * b + c * (a + b))


def _room(at: Array, step: Array) -> float:
    """The largest s for which at + s step >= 0."""
    return float(1.0 / max((-step / at).max(), 1e-300))
