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

from ...instances import Floats
from ...kernel import times
from ...kernel.products import dot
from .responses import Response

__all__ = ["Solution", "contenders", "interior_point"]

GAP = 1e-9  # of the hinge loss times the amount that closes it, about twice what the round adds to the dual objective
MOST_ITERATIONS = 60  # ends a round at the edge of float64


class Solution(NamedTuple):
    """alpha, the duality gap that is left (relative, see GAP), and the number of iterations."""

    alpha: Floats
    gap: float
    iterations: int


def interior_point(response: Response, relevant: NDArray[np.bool_], C: float, gamma: float) -> Solution:
    """The optimum of Eq. (11), for a round with a positive hinge loss."""
    near = contenders(response.scores, relevant, gamma)
    solution = _interior_point(response.only(near), relevant[near], C, gamma)
    alpha = np.zeros(len(relevant))
    alpha[near] = solution.alpha
    return solution._replace(alpha=alpha)


def contenders(scores: Floats, relevant: NDArray[np.bool_], gamma: float) -> NDArray[np.intp]:
    """The labels that can change: one side ends no further than gamma beyond the other's best, so the rest stay."""
    low, high = scores[relevant].min() - gamma, scores[~relevant].max() + gamma
    # With equality, because gamma may be lost in the rounding of the scores: the worst pair always contends.
    return np.flatnonzero(np.where(relevant, scores <= high, scores >= low))


def _interior_point(response: Response, relevant: NDArray[np.bool_], C: float, gamma: float) -> Solution:
    k, inside = len(relevant), int(relevant.sum())
    A = np.array([np.append(relevant, 1.0), np.append(~relevant, 1.0)])
    sign = np.where(relevant, 1.0, -1.0)

    def derivatives(w: Floats) -> tuple[Floats, Floats]:
        slopes, bends = response.at(sign * w[:-1])
        return np.append(sign * slopes - 0.5 * gamma, 0.0), np.append(bends, 0.0)

    amount, hinge = _scale(response, relevant, C, gamma)
    w = np.append(np.where(relevant, 0.5 * amount / inside, 0.5 * amount / (k - inside)), C - 0.5 * amount)
    multipliers, nu = amount * hinge / (k + 1) / w, np.zeros(2)
    slopes, bends = derivatives(w)
    iterations, s = 0, 1.0
    while True:
        eta = dot(multipliers, w)
        residual = slopes - multipliers + times(nu, A)
        gap = max(eta / amount, float(np.abs(residual).max())) / hinge
        if gap <= GAP or iterations == MOST_ITERATIONS:
            return Solution(sign * w[:-1], gap, iterations)
        iterations += 1
        system = _System(relevant, A, w, multipliers, nu, slopes, bends, _missing(relevant, w, C))
        # The paper aims at a tenth of the gap. A look ahead (Mehrotra's) tells how far to aim, and what the linear system
        # leaves out; where it led to a short step, the curves bend too much to look ahead.
        mu, beyond = 0.1 * eta / (k + 1), np.zeros(k + 1)
        if s > 0.1:
            dw, dmultipliers, _ = system.direction(beyond)
            s = min(1.0, _room(w, dw), _room(multipliers, dmultipliers))
            ahead = dot(multipliers + s * dmultipliers, w + s * dw)
            mu, beyond = (
                (ahead / eta) * (ahead / eta) * (ahead / eta) * eta / (k + 1),
                s * s * dw * dmultipliers,
            )
        dw, dmultipliers, dnu = system.direction(mu - beyond)
        s = min(1.0, 0.99 * min(_room(w, dw), _room(multipliers, dmultipliers)))
        merit = _merit(amount * residual, multipliers * w - mu)
        while True:
            w_, multipliers_, nu_ = w + s * dw, multipliers + s * dmultipliers, nu + s * dnu
            slopes, bends = derivatives(w_)
            residual = slopes - multipliers_ + times(nu_, A)
            if s < 1e-6 or _merit(amount * residual, multipliers_ * w_ - mu) <= (1.0 - 0.01 * s) * merit:
                break
            s *= 0.5
        w, multipliers, nu = w_, multipliers_, nu_


def _scale(response: Response, relevant: NDArray[np.bool_], C: float, gamma: float) -> tuple[float, float]:
    """What to expect of the optimum: the amount that closes the worst pair's gap along its tangents, and the hinge loss."""
    scores, bends = response.scores, response.at(np.zeros(len(relevant)))[1]
    hinge = gamma + float(scores[~relevant].max() - scores[relevant].min())
    bend = float(bends[relevant][scores[relevant].argmin()] + bends[~relevant][scores[~relevant].argmax()])
    return (C if bend * C <= hinge else hinge / bend), hinge


def _merit(residual: Floats, centring: Floats) -> float:
    """How far (16) and (17) are from holding, both as amounts of the objective."""
    return math.sqrt(dot(residual, residual) + dot(centring, centring))


def _missing(relevant: NDArray[np.bool_], w: Floats, C: float) -> tuple[float, float]:
    """What A w = (C, C) lacks: C less the relevant of w and its slack, and how much more the others lack.

    The first row lacks C - up - slack and the second C - down - slack, which is up - down more. A first lack within the
    rounding of C is 0: the slack, last in w, is what remains of C.
    """
    up, down = float(w[:-1][relevant].sum()), float(w[:-1][~relevant].sum())
    missing = C - (up + float(w[-1]))
    return (missing if abs(missing) > 1e-15 * C else 0.0), up - down


class _System(NamedTuple):
    """The linearised conditions at one point."""

    relevant: NDArray[np.bool_]
    A: Floats
    w: Floats
    multipliers: Floats
    nu: Floats
    slopes: Floats
    bends: Floats
    missing: tuple[float, float]

    def direction(self, mu: Floats) -> tuple[Floats, Floats, Floats]:
        """dw, dlambda, dnu that lead to lambda w = mu."""
        w, multipliers = self.w, self.multipliers
        z = self.bends + multipliers / w
        u = mu / w - self.slopes - times(self.nu, self.A)
        dnu = self._dnu(z, u)
        dw = (u - times(dnu, self.A)) / z
        dw[-1] = self.missing[0] - float(dw[:-1][self.relevant].sum())
        return dw, (mu - multipliers * dw) / w - multipliers, dnu

    def _dnu(self, z: Floats, u: Floats) -> Floats:
        """The 2 x 2 system. A slack far from 0 has a tiny z_0, so it is multiplied by that rather than divided."""
        h, e = 1.0 / z[:-1], u[:-1] / z[:-1]
        missing, uneven = self.missing
        a, b = float(h[self.relevant].sum()), float(h[~self.relevant].sum())
        up, down = float(e[self.relevant].sum()) - missing, float(e[~self.relevant].sum()) - missing - uneven
        z0, u0 = float(z[-1]), float(u[-1])
        numerators = (b * (z0 * up + u0) + (up - down), a * (z0 * down + u0) + (down - up))
        return np.array(numerators) / (z0 * a * b + a + b)


def _room(at: Floats, step: Floats) -> float:
    """The largest s for which at + s step >= 0."""
    return float(1.0 / max((-step / at).max(), 1e-300))
