"""Online ListNet (Cao et al. 2007), the baseline of Chaudhuri and Tewari: descent on a cross entropy of
lists."""

from typing import Any

import numpy as np

from ..instances import Floats
from .rates import Rate, constant

_NO_WEIGHTS: Floats = np.empty(0)


def softmax(s: Floats) -> Floats:
    """exp(s_i) / sum_j exp(s_j), shifted by the largest so that no score or grade overflows."""
    e: Floats = np.exp(s - s.max())
    e /= e.sum()
    return e


class ListNet:
    """g = softmax(t) - softmax(y), the gradient of -<softmax(y), log softmax(t)>; None where all grades are
    equal.

    It learns on every other round, also on those without loss. `rate` multiplies g, so the learner's own
    step is 1.
    """

    def __init__(self, rate: Rate | None = None) -> None:
        self.rate = rate or constant(1.0)

    def direction(
        self,
        t: Floats,
        y: Floats,
        x: Any = None,
        weights: object = None,
        order: object = None,
        loss: object = None,
    ) -> Floats | None:
        """g times the learning rate, or None."""
        if y.max() == y.min():
            return None
        g = softmax(t)
        g -= softmax(y)
        g *= self.rate(x, _NO_WEIGHTS)
        return g
