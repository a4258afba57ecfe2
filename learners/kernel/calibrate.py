"""Calibrated probabilities: the specification. What it is for is in algorithms/auto/calibration.py."""

import math

from .elementary import Floats, log_of, total

KNOTS = 8
LOW, HIGH = -3.0, 6.0
KEEP = 0.98
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
    return p if len(p) < 2 or not math.isfinite(p.item(k)) else calibrated_at(p, sums, k, place(p.item(k)))


def calibrated_at(p: Floats, sums: Floats, k: int, between: tuple[int, float]) -> Floats:
    """The same, of at least two labels, the first choice k and its place among the knots."""
    q, (i, f) = p.item(k), between
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


def recalibrate(q: float, right: bool, sums: Floats) -> None:
    """One more round: the first choice had probability q before calibration, and was right or not."""
    recalibrate_at(q, right, sums, place(q))


def recalibrate_at(q: float, right: bool, sums: Floats, between: tuple[int, float]) -> None:
    """The same, with its place among the knots."""
    i, f = between
    miss = float(right) - q
    after = [
        (at, sums.item(0, at) * KEEP + share, sums.item(1, at) * KEEP + share * miss)
        for at, share in ((i, 1.0 - f), (i + 1, f))
    ]
    for at, weights, misses in after:
        sums[0, at], sums[1, at] = weights, misses
