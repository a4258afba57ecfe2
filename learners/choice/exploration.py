"""Inverse-gap weighting (Abe and Long 1999; Foster and Rakhlin 2020): the better an item seems, the likelier it is.

    p(a) = 1 / (K + gamma_t (q(b) - q(a))),   the rest to the best item b,   gamma_t = gamma sqrt(K t)

q are the estimated rewards of the K items that may be chosen. With a uniform floor e, p <- (1 - e) p + e / K: every item
keeps a known chance, which is what makes the log able to answer questions about other policies.
"""

import math

import numpy as np

from ..instances import Floats
from ..kernel.elementary import total


def inverse_gap(q: Floats, allowed: Floats, events: int, gamma: float, floor: float) -> Floats:
    """The probability of every item; `allowed` is 1 or 0. Ties for the best go to the item listed first."""
    count = total(allowed)
    best = int(np.where(allowed > 0.0, q, -1.0).argmax())
    scale = gamma * math.sqrt(count * (events + 1.0))
    p = allowed / (count + scale * np.maximum(q[best] - q, 0.0))
    p[best] = 0.0
    p[best] = max(0.0, 1.0 - total(p))
    mixed: Floats = (1.0 - floor) * p + (floor / count) * allowed
    return mixed


def draw(p: Floats, chance: float) -> int:
    """The item at `chance` in [0, 1) of the way through the probabilities; never one of probability 0."""
    reached = np.add.accumulate(p)
    place = int(reached.searchsorted(chance * reached[-1], side="right"))
    if place < len(p) and p[place] > 0.0:
        return place
    return int(np.flatnonzero(p)[-1])
