"""Online ListNet (Cao et al. 2007), the baseline of Chaudhuri and Tewari: descent on a cross entropy of
lists."""

from typing import Any

import numpy as np

from ..instances import Floats, Ints, ones
from ..losses.rankings import ndcg_loss
from .rates import Rate, constant

_NO_WEIGHTS: Floats = np.empty(0)


def scaled_softmax(s: Floats, scale: float) -> Floats:
    """scale * exp(s_i) / sum_j exp(s_j), shifted by the largest so that no score or grade overflows."""
    e: Floats = s - s[s.argmax()]
    np.exp(e, e)
    e *= scale / float(e.dot(ones(len(e))))
    return e


class ListNet:
    """g = softmax(t) - softmax(y), the gradient of -<softmax(y), log softmax(t)>; None where all grades are
    equal.

    It learns on every other round, also on those without loss. `rate` multiplies g, so the learner's own
    step is 1.
    """

    def __init__(self, rate: Rate | None = None) -> None:
        self.rate = rate or constant(1.0)

    def judge(self, order: Ints, y: Floats) -> tuple[float]:
        """1 - NDCG of the whole list."""
        return (ndcg_loss(order, y),)

    def direction(
        self,
        t: Floats,
        y: Floats,
        x: Any = None,
        weights: object = None,
        order: object = None,
        judged: object = None,
    ) -> Floats | None:
        """g times the learning rate, or None."""
        if y[y.argmax()] == y[y.argmin()]:
            return None
        rate = self.rate(x, _NO_WEIGHTS)
        g = scaled_softmax(t, rate)
        g -= scaled_softmax(y, rate)
        return g
