"""What a prediction problem is: a loss, a unit-norm representation, a decoder, the searches over decisions.

A task sees arrays only; names are handled elsewhere. It holds no state of the learner.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ..errors import lacks
from ..instances import Floats
from ..losses.costs import CostMatrix

__all__ = ["Floats", "Sigma", "Task", "Y", "lead"]

Sigma = Any  # classes: int (REJECT = -1); multilabel: bool mask; rankings: int array, best first
Y = Any  # classes: int; multilabel: bool mask; rankings: grades >= 0


def lead(values: Floats) -> float | None:
    """The gap between the best and the second best value; None if there is one value only."""
    if values.size < 2:
        return None
    rest = values.copy()
    best = rest.argmax()  # argmax is several times as fast as max or a partition
    rest[best] = -math.inf
    return float(values[best] - rest[rest.argmax()])


class Task(ABC):
    """The pieces of the framework: pred, L, rep, Sigma_y and the two argmaxes that the surrogates need."""

    # The labels' scores are view @ t, where t is not one score a label: (labels, columns of the weights).
    view: Floats | None = None
    # Whether the first label of the highest score is the decision, and missing y costs `cost(y)`.
    argmax = False
    # Whether the order of the scores is the decision, and costs 1 unless all that is graded above 0 stands above the rest.
    parts = False
    # Which loss of an order the kernel knows it as (kernel/c/core/orders.h), if it does.
    measure: int | None = None
    cutoff: int | None = None

    def of_places(self, m: int) -> tuple[Floats, Floats]:
        """F(1) .. F(m) and D(1) .. D(m), where there is a `measure`."""
        raise TypeError(f"{type(self).__name__} has no places")

    def columns(self, labels: int) -> int:
        """d, the length of t."""
        return labels

    def price(self, costs: Sequence[float]) -> None:
        """What missing, or rejecting, each label costs; only for losses with costs."""
        raise lacks(self, "costs")

    def charge(self, costs: CostMatrix) -> None:
        """What each decision costs on each truth; only for the loss `matrix`."""
        raise lacks(self, "matrix of costs")

    def cost(self, y: Y) -> float:
        """What missing y costs, where the decision is an argmax."""
        return 1.0

    def excess(self, t: Floats, y: Y) -> float:
        """What a round loses beyond a correct decision: L, but where even a correct decision costs something."""
        return self.judge(t, y)

    @abstractmethod
    def decide(self, t: Floats) -> Sigma:
        """pred(t) = argmax_sigma <rep(sigma), t>; ties go to what joined first."""

    @abstractmethod
    def loss(self, sigma: Sigma, y: Y) -> float:
        """L(sigma, y) >= 0."""

    @abstractmethod
    def judge(self, t: Floats, y: Y) -> float:
        """L(t, y) = L(pred(t), y): what a round costs. Ties of pred may go against the learner here."""

    @abstractmethod
    def rep(self, sigma: Sigma, d: int) -> Floats:
        """rep(sigma) in R^d, of length 1."""

    @abstractmethod
    def correct(self, y: Y, t: Floats) -> Sigma:
        """argmax of <rep(sigma), t> over Sigma_y = {sigma: L(sigma, y) = 0}: the correct one closest to t."""

    @abstractmethod
    def augmented(self, y: Y, t: Floats) -> Sigma:
        """argmax_sigma L(sigma, y) + <rep(sigma), t>, the loss-augmented decision of Algorithm 1."""

    @abstractmethod
    def rival(self, y: Y, t: Floats) -> Sigma:
        """argmax of <rep(sigma), t> outside Sigma_y, of Algorithm 2; None if every decision is correct."""

    @abstractmethod
    def margin(self, t: Floats) -> float | None:
        """The gap that another decision would have to close; None if there is no other decision."""
