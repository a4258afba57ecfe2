"""What an order is worth by NDCG, and features within their list: pieces of every learner of lists.

Sums of products are NumPy's, in blocks of eight numbers side by side; they are the same on every CPU.
"""

import numpy as np

from .elementary import Floats
from .powers import LN2, exp2, expm1
from .reference import Ints

# Beside 2^top, what is 2^LOWEST times smaller is nothing; a power beyond it would not be a normal number.
LOWEST = 1000.0


def gains(grades: Floats) -> Floats:
    """G(y) = 2^y - 1, over 2^max(y), so that no grade overflows; as it is where the highest grade is below 0.01."""
    if not grades.size:
        return grades
    top = float(grades[grades.argmax()])  # several times as fast as max
    if top < 0.01:
        # 2^y - 1 would lose its digits.
        small: Floats = expm1(LN2 * grades)
        return small
    scaled: Floats = exp2(np.maximum(grades - top, -LOWEST))
    # A grade of 0 must gain exactly 0. Both powers are exact where `top` is whole; elsewhere the same routine rounds both.
    scaled -= exp2(np.array([max(-top, -LOWEST)]))
    return scaled


def ndcg_loss(order: Ints, gained: Floats, discounts: Floats) -> float:
    """sum_p (G(best p) - G(order p)) D(p) / sum_p G(best p) D(p), over as many places as there are discounts."""
    best = -gained  # negated, so that sorting puts the highest first
    best.sort()
    best = best[: len(discounts)]
    ideal = float((best * discounts).sum())
    if ideal >= 0.0:
        return 0.0
    # Equal gains cancel before they are summed, so a perfect order loses exactly 0.
    best += gained[order[: len(discounts)]]
    return max(0.0, float((best * discounts).sum()) / ideal)


def list_scaled(values: Floats) -> Floats:
    """(x - min x) / (max x - min x) of every column; 0 where it is constant."""
    scaled: Floats = values - values.min(axis=0)
    scaled += 0.0  # which of two zeros of different sign is the least depends on the CPU
    spread = scaled.max(axis=0)
    scaled /= np.where(spread > 0, spread, 1)
    return scaled
