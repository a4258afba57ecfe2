"""What an order is worth, given the grades: values only.

`order` holds every index of the list once, best first; `grades` (>= 0) is indexed as the list is. Names say
which way is up: `*_loss` is a loss, exactly 0 for a perfect order; `ndcg`, `ap`, `mrr` and `err` are gains.
`ap`, `mrr` and `precision_loss` read every grade above 0 as relevant. A list with nothing relevant cannot be
ranked wrongly: losses are 0 there, and `ndcg`, `ap` and `mrr` 1.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .. import kernel
from ..instances import Ints
from ..kernel.powers import exp2, log2

Grades = NDArray[np.float64]


@lru_cache(maxsize=40)
def _discount_table(bits: int, discount: str) -> NDArray[np.float64]:
    places = np.arange(1.0, 1.0 + (1 << bits))
    table: NDArray[np.float64] = 1.0 / (places if discount == "reciprocal" else log2(1.0 + places))
    table.setflags(write=False)
    return table


def discounts(length: int, discount: str = "log") -> NDArray[np.float64]:
    """D(p) = 1 / log2(p + 1) for the positions p = 1 .. length, or 1 / p (`reciprocal`); read-only."""
    return _discount_table(max(8, length.bit_length()), discount)[:length]


def gains(grades: Grades, gain: str = "exponential") -> NDArray[np.float64]:
    """G(y) = 2^y - 1, over 2^max(y), so that no grade overflows, or y / max(y) (`linear`): NDCG does not see the scale."""
    if gain == "exponential":
        return kernel.gains(grades)
    top = float(grades[grades.argmax()]) if grades.size else 0.0  # several times as fast as max
    return grades / top if top > 0.0 else grades


def ndcg_loss(
    order: Ints,
    grades: Grades,
    cutoff: int | None = None,
    gain: str = "exponential",
    discount: str = "log",
) -> float:
    """1 - NDCG_k = sum_{p <= k} (G(best p) - G(y[order p])) D(p) / sum_{p <= k} G(best p) D(p)."""
    length = len(grades) if cutoff is None else min(cutoff, len(grades))
    return kernel.ndcg_loss(order, gains(grades, gain), discounts(length, discount))


def ndcg(order: Ints, grades: Grades, cutoff: int | None = None) -> float:
    """NDCG_k, a gain in [0, 1]; k = `cutoff`, or the whole list."""
    return 1.0 - ndcg_loss(order, grades, cutoff)


def _hits(order: Ints, grades: Grades, cutoff: int | None = None) -> NDArray[np.intp]:
    """The positions (from 1) of relevant items, ascending."""
    return (grades[order[:cutoff]] > 0.0).nonzero()[0] + 1


def ap(order: Ints, grades: Grades) -> float:
    """Average precision, a gain: the mean over relevant items of (relevant down to here) / position."""
    hits = _hits(order, grades)
    if not hits.size:
        return 1.0
    return float(np.add.reduce(np.arange(1, hits.size + 1) / hits)) / hits.size


def ap_loss(order: Ints, grades: Grades) -> float:
    """1 - AP."""
    return 1.0 - ap(order, grades)


def precision_loss(order: Ints, grades: Grades, cutoff: int) -> float:
    """(min(k, relevant) - relevant among the first k) / k, with k = `cutoff`."""
    relevant = int(np.count_nonzero(grades > 0.0))
    return (min(cutoff, relevant) - _hits(order, grades, cutoff).size) / cutoff


def mrr(order: Ints, grades: Grades, cutoff: int | None = None) -> float:
    """Reciprocal rank, a gain: 1 / position of the first relevant item, 0 if it stands below `cutoff`."""
    hits = _hits(order, grades)
    if not hits.size:
        return 1.0
    first = int(hits[0])
    return 1.0 / first if cutoff is None or first <= cutoff else 0.0


def err(order: Ints, grades: Grades, cutoff: int | None = None, highest: float | None = None) -> float:
    """Expected reciprocal rank, a gain: sum_p (1/p) R_p prod_{q < p} (1 - R_q), R = (2^y - 1) / 2^highest.

    `highest` is the top of the grading scale (default: the list's top grade). A perfect order can be below 1,
    and a list with nothing relevant gives 0.
    """
    if not grades.size:
        return 0.0
    stops = gains(grades)[order[:cutoff]]
    if highest is not None:
        stops = stops * exp2(np.array([grades.max() - highest]))
    reaches = np.concatenate(([1.0], np.cumprod(1.0 - stops)[:-1]))
    return float(np.sum(stops * reaches / np.arange(1, stops.size + 1)))


def pairwise_disagreement_loss(order: Ints, grades: Grades) -> float:
    """The share of pairs of unequal grade that stand in the wrong order."""
    y = grades[order]
    wrong = pairs = 0
    for level in np.unique(y)[1:]:  # every pair once, by the grade of its better item
        better, worse = y == level, y < level
        below = int(np.count_nonzero(worse))
        pairs += below * int(np.count_nonzero(better))
        wrong += int(np.cumsum(worse)[better].sum())
    return wrong / pairs if pairs else 0.0
