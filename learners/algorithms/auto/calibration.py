"""Probabilities that mean what they say: the leader's is moved by what such leaders turned out to be worth.

Where one label is right, the pool's probability q of its first choice is put on a scale of 8 knots, log-odds from -3 to 6.
Each knot keeps the mean of (right - q) over the rounds near it, older rounds counting less; what is interpolated there is
added to q. The other labels share the rest as before. The first choice stays the first.
"""

import math

import numpy as np

from ...instances import Floats
from ...kernel import log_of, total
from ...weights.base import Arrays

KNOTS = 8
LOW, HIGH = -3.0, 6.0
KEEP = 0.98
EDGE = 1e-6


class Calibration:
    """Sums of the weights and of the misses at every knot."""

    def __init__(self) -> None:
        self.sums: Floats = np.zeros((2, KNOTS))

    def _place(self, q: float) -> tuple[int, float]:
        """The knot below q, and how far q is on the way to the next."""
        q = min(max(q, EDGE), 1.0 - EDGE)
        odds = log_of(q / (1.0 - q))
        at = (min(max(odds, LOW), HIGH) - LOW) * ((KNOTS - 1) / (HIGH - LOW))
        i = min(int(at), KNOTS - 2)
        return i, at - i

    def apply(self, p: Floats) -> Floats:
        """The calibrated probabilities."""
        if len(p) < 2:
            return p
        k = int(p.argmax())
        q = float(p[k])
        i, f = self._place(q)
        count = (1.0 - f) * float(self.sums[0, i]) + f * float(self.sums[0, i + 1])
        miss = (1.0 - f) * float(self.sums[1, i]) + f * float(self.sums[1, i + 1])
        others = p.copy()
        others[k] = 0.0
        rest = total(others)
        if not rest > 0.0:
            return p
        second = float(others.max()) / rest
        # At least as much as the second gets of what is left.
        new = max(min(max(q + miss / (count + 1.0), EDGE), 1.0 - EDGE), second / (1.0 + second))
        others *= (1.0 - new) / rest
        others[k] = new
        return others

    def learn(self, q: float, right: bool) -> None:
        """The first choice had probability q before calibration, and was right or not."""
        if not math.isfinite(q):
            return
        i, f = self._place(q)
        miss = float(right) - q
        for knot, share in ((i, 1.0 - f), (i + 1, f)):
            self.sums[0, knot] = self.sums[0, knot] * KEEP + share
            self.sums[1, knot] = self.sums[1, knot] * KEEP + share * miss

    def arrays(self) -> Arrays:
        return {"calibration": self.sums}

    def restore(self, arrays: Arrays) -> None:
        if arrays["calibration"].shape != self.sums.shape:
            raise ValueError("another calibration")
        self.sums = arrays["calibration"]
