"""Whether one learner is proved to lose less than another: a bet on the difference of their losses.

With d = l_1 - l_2 in [-1, 1], a gambler who puts a share of 0.1, 0.3 or 0.6 of what he has on the second multiplies it by
1 + share d. If the second is not better in expectation, what he has is a supermartingale, and Ville's inequality says that
it ever reaches 20 with a chance of at most 1 / 20. The lead counts as proved while it stands at 20 or more.
"""

import numpy as np

from ...instances import Floats
from ...weights.base import Counters

SHARES = np.array([0.1, 0.3, 0.6])
ENOUGH = 20.0


class Lead:
    """What the three gamblers have, each from 1 on."""

    def __init__(self) -> None:
        self.wealth: Floats = np.ones(len(SHARES))

    @property
    def proved(self) -> bool:
        return (float(self.wealth[0]) + float(self.wealth[1]) + float(self.wealth[2])) / 3.0 >= ENOUGH

    def learn(self, first: float, second: float) -> None:
        """One round: the losses of both, in [0, 1]."""
        d = min(max(first - second, -1.0), 1.0)
        self.wealth = np.minimum(self.wealth * (1.0 + SHARES * d), 1e12)

    def counters(self) -> Counters:
        return {"wealth": self.wealth.tolist()}

    def restore(self, counters: Counters) -> None:
        self.wealth = np.array(counters["wealth"], dtype=np.float64)
