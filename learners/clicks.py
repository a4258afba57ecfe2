"""Clicks on a served list as judgements of its items: two rules against position bias, as pure functions.

`order` is the served list as item indices, best first; `clicked` are item indices, in any order.
"""

from collections.abc import Sequence

import numpy as np

from .instances import Floats, Ints


def skip_above(order: Ints, clicked: Sequence[int]) -> tuple[Ints, Floats]:
    """The items that count, ascending, and their grades: 1 if clicked, 0 if passed over before the last
    click.

    What stood below the last click may never have been seen, so it says nothing and is left out.
    """
    grades = np.zeros(len(order))
    grades[list(clicked)] = 1.0
    hits = np.flatnonzero(grades[order])
    kept = np.sort(order[: hits[-1] + 1]) if hits.size else order[:0]
    return kept, grades[kept]


def inverse_propensities(order: Ints, clicked: Sequence[int], examination: Sequence[float]) -> Floats:
    """1 / p(position) for every clicked item, 0 for the others; `examination` is p at the positions 1, 2, ...

    Positions beyond the curve take its last value. If a click is an examined item's relevance, the
    expectation of this weight is the relevance, wherever the item stood.
    """
    curve = np.asarray(examination, dtype=np.float64)
    chance = np.empty(len(order))
    chance[order] = curve[np.minimum(np.arange(len(order)), len(curve) - 1)]
    weights = np.zeros(len(order))
    items = list(clicked)
    weights[items] = 1.0 / chance[items]
    return weights
