"""Predtron's directions in score space: Algorithm 1 (standard) and Algorithm 2 (loss-driven)."""

from __future__ import annotations

from ..tasks.base import Array, Task, Truth

__all__ = ["LossDriven", "Predtron"]


class Predtron:
    """g = rep(sigma~) - rep(sigma_y), sigma~ = argmax_sigma L(sigma, y) + <rep(sigma), t>.

    None on a round without loss. The gradient of phi(t, y) = max_sigma L(sigma, y) - <rep(sigma_y) - rep(sigma), t>, Eq. (2).
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
