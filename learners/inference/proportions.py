"""How often something is right, at least: from two counts, valid at every look and whatever the drift.

W of n decisions were wrong; e_t is the chance of a mistake in decision t given all before, e their running mean. For any
fixed lambda < 0, 1 + e_t (exp(lambda) - 1) is the expectation of exp(lambda [wrong_t]), so

    prod_t exp(lambda [wrong_t]) / (1 + e_t (exp(lambda) - 1))  >=  exp(lambda W) / (1 + e (exp(lambda) - 1))^n

is at least its right side (log(1 + x c) is concave in x), and the left side is a nonnegative martingale from 1. So is a
mixture over a fixed grid of lambda. By Ville's inequality it ever reaches 1 / alpha with probability at most alpha: the
least e at which the right side, which grows with e, reaches it is below the running mean at no time. No independence is
assumed, and no constant chance: what is bounded is the mean of the chances *as they were*. This is testing by betting
(Shafer 2021; Waudby-Smith and Ramdas 2024) for values of 0 and 1, where two counts say all.
"""

from __future__ import annotations

from math import log

import numpy as np

from ..instances import Floats

__all__ = ["least_right", "log_evidence"]

# lambda from bets on a chance slightly below the bound to bets on none at all; each as likely as the others.
BETS: Floats = -np.geomspace(0.02, 8.0, 16)
_FACTORS: Floats = np.expm1(BETS)
_EACH = -log(len(BETS))
_STEPS = 40  # of halving


def log_evidence(wrong: Floats, n: Floats, chance: Floats | float) -> Floats:
    """log of the capital that was won, by each pair of counts, against a running mean of at least `chance`."""
    paid = np.log1p(np.multiply.outer(np.broadcast_to(chance, np.shape(n)), _FACTORS))
    capital = np.multiply.outer(wrong, BETS) - np.asarray(n)[..., None] * paid
    most: Floats = capital.max(axis=-1)
    sums: Floats = most + np.log(np.exp(capital - most[..., None]).sum(axis=-1)) + _EACH
    return sums


def least_right(wrong: Floats, n: Floats, alpha: float) -> Floats:
    """The lower bound of the mean chance to be right, 0 where nothing is proved; it ever fails with probability `alpha`."""
    low, high = np.zeros(np.shape(n)), np.ones(np.shape(n))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        proved = log_evidence(wrong, n, middle) >= -log(alpha)
        high = np.where(proved, middle, high)
        low = np.where(proved, low, middle)
    return np.asarray(1.0 - high)
