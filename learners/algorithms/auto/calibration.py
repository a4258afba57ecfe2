"""Probabilities that mean what they say: the leader's is moved by what such leaders turned out to be worth.

Where one label is right, the pool's probability q of its first choice is put on a scale of 8 knots, log-odds from -3 to 6.
Each knot keeps the mean of (right - q) over the rounds near it, older rounds counting less; what is interpolated there is
added to q. The other labels share the rest as before. The first choice stays the first.

Where any labels are right, each is a choice between yes and no, and all share the knots.
"""

import math

import numpy as np

from ...instances import Floats, Mask
from ...kernel import calibrated, calibrated_bits, recalibrate, recalibrate_bits
from ...kernel.calibrate import KNOTS
from ...weights.base import Arrays


class Calibration:
    """Sums of the weights and of the misses at every knot; `kind` is that of the pool. An order has no first choice."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.sums: Floats = np.zeros((2, KNOTS))

    def apply(self, p: Floats) -> Floats:
        """The calibrated probabilities."""
        if self.kind == "ranking":
            return p
        return (calibrated_bits if self.kind == "set" else calibrated)(p, self.sums)

    def learn(self, p: Floats, right: int | None, relevant: Mask) -> None:
        """One more round: p before calibration, what was right, if that could be known, and the bits."""
        if self.kind == "set":
            if np.isfinite(p).all():
                recalibrate_bits(p, relevant[: len(p)], self.sums)
        elif self.kind != "ranking":
            first = int(p.argmax())
            if math.isfinite(p[first]):
                recalibrate(float(p[first]), first == right, self.sums)

    def arrays(self) -> Arrays:
        return {"calibration": self.sums}

    def restore(self, arrays: Arrays) -> None:
        if arrays["calibration"].shape != self.sums.shape:
            raise ValueError("another calibration")
        self.sums = arrays["calibration"]
