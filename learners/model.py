"""Models: how scores become decisions, and feedback becomes a step.

All algorithms but one are `FirstOrder`: weights give scores, a surrogate gives a direction, the weights take the step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .errors import OptionError, pointer
from .instances import Floats
from .tasks.base import Task, Truth
from .weights.base import Arrays, Counters, Weights, X


@dataclass(slots=True)
class Decision:
    """sigma in the task's form; one score a label or item; the value of the objective where a search found sigma.

    `judged` is what judging it found out and learning from it needs again.
    """

    sigma: Any
    scores: Floats
    objective: float | None = None
    judged: Any = None


class Surrogate(Protocol):
    """The one thing that differs between algorithms."""

    def direction(self, t: Floats, y: Truth, x: X, weights: Weights) -> Floats | None:
        """g in score space, or None where this round teaches nothing."""


class Model(Protocol):
    """What a learner asks of its algorithm. Only `grow`, `learn` and `restore` change it."""

    # Whether an event teaches while no label is known.
    learns_unlabelled: bool

    def grow(self, features: int, labels: int) -> None:
        """Make room for what has joined."""

    def offers(self, loss: str | None) -> None:
        """Refuse a decoder that the model does not have."""

    def price(self, costs: list[float]) -> None:
        """What missing, or rejecting, each label costs; called where the loss has costs."""

    def group(self, blocks: list[int]) -> None:
        """The block of each label, -1 for one that no block names; called where the loss has blocks."""

    def decide(self, x: X, loss: str | None = None) -> Decision:
        """The decision on x; `loss` picks another decoder where the model has several."""

    def margin(self, x: X, decision: Decision, loss: str | None = None) -> float | None:
        """The gap that another decision would have to close."""

    def judge(self, decision: Decision, y: Truth) -> float:
        """What the round costs."""

    def loss(self, sigma: Any, y: Truth) -> float:
        """L(sigma, y) of a decision that was served."""

    def learn(self, x: X, decision: Decision, y: Truth, scored: X, clicked: Floats | None = None) -> bool:
        """Take the step: `x` has every feature known, `scored` is what the decision saw. True if weights changed.

        `clicked`, if given, holds the inverse propensity of every clicked item of the list and 0 for the others.
        """

    def contributions(self, x: X, loss: str | None = None) -> Floats | None:
        """What each active feature adds to each score."""

    def certificate(self) -> dict[str, Any]:
        """What the theory proves at this moment."""

    def arrays(self) -> Arrays: ...
    def counters(self) -> Counters: ...
    def restore(self, arrays: Arrays, counters: Counters) -> None: ...
    def nbytes(self) -> int: ...


class FirstOrder:
    """t = scores(x); g = direction(t, y); theta <- theta - eta g x'. `eta` is a number, or a function of the instance."""

    learns_unlabelled = False

    def __init__(
        self, task: Task, surrogate: Surrogate, weights: Weights, eta: float | Callable[[X], float]
    ) -> None:
        self.task = task
        self.surrogate = surrogate
        self.weights = weights
        self.eta = eta
        self.loss = task.loss

    def grow(self, features: int, labels: int) -> None:
        self.weights.grow(features, labels)

    def offers(self, loss: str | None) -> None:
        if loss is not None:
            raise OptionError("only the quadratic surrogate has a decoder to choose", pointer("loss"))

    def price(self, costs: list[float]) -> None:
        self.task.costs = costs  # type: ignore[attr-defined]

    def group(self, blocks: list[int]) -> None:
        """No loss of a first-order model has blocks."""

    def decide(self, x: X, loss: str | None = None) -> Decision:
        self.offers(loss)
        t = self.weights.scores(x)
        return Decision(self.task.decide(t), t)

    def margin(self, x: X, decision: Decision, loss: str | None = None) -> float | None:
        return self.task.margin(decision.scores)

    def judge(self, decision: Decision, y: Truth) -> float:
        return self.task.judge(decision.scores, y)

    def direction(self, decision: Decision, y: Truth, scored: X) -> Floats | None:
        return self.surrogate.direction(decision.scores, y, scored, self.weights)

    def learn(self, x: X, decision: Decision, y: Truth, scored: X, clicked: Floats | None = None) -> bool:
        if clicked is None:
            g = self.direction(decision, y, scored)
        else:
            g = self._clicks(decision.scores, clicked, scored)
        if g is None:
            return False
        self.weights.step(x, g, self.eta(x) if callable(self.eta) else self.eta)
        return True

    def _clicks(self, t: Floats, clicked: Floats, scored: X) -> Floats | None:
        """g = sum_c w_c g(t, e_c): each click is a judgement of its own that counts w_c times."""
        total: Floats | None = None
        for c in clicked.nonzero()[0].tolist():
            alone = np.zeros(len(t))
            alone[c] = 1.0
            g = self.surrogate.direction(t, alone, scored, self.weights)
            if g is not None:
                total = clicked[c] * g if total is None else total + clicked[c] * g
        return total

    def contributions(self, x: X, loss: str | None = None) -> Floats | None:
        return self.weights.contributions(x)

    def certificate(self) -> dict[str, Any]:
        certificate = getattr(self.surrogate, "certificate", None)
        return certificate() if certificate else {}

    def arrays(self) -> Arrays:
        return self.weights.arrays()

    def counters(self) -> Counters:
        own = getattr(self.surrogate, "counters", None)
        return {"weights": self.weights.counters(), "surrogate": own() if own else {}}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        self.weights.restore(arrays, counters["weights"])
        if counters["surrogate"]:
            self.surrogate.restore(counters["surrogate"])  # type: ignore[attr-defined]

    def nbytes(self) -> int:
        return self.weights.nbytes()


class ListSurrogate(Surrogate, Protocol):
    """A surrogate of orders that judges and learns in one go."""

    def judge(self, order: Any, y: Floats) -> tuple[Any, ...]:
        """The loss of an order, and behind it what finding it out leaves for the direction."""

    def direction(
        self, t: Floats, y: Truth, x: X, weights: Weights, order: Any = None, judged: Any = None
    ) -> Floats | None:
        """g in score space; `order` is that of the scores and `judged` what `judge` says of it, where known."""


class Lists(FirstOrder):
    """FirstOrder where a decision is an order: judged and learned from as it was decided, sorted and judged once."""

    surrogate: ListSurrogate

    def judge(self, decision: Decision, y: Truth) -> float:
        decision.judged = self.surrogate.judge(decision.sigma, y)
        return float(decision.judged[0])

    def direction(self, decision: Decision, y: Truth, scored: X) -> Floats | None:
        return self.surrogate.direction(
            decision.scores, y, scored, self.weights, decision.sigma, decision.judged
        )
