"""Probabilities that mean what they say: the leader's is moved by what such leaders turned out to be worth.

Where one label is right, the pool's probability q of its first choice is put on a scale of 8 knots, log-odds from -3 to 6.
Each knot keeps the mean of (right - q) over the rounds near it, older rounds counting less; what is interpolated there is
added to q. The other labels share the rest as before. The first choice stays the first.
"""

import math

import numpy as np

from ...instances import Floats
from ...kernel import calibrated, recalibrate
from ...kernel.calibrate import KNOTS
from ...weights.base import Arrays


class Calibration:
    """Sums of the weights and of the misses at every knot."""

    def __init__(self) -> None:
        self.sums: Floats = np.zeros((2, KNOTS))

    def apply(self, p: Floats) -> Floats:
        """The calibrated probabilities."""
        return calibrated(p, self.sums)

    def learn(self, q: float, right: bool) -> None:
        """The first choice had probability q before calibration, and was right or not."""
        if math.isfinite(q):
            recalibrate(q, right, self.sums)

    def arrays(self) -> Arrays:
        return {"calibration": self.sums}

    def restore(self, arrays: Arrays) -> None:
        if arrays["calibration"].shape != self.sums.shape:
            raise ValueError("another calibration")
        self.sums = arrays["calibration"]
