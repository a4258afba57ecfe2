"""Any loss over a finite set of decisions, by Eq. (9): no psi, no decoder, only L.

    f(x) = argmin_z sum_i alpha_i(x) L(z, y_i), alpha(x) = (K + r sqrt(n) I)^{-1} K_x.

alpha does not depend on L, so the weights of equal truths are summed first: one regression on 1[y = y'] for the
truths y' seen.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from ...instances import Floats, Vector
from ...kernel import times
from .regression import Regression

__all__ = ["Answer", "AnyLoss"]

Z = TypeVar("Z")
Y = TypeVar("Y", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Answer(Generic[Z]):
    """The decision, the estimated risk of every decision, and the gap to the next best (None if there is one only)."""

    decision: Z
    risks: Floats
    margin: float | None


class AnyLoss(Generic[Z, Y]):
    """`loss(z, y)` for z in `decisions` and any hashable truth y. Ties go to the decision listed first."""

    def __init__(
        self,
        decisions: Sequence[Z],
        loss: Callable[[Z, Y], float],
        regularization: float = 1.0,
        bandwidth: float | None = None,
        budget: int | None = None,
    ) -> None:
        if not decisions:
            raise ValueError("there must be at least one decision")
        self.decisions: list[Z] = list(decisions)
        self.loss = loss
        self.regression: Regression = Regression(regularization, bandwidth, budget)
        self._columns: dict[Y, int] = {}
        self._losses: list[Floats] = []

    def learn(self, x: Sequence[float] | Floats, y: Y) -> None:
        """One more example."""
        if y not in self._columns:
            self._columns[y] = len(self._columns)
            self._losses.append(np.array([self.loss(z, y) for z in self.decisions], dtype=np.float64))
        self.regression.learn(_vector(x), np.array([self._columns[y]]), np.ones((1, 1)))

    def predict(self, x: Sequence[float] | Floats) -> Answer[Z]:
        """The decision of Eq. (9) after the examples so far."""
        weights = self.regression.predict(_vector(x), np.arange(len(self._columns)))[0]
        risks = times(weights, np.array(self._losses)) if self._losses else np.zeros(len(self.decisions))
        best = int(risks.argmin())
        others = np.delete(risks, best)
        return Answer(self.decisions[best], risks, float(others.min() - risks[best]) if len(others) else None)


def _vector(x: Sequence[float] | Floats) -> Vector:
    values = np.asarray(x, dtype=np.float64)
    return Vector(np.arange(len(values)), values)
