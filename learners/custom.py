"""Problems of your own: Algorithms 1, 2 and 3, and the kernel form, for any task, on plain arrays (docs/problems.md)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from .algorithms.predtron import LossDriven, Predtron, weights_of
from .instances import Ints, Matrix, Vector
from .model import FirstOrder, Surrogate
from .tasks.task import Sigma, Task
from .weights.base import X


class Problem:
    """An online learner for `task`. An instance is a vector (then W is features x d), or a matrix, one row an item (d = 1).

    `options` are those of the spec: `variant`, `learning_rate`, `norm`, `kernel`, `bandwidth`, `degree`, `budget`.
    """

    def __init__(self, task: Task, features: int, d: int = 1, **options: Any) -> None:
        surrogate: Surrogate = LossDriven(task) if options.get("variant") == "loss-driven" else Predtron(task)
        self.model: FirstOrder = FirstOrder(
            task, surrogate, weights_of(options), float(options.get("learning_rate", 1.0))
        )
        self.model.grow(features, d)
        self.rows: Ints = np.arange(features)

    def _x(self, instance: npt.ArrayLike) -> X:
        values = np.asarray(instance, dtype=np.float64)
        if values.shape[-1] != len(self.rows):
            raise ValueError(f"an instance has {len(self.rows)} features here, not {values.shape[-1]}")
        return Vector(self.rows, values) if values.ndim == 1 else Matrix(self.rows, values)

    def predict(self, instance: npt.ArrayLike) -> Sigma:
        """The decision, in the form that the task gives it."""
        return self.model.decide(self._x(instance)).sigma

    def learn(self, instance: npt.ArrayLike, y: object) -> float:
        """One round: what the decision before the update costs."""
        x = self._x(instance)
        decision = self.model.decide(x)
        loss = self.model.judge(decision, y)
        self.model.learn(x, decision, y, x)
        return loss
