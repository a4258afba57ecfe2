"""Learning rates of the list learners: how long the step of a round is.

    a number     eta
    scale-free   eta = 0.3 / mean_i ||x_i||^2 over the items of the list (||x||^2 of a vector)
    theory       eta = 1 / (4 n v_max R^2), n the positive weights of the round, v_max their largest ratio

Scale-free: features times c make g the same, X' g c times as large and eta c^2 times as small, so w is c
times as small and every score, and so every decision of every later round, stays as it was. It needs no
state.

Theory: with ||z||^2 <= 4 n v_max R^2 f(w) =: B f(w) (Lemma 5), a step of 1/B on a round with f(u) = 0
brings w closer to u: ||w' - u||^2 <= ||w - u||^2 - f(w) / B. Summed up, the loss is at most max_t B_t
||u||^2: Theorem 6 with n = m and Theorem 8 with n = k, without knowing ||u||, the longest list or the
highest grade in advance.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..instances import Floats, Matrix
from ..model import Round, Surrogate
from ..tasks.task import Sigma, Y
from ..weights.base import X

# The share of 1 / mean ||x||^2: the best of 0.1, 0.3, 0.5, 1 for ListNet on MQ2008 and OHSUMED, all within 0.011 of NDCG;
# SLAM hardly depends on it there.
SHARE = 0.3
# The square of a length that is as good as 0: its inverse is still far from overflow.
TINY = 1e-200

Rate = Callable[[Round], float]


def constant(eta: float) -> Rate:
    """The same step every round."""
    return lambda round: eta


def mean_square(x: X) -> float:
    """mean_i ||x_i||^2 of a list's items, or ||x||^2 of a vector; features not seen before count too."""
    if not isinstance(x, Matrix):
        return x.squared_norm()
    values = x.values if isinstance(x.values, np.ndarray) else x.values.data
    items: int = x.values.shape[0]
    square = float((values * values).sum())
    if len(x.unseen):
        square += float(x.unseen.sum())
    return square / items


def scale_free(round: Round) -> float:
    """0.3 / mean_i ||x_i||^2; a list whose features are all 0, or as good as 0, takes no step."""
    square = mean_square(_instance(round))
    return SHARE / square if square > TINY else 0.0


def theory(v: Callable[[Round], Floats], R: float) -> Rate:
    """1 / (4 n v_max R^2) where every ||x_i|| <= R; `v(round)` are the weights of the surrogate's hinges."""

    def rate(round: Round) -> float:
        positive = v(round)
        positive = positive[positive > 0.0]
        return float(positive.min() / (4.0 * len(positive) * R * R * positive.max()))

    return rate


def _instance(round: Round) -> X:
    if round.x is None:
        raise ValueError("this learning rate needs the instance")
    return round.x


class Paced(Surrogate):
    """g times the rate of the round, so that the learner's own step is 1.

    `pace` is what the kernel calls it: a number, 0 for scale-free; None where it does not know the rate.
    """

    def __init__(self, surrogate: Surrogate, rate: Rate, pace: float | None = None) -> None:
        self.surrogate = surrogate
        self.rate = rate
        self.pace = pace

    def fused(self) -> dict[str, Any] | None:
        own = self.surrogate.fused()
        return None if own is None or self.pace is None else own | {"pace": self.pace}

    def judge(self, order: Sigma, y: Y) -> tuple[Any, ...] | None:
        return self.surrogate.judge(order, y)

    def direction(self, round: Round) -> Floats | None:
        g = self.surrogate.direction(round)
        return None if g is None else g * self.rate(round)


def paced(surrogate: Surrogate, learning_rate: float | str) -> Surrogate:
    """The surrogate at the rate that a spec asks for: a number, or `scale-free`."""
    if isinstance(learning_rate, str):
        return Paced(surrogate, scale_free, 0.0)
    return Paced(surrogate, constant(learning_rate), learning_rate)
