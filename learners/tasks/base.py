"""What a prediction problem is: a loss, a unit-norm representation, a decoder, the searches over decisions.

A task sees arrays only; names are handled elsewhere. It holds no state of the learner.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Decision", "Task", "Truth", "lead"]

Array = NDArray[np.float64]
Decision = Any  # classes: int (REJECT = -1); multilabel: bool mask; rankings: int array, best first
Truth = Any  # classes: int; multilabel: bool mask; rankings: grades >= 0


def lead(values: Array) -> float | None:
    """The gap between the best and the second best value; None if there is one value only."""
    if values.size < 2:
        return None
    rest = values.copy()
    best = rest.argmax()  # argmax is several times as fast as max or a partition
    rest[best] = -math.inf
    return float(values[best] - rest[rest.argmax()])


class Task(Protocol):
    """The pieces of the framework: pred, L, rep, Sigma_y and the two argmaxes that the surrogates need."""

    def decide(self, t: Array) -> Decision:
        """pred(t) = argmax_sigma <rep(sigma), t>; ties go to what joined first."""
        ...

    def loss(self, sigma: Decision, y: Truth) -> float:
        """L(sigma, y) >= 0."""
        ...

    def judge(self, t: Array, y: Truth) -> float:
        """L(t, y) = L(pred(t), y): what a round costs. Ties of pred may go against the learner here."""
        ...

    def rep(self, sigma: Decision, d: int) -> Array:
        """rep(sigma) in R^d, of length 1."""
        ...

    def correct(self, y: Truth, t: Array) -> Decision:
        """argmax of <rep(sigma), t> over Sigma_y = {sigma: L(sigma, y) = 0}: the correct one closest to t."""
        ...

    def augmented(self, y: Truth, t: Array) -> Decision:
        """argmax_sigma L(sigma, y) + <rep(sigma), t>, the loss-augmented decision of Algorithm 1."""
        ...

    def rival(self, y: Truth, t: Array) -> Decision:
        """argmax of <rep(sigma), t> outside Sigma_y, of Algorithm 2; None if every decision is correct."""
        ...

    def margin(self, t: Array) -> float | None:
        """The gap that another decision would have to close; None if there is no other decision."""
        ...
