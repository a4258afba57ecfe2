"""Models: how scores become decisions, and feedback becomes a step.

All but one are `FirstOrder`: weights score, a surrogate gives a direction, the weights step. Another is a `Surrogate`.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import kernel
from .errors import OptionError, lacks, pointer
from .instances import Floats, Ints
from .json_types import Json
from .kernel import FeatureBlocks, Table
from .losses.costs import CostMatrix
from .results import ExpertRow
from .scaling import Scaling
from .tasks.task import Sigma, Task, Y
from .weights.base import Arrays, Counters, Savable, Weights, X
from .weights.linear import Linear, Named
from .whole_rounds import Fused, FusedOrders, WholeRound


@dataclass(slots=True)
class Decision:
    """sigma in the task's form; one score a label or item; the value of the objective where a search gave sigma.

    `judged` is what learning needs again; `probabilities` are one a label, if any; `before`: see unknown_labels.py.
    """

    sigma: Sigma
    scores: Floats
    objective: float | None = None
    judged: Any = None
    probabilities: Floats | None = None
    before: Any = None


@dataclass(slots=True)
class Round:
    """What a direction may look at: the scores t of x, the truth y, and the weights that gave the scores.

    `order` is that of the scores, `judged` what `Surrogate.judge` says of it, where they are there already; `weight` how
    many times the event counts.
    """

    t: Floats
    y: Y
    x: X | None = None
    weights: Weights | None = None
    order: Sigma = None
    judged: Any = None
    weight: float = 1.0


class Surrogate(ABC):
    """The one thing that differs between algorithms."""

    @abstractmethod
    def direction(self, round: Round) -> Floats | None:
        """g in score space, or None where this round teaches nothing. `FirstOrder` multiplies it by the weight."""

    # A direction that makes use of `round.weight` by itself says so.
    weighs = False
    # What it adds up round by round, replaced as a whole; empty where nothing is.
    sums: tuple[Any, ...] = ()
    by_loss = False  # whether the direction is as long as the loss is high

    def fused(self) -> dict[str, Any] | None:
        """How `kernel.Rounds` does the same on linear weights where the decision is an argmax; None if it does not."""
        return None

    def judge(self, order: Sigma, y: Y) -> tuple[Any, ...] | None:
        """(loss of an order, what else is needed of it for the direction); None leaves the judgement to the task."""
        return None

    def certificate(self) -> dict[str, Json]:
        """What the theory proves at this moment."""
        return {}

    def counters(self) -> Counters:
        """The state of the surrogate: plain numbers."""
        return {}

    def restore(self, counters: Counters) -> None:
        """Take the state back."""
        if counters:
            raise lacks(self, "state to restore")


class Model(Savable):
    """What a learner asks of its algorithm. Only `grow`, `price`, `charge`, `group`, `learn`, `restore` change it."""

    # Whether an event teaches while no label is known.
    learns_unlabelled = False
    # Called with what was scored and the direction g, before a step along -g; no part of the state.
    witness: Callable[[X, Floats], None] | None = None
    # The labels' scores are view @ t, where the model scores something else than the labels: (labels, columns).
    view: Floats | None = None
    # Parts of a score that belong to no feature: the last rows of `contributions`.
    extra_names: tuple[str, ...] = ()
    # Whether `contributions` of some features do not depend on which others are asked about.
    piecewise = False

    def place(self, first: int, width: int) -> None:
        """The parts of a vector are in these rows of the features from now on; none are where `width` is 0."""
        return

    def columns(self, labels: int) -> int:
        """The columns of the weights that so many labels take."""
        return labels

    def fused(
        self, features: Table, scaling: Scaling | None, blocks: FeatureBlocks | None
    ) -> "WholeRound | None":
        """The whole round on one vector in the kernel, with the same bits as the pieces; None where it has none."""
        return None

    @abstractmethod
    def grow(self, features: int, columns: int) -> None:
        """Make room for what has joined."""

    def offers(self, loss: str | None) -> None:
        """Refuse a decoder that the model does not have."""
        if loss is not None:
            raise OptionError("this learner has no decoder to choose", pointer("loss"))

    def price(self, costs: Sequence[float]) -> None:
        """What missing, or rejecting, each label costs; called where the loss has costs."""
        raise lacks(self, "loss with costs")

    def charge(self, costs: CostMatrix) -> None:
        """What each decision costs on each truth; called where the loss is `matrix`."""
        raise lacks(self, "matrix of costs")

    def group(self, blocks: Sequence[int]) -> None:
        """The block of each label, -1 for one that no block names; called where the loss has blocks."""
        raise lacks(self, "loss with blocks")

    @abstractmethod
    def decide(self, x: X, loss: str | None = None) -> Decision:
        """The decision on x; `loss` picks another decoder where the model has several."""

    @abstractmethod
    def margin(self, x: X, decision: Decision, loss: str | None = None) -> float | None:
        """The gap that another decision would have to close."""

    @abstractmethod
    def judge(self, decision: Decision, y: Y) -> float:
        """What the round costs."""

    @abstractmethod
    def loss(self, sigma: Sigma, y: Y) -> float:
        """L(sigma, y) of a decision that was served."""

    @abstractmethod
    def learn(
        self, x: X, decision: Decision, y: Y, scored: X, clicked: Floats | None = None, weight: float = 1.0
    ) -> bool:
        """Take the step: every feature of `x` is known, `scored` is what the decision saw. True if weights changed.

        `clicked`, if given, holds the inverse propensity of every clicked item of the list and 0 for the others. The
        event counts `weight` times. If anything is raised, `rewind` follows: no weight has changed.
        """

    def contributions(self, x: X, loss: str | None = None) -> Floats | None:
        """What each active feature adds to each score; None where a score is not a sum over features."""
        return None

    def item_weights(self, rows: Ints) -> Floats | None:
        """One weight a feature of items, where contributions to one item alone say nothing; None elsewhere."""
        return None

    def certificate(self) -> dict[str, Json]:
        """What the theory proves at this moment."""
        return {}

    def expert_rows(self) -> list[ExpertRow] | None:
        """One row an expert; None where there are none."""
        return None

    def drift(self) -> dict[str, Json] | None:
        """What the drift alarm has to say; None where there is none."""
        return None

    def upgraded(self, counters: Counters) -> tuple[Counters, Arrays]:
        """The counters of an older release as `restore` takes them, and the arrays that it wrote otherwise or not."""
        return counters, {}

    def modern(self, arrays: Arrays) -> Arrays:
        """The arrays of an older release as `restore` takes them."""
        return arrays

    def mark(self) -> Any:
        """What `rewind` needs to take back all that happens until the next `learn` has returned.

        The default copies the whole state, which is right but slow.
        """
        return copy.deepcopy(vars(self))

    def rewind(self, mark: Any) -> None:
        """All as it was at the mark."""
        vars(self).clear()
        vars(self).update(mark)

    @property
    def examples(self) -> int:
        """How many vectors are stored, where scores are sums over stored vectors."""
        return 0

    @abstractmethod
    def nbytes(self) -> int:
        """Memory in use."""

    def nbytes_for(self, features: int, labels: int) -> int:
        """Memory that so many features and labels would take, roughly."""
        return 8 * features * labels


class FirstOrder(Model):
    """t = scores(x); g = direction(round); theta <- theta - eta w g x', w the weight of the event."""

    piecewise = True

    def __init__(self, task: Task, surrogate: Surrogate, weights: Weights, eta: float = 1.0) -> None:
        self.task = task
        self.surrogate = surrogate
        self.weights = weights
        self.eta = eta
        self.view: Floats | None = task.view

    def columns(self, labels: int) -> int:
        return self.task.columns(labels)

    def fused(self, features: Table, scaling: Scaling | None, blocks: FeatureBlocks | None) -> Fused | None:
        settings, weights, task = self.surrogate.fused(), self.weights, self.task
        if (
            kernel.Rounds is None
            or settings is None
            or scaling is not None
            or not (task.argmax or task.parts or task.measure is not None)
        ):
            return None
        if type(weights) is not Linear and type(weights) is not Named:
            return None
        if task.measure is not None:
            settings |= {"ranks": True, "measure": task.measure, "cutoff": task.cutoff or 0}
            rounds = kernel.Rounds(features, weights.kernel, eta=self.eta, blocks=blocks, **settings)
            return FusedOrders(rounds, task, self.surrogate)
        rounds = kernel.Rounds(
            features, weights.kernel, eta=self.eta, ranks=task.parts, blocks=blocks, **settings
        )
        return Fused(rounds, task, self.surrogate)

    def grow(self, features: int, columns: int) -> None:
        self.weights.grow(features, columns)

    def mark(self) -> tuple[object, Counters]:
        return self.weights.mark(), self.surrogate.counters()

    def rewind(self, mark: tuple[object, Counters]) -> None:
        self.weights.rewind(mark[0])
        self.surrogate.restore(mark[1])

    def price(self, costs: Sequence[float]) -> None:
        self.task.price(costs)

    def charge(self, costs: CostMatrix) -> None:
        self.task.charge(costs)

    def decide(self, x: X, loss: str | None = None) -> Decision:
        self.offers(loss)
        t = self.weights.scores(x)
        return Decision(self.task.decide(t), t)

    def margin(self, x: X, decision: Decision, loss: str | None = None) -> float | None:
        return self.task.margin(decision.scores)

    def judge(self, decision: Decision, y: Y) -> float:
        decision.judged = self.surrogate.judge(decision.sigma, y)
        return self.task.judge(decision.scores, y) if decision.judged is None else float(decision.judged[0])

    def loss(self, sigma: Sigma, y: Y) -> float:
        return self.task.loss(sigma, y)

    def learn(
        self, x: X, decision: Decision, y: Y, scored: X, clicked: Floats | None = None, weight: float = 1.0
    ) -> bool:
        round = Round(decision.scores, y, scored, self.weights, decision.sigma, decision.judged, weight)
        g = self.surrogate.direction(round) if clicked is None else self._clicks(round, clicked)
        if g is None:
            return False
        if self.witness is not None:
            self.witness(scored, g)
        self.weights.step(x, g, self.eta if self.surrogate.weighs else self.eta * weight)
        return True

    def _clicks(self, round: Round, clicked: Floats) -> Floats | None:
        """g = sum_c w_c g(t, e_c): each click is a judgement of its own that counts w_c times."""
        total: Floats | None = None
        for c in clicked.nonzero()[0].tolist():
            alone = np.zeros(len(round.t))
            alone[c] = 1.0
            g = self.surrogate.direction(Round(round.t, alone, round.x, round.weights, round.order))
            if g is not None:
                total = clicked[c] * g if total is None else total + clicked[c] * g
        return total

    def contributions(self, x: X, loss: str | None = None) -> Floats | None:
        return self.weights.contributions(x)

    def certificate(self) -> dict[str, Json]:
        return self.surrogate.certificate()

    @property
    def examples(self) -> int:
        return self.weights.examples

    def arrays(self) -> Arrays:
        return self.weights.arrays()

    def counters(self) -> Counters:
        return {"weights": self.weights.counters(), "surrogate": self.surrogate.counters()}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        self.weights.restore(arrays, counters["weights"])
        self.surrogate.restore(counters["surrogate"])

    def nbytes(self) -> int:
        return self.weights.nbytes()
