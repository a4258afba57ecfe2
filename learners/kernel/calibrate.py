"""Calibrated probabilities: the specification. What it is for is in algorithms/auto/calibration.py."""

import math

import numpy as np

from .elementary import Floats, Mask, log, log_of, total
from .reference import Ints

KNOTS = 8
LOW, HIGH = -3.0, 6.0
KEEP = 0.995  # some 200 rounds near a knot: of 50, the noise alone makes high probabilities too high
EDGE = 1e-6


def place(q: float) -> tuple[int, float]:
    """The knot below q, and how far q is on the way to the next."""
    q = clip(q, EDGE, 1.0 - EDGE)
    odds = clip(log_of(q / (1.0 - q)), LOW, HIGH)
    at = (odds - LOW) * ((KNOTS - 1) / (HIGH - LOW))
    i = min(int(at), KNOTS - 2)
    return i, at - i


def clip(x: float, low: float, high: float) -> float:
    """x taken to [low, high]."""
    return low if x < low else high if x > high else x


def calibrated(p: Floats, sums: Floats) -> Floats:
    """The calibrated probabilities."""
    k = int(p.argmax()) if len(p) else 0
    if len(p) < 2 or not math.isfinite(p.item(k)):
        return p
    q = p.item(k)
    i, f = place(q)
    count = (1.0 - f) * sums.item(0, i) + f * sums.item(0, i + 1)
    miss = (1.0 - f) * sums.item(1, i) + f * sums.item(1, i + 1)
    others = p.copy()
    others[k] = 0.0
    rest = total(others)
    if not rest > 0.0:
        return p
    second = others.item(others.argmax()) / rest
    # At least as much as the second gets of what is left.
    new = max(clip(q + miss / (count + 1.0), EDGE, 1.0 - EDGE), second / (1.0 + second))
    others *= (1.0 - new) / rest
    others[k] = new
    return others


def calibrated_bits(p: Floats, sums: Floats) -> Floats:
    """The calibrated probabilities of bits: each is a choice between itself and its opposite, which stays the choice."""
    if not np.isfinite(p).all():
        return p
    q, i, f = _places(p)
    count = (1.0 - f) * sums[0, i] + f * sums[0, i + 1]
    miss = (1.0 - f) * sums[1, i] + f * sums[1, i + 1]
    new = np.maximum(np.minimum(np.maximum(q + miss / (count + 1.0), EDGE), 1.0 - EDGE), 0.5)
    shown: Floats = np.where(p > 0.5, new, 1.0 - new)
    return shown


def recalibrate_bits(p: Floats, Y: Mask, sums: Floats) -> None:
    """One more round: the bits had probabilities p before calibration, and were Y."""
    q, i, f = _places(p)
    miss = ((p > 0.5) == Y).astype(np.float64) - q
    at, shares = np.stack((i, i + 1), axis=1).ravel(), np.stack((1.0 - f, f), axis=1).ravel()
    sums *= KEEP
    np.add.at(sums[0], at, shares)
    np.add.at(sums[1], at, shares * np.repeat(miss, 2))


def _places(p: Floats) -> tuple[Floats, Ints, Floats]:
    """How sure every bit is, the knot below that, and how far it is on the way to the next."""
    q = np.where(p > 0.5, p, 1.0 - p)
    near = np.minimum(np.maximum(q, EDGE), 1.0 - EDGE)
    odds = np.minimum(np.maximum(log(near / (1.0 - near)), LOW), HIGH)
    at = (odds - LOW) * ((KNOTS - 1) / (HIGH - LOW))
    i = np.minimum(at.astype(np.intp), KNOTS - 2)
    return q, i, at - i


def recalibrate(q: float, right: bool, sums: Floats) -> None:
    """One more round: the first choice had probability q before calibration, and was right or not."""
    i, f = place(q)
    miss = float(right) - q
    after = [
        (at, sums.item(0, at) * KEEP + share, sums.item(1, at) * KEEP + share * miss)
        for at, share in ((i, 1.0 - f), (i + 1, f))
    ]
    for at, weights, misses in after:
        sums[0, at], sums[1, at] = weights, misses
