"""Predtron's directions in score space: Algorithm 1 (standard) and Algorithm 2 (loss-driven)."""

from __future__ import annotations

from ..tasks.base import Array, Task, Truth
from ..tasks.classes import Binary
from ..tasks.rankings import AP, NDCG
from ..theory.predtron import constants, rate_14, rate_15, strong_convexity
from ..weights.links import PNorm

__all__ = ["LossDriven", "Predtron", "Theory"]


class Predtron:
    """g = rep(sigma~) - rep(sigma_y), sigma~ = argmax_sigma L(sigma, y) + <rep(sigma), t>.

    None on a round without loss. The gradient of Eq. (2):
    phi(t, y) = max_sigma L(sigma, y) - <rep(sigma_y) - rep(sigma), t>.
    """

    def __init__(self, task: Task) -> None:
        self.task = task

    def direction(self, t: Array, y: Truth, x: object = None, weights: object = None) -> Array | None:
        task = self.task
        if task.judge(t, y) <= 0.0:
            return None
        return task.rep(task.augmented(y, t), t.size) - task.rep(task.correct(y, t), t.size)


class LossDriven:
    """g = L(t, y) (rep(sigma~) - rep(sigma_y)), sigma~ = argmax_{sigma not in Sigma_y} <rep(sigma), t>.

    None on a round without loss.
    """

    def __init__(self, task: Task) -> None:
        self.task = task

    def direction(self, t: Array, y: Truth, x: object = None, weights: object = None) -> Array | None:
        task = self.task
        loss = task.judge(t, y)
        if loss <= 0.0:
            return None
        return loss * (task.rep(task.rival(y, t), t.size) - task.rep(task.correct(y, t), t.size))


class Theory:
    """g times the learning rate of the theorems, where R bounds the instances; the learner's own step is 1.

        standard     alpha c_L / (4 R^2), Theorems 1 and 15
        loss-driven  alpha / (4 C_L R^2), Theorem 14

    alpha = r - 1 and 3 R in place of R under a p-norm link (Corollaries 6 and 8). For NDCG and AP, c_L depends on lists
    and grades still to come: the round's own loss takes its place, under the same bound (see `rate_1`).
    """

    def __init__(self, surrogate: Predtron | LossDriven, R: float) -> None:
        self.surrogate = surrogate
        self.R = R

    def direction(self, t: Array, y: Truth, x: object = None, weights: object = None) -> Array | None:
        g = self.surrogate.direction(t, y, x, weights)
        if g is None:
            return None
        alpha, R = 1.0, self.R
        if isinstance(weights, PNorm):
            alpha, R = strong_convexity(weights.q), 3.0 * R
        task = self.surrogate.task
        c_L, C_L = constants(task, 2 if isinstance(task, Binary) else t.size)
        if isinstance(self.surrogate, LossDriven):
            return alpha * rate_14(R, C_L) * g
        return rate_15(R, task.judge(t, y) if isinstance(task, NDCG | AP) else c_L, alpha) * g
