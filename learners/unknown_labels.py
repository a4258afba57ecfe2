"""What a decision costs on a truth that names labels which it could not know: they join with this very event.

A decision for one label is wrong then. Of a set they are out; in a ranking they come below all that were known, in order of
joining. Where no label was known there was no decision: one label costs what rejecting, or the dearest decision, does, an
empty set what it costs as a decision, an order 1.
"""

from dataclasses import dataclass

import numpy as np

from .instances import Ints
from .losses.classes import REJECT
from .model import Decision, Model
from .tasks.task import Y


@dataclass(slots=True)
class Before:
    """The decision without the labels that join with the event (None: no label was known), and what it costs."""

    decision: Decision | None
    loss: float


def loss_before(model: Model, decision: Decision | None, y: Y) -> float:
    """L(decision, y), made on fewer labels than y has; None if no label was known."""
    if not isinstance(y, np.ndarray):
        return float(model.loss(REJECT if decision is None else decision.sigma, y))
    labels = len(y)
    if decision is None:
        nothing = Decision(np.zeros(labels, dtype=bool), np.full(labels, -np.inf))
        anything = float((y > 0).any())
        return (float(model.judge(nothing, y)) or anything) if y.dtype == bool else anything
    sigma: Ints = decision.sigma
    fresh = np.arange(len(sigma), labels)
    more = np.zeros(len(fresh), dtype=bool) if sigma.dtype == bool else fresh
    scores = np.concatenate((decision.scores, np.full(len(fresh), -np.inf)))
    return float(model.judge(Decision(np.concatenate((sigma, more)), scores), y))
