"""One label out of m: binary, multiclass, ordinal, and abstaining (REJECT)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..instances import Floats
from ..losses import classes as losses
from ..losses.classes import REJECT
from ..losses.costs import CostMatrix
from ..registry import Loss, Spec, register
from .task import Task, lead

__all__ = ["REJECT", "Binary", "Costs", "Multiclass", "Ordinal", "Reject", "TwoCosts"]


class _Costed(Task):
    """Costs by label index, for the learner to extend as labels join; a label beyond the list costs 1."""

    def __init__(self, costs: Sequence[float] = ()) -> None:
        self.costs: list[float] = list(costs)

    def price(self, costs: Sequence[float]) -> None:
        self.costs = list(costs)

    def cost(self, y: int) -> float:
        return self.costs[y] if y < len(self.costs) else 1.0


class Binary(_Costed):
    """L(sigma, y) = alpha_y if sigma != y; rep = +1 for the positive label, -1 for the negative; d = 1.

    Labels are 0 (negative, which joined first and takes a tie) and 1 (positive). The margin is 2|t|.
    """

    view: Floats | None = np.array([[-1.0], [1.0]])

    def columns(self, labels: int) -> int:
        return 1

    def decide(self, t: Floats) -> int:
        return int(t[0] > 0.0)

    def loss(self, sigma: int, y: int) -> float:
        return losses.weighted(sigma, y, self.cost(y))

    def judge(self, t: Floats, y: int) -> float:
        return self.loss(self.decide(t), y)

    def rep(self, sigma: int, d: int = 1) -> Floats:
        return np.array([2.0 * sigma - 1.0])

    def correct(self, y: int, t: Floats) -> int:
        return y if self.cost(y) > 0.0 else self.decide(t)

    def augmented(self, y: int, t: Floats) -> int:
        similarity = (2 * y - 1) * float(t[0])
        return 1 - y if self.cost(y) - similarity > similarity else y

    def rival(self, y: int, t: Floats) -> int | None:
        return 1 - y if self.cost(y) > 0.0 else None

    def margin(self, t: Floats) -> float:
        return 2.0 * abs(float(t[0]))


class Multiclass(_Costed):
    """L(sigma, y) = alpha_y if sigma != y (zero-one where alpha = 1); rep(sigma) = e_sigma."""

    argmax = True

    def decide(self, t: Floats) -> int:
        return int(t.argmax()) if t.size else REJECT  # before any label has joined

    def loss(self, sigma: int, y: int) -> float:
        return 0.0 if sigma == y else self.cost(y)

    def judge(self, t: Floats, y: int) -> float:
        return 0.0 if t.argmax() == y else self.cost(y)

    def rep(self, sigma: int, d: int) -> Floats:
        unit = np.zeros(d)
        unit[sigma] = 1.0
        return unit

    def correct(self, y: int, t: Floats) -> int:
        return y if self.cost(y) > 0.0 else self.decide(t)

    def augmented(self, y: int, t: Floats) -> int:
        behind = t.copy()
        behind[y] -= self.cost(y)  # every other label gains alpha_y, so y falls behind by it
        return int(behind.argmax())

    def rival(self, y: int, t: Floats) -> int | None:
        if t.size < 2 or self.cost(y) <= 0.0:
            return None
        others = t.copy()
        others[y] = -math.inf
        return int(others.argmax())

    def margin(self, t: Floats) -> float | None:
        return lead(t)


class Ordinal(Multiclass):
    """L(sigma, y) = |sigma - y|; the reps are those of multiclass, labels are ordered lowest first."""

    argmax = False

    def loss(self, sigma: int, y: int) -> float:
        return losses.absolute(sigma, y)

    def judge(self, t: Floats, y: int) -> float:
        return losses.absolute(self.decide(t), y)

    def augmented(self, y: int, t: Floats) -> int:
        return int((t + np.abs(np.arange(t.size) - y)).argmax())


class Reject(_Costed):
    """L(REJECT, y) = beta_y, else zero-one; rep(sigma) = e_sigma, rep(REJECT) = sum_sigma e_sigma / sqrt(m).

    REJECT loses ties. From W = 0 under l2 the rows of W sum to zero, so that REJECT scores 0 and cannot win while
    costs are at most 1: the paper's option is built as printed, `min_margin` is what abstains in practice.
    """

    def similarities(self, t: Floats) -> Floats:
        """<rep(sigma), t> of every label, and of REJECT at the end."""
        return np.append(t, t.sum() / math.sqrt(t.size))

    def _best(self, similarities: Floats) -> int:
        sigma = int(similarities.argmax())
        return REJECT if sigma == similarities.size - 1 else sigma

    def decide(self, t: Floats) -> int:
        return self._best(self.similarities(t))

    def loss(self, sigma: int, y: int) -> float:
        return losses.reject(sigma, y, self.cost(y))

    def judge(self, t: Floats, y: int) -> float:
        return self.loss(self.decide(t), y)

    def rep(self, sigma: int, d: int) -> Floats:
        if sigma == REJECT:
            return np.full(d, 1.0 / math.sqrt(d))
        unit = np.zeros(d)
        unit[sigma] = 1.0
        return unit

    def correct(self, y: int, t: Floats) -> int:
        if self.cost(y) <= 0.0 and t.sum() / math.sqrt(t.size) > t[y]:
            return REJECT
        return y

    def augmented(self, y: int, t: Floats) -> int:
        gains = self.similarities(t)
        gains[:-1] += 1.0
        gains[y] -= 1.0
        gains[-1] += self.cost(y)
        return self._best(gains)

    def rival(self, y: int, t: Floats) -> int | None:
        others = self.similarities(t)
        others[y] = -math.inf
        if self.cost(y) <= 0.0:
            others[-1] = -math.inf
        best = int(others.argmax())
        return None if others[best] == -math.inf else self._best(others)

    def margin(self, t: Floats) -> float | None:
        return lead(self.similarities(t))


class Costs(Task):
    """L(sigma, y) of a matrix; rep(sigma) = e_sigma. Correct is every decision of the least cost for y.

    Searches are O(m + what the matrix names). With nothing named it is `Multiclass`, bit for bit.
    """

    def __init__(self, costs: CostMatrix | None = None) -> None:
        self.matrix: CostMatrix = costs or CostMatrix()

    def charge(self, costs: CostMatrix) -> None:
        self.matrix = costs

    def similarities(self, t: Floats) -> Floats:
        """<rep(sigma), t> of every label."""
        return t

    def decide(self, t: Floats) -> int:
        return int(self.similarities(t).argmax()) if t.size else REJECT

    def loss(self, sigma: int, y: int) -> float:
        return self.matrix.cost(sigma, y)

    def judge(self, t: Floats, y: int) -> float:
        return self.matrix.cost(self.decide(t), y)

    def excess(self, t: Floats, y: int) -> float:
        return self.matrix.excess(self.decide(t), y)

    def rep(self, sigma: int, d: int) -> Floats:
        unit = np.zeros(d)
        unit[sigma] = 1.0
        return unit

    def correct(self, y: int, t: Floats) -> int:
        similarities = self.similarities(t)
        costs = self.matrix.of(y, similarities.size)
        return int(np.where(costs > costs.min(), -math.inf, similarities).argmax())

    def augmented(self, y: int, t: Floats) -> int:
        similarities = self.similarities(t)
        # Less 1, so that zero-one rounds as `Multiclass` does: there y falls behind.
        return int((similarities + (self.matrix.of(y, similarities.size) - 1.0)).argmax())

    def rival(self, y: int, t: Floats) -> int | None:
        similarities = self.similarities(t)
        costs = self.matrix.of(y, similarities.size)
        wrong = costs > costs.min()
        return int(np.where(wrong, similarities, -math.inf).argmax()) if wrong.any() else None

    def margin(self, t: Floats) -> float | None:
        return lead(self.similarities(t))


class TwoCosts(Costs):
    """The same of two labels: rep = +1 for the positive label, -1 for the negative; d = 1."""

    view: Floats | None = Binary.view

    def columns(self, labels: int) -> int:
        return 1

    def similarities(self, t: Floats) -> Floats:
        return np.append(-t, t)

    def rep(self, sigma: int, d: int = 1) -> Floats:
        return np.array([2.0 * sigma - 1.0])


def _of(kind: type[_Costed | Costs]) -> Callable[[Spec], Task]:
    return lambda spec: kind()


for _loss in (
    Loss("zero-one", "1 if the label is wrong", ("binary",), _of(Binary)),
    Loss("weighted", "the cost of the true label, in `weights`, if it is missed", ("binary",), _of(Binary)),
    Loss("zero-one", "1 if the label is wrong", ("multiclass",), _of(Multiclass)),
    Loss(
        "weighted",
        "the cost of the true label, in `weights`, if it is missed",
        ("multiclass",),
        _of(Multiclass),
    ),
    Loss(
        "reject",
        "1 if wrong; abstaining costs `reject_costs` of the true label",
        ("binary", "multiclass"),
        _of(Reject),
    ),
    Loss("absolute", "the number of grades between guess and truth", ("ordinal",), _of(Ordinal)),
    Loss("matrix", "what `matrix` says of the truth and the decision", ("binary",), _of(TwoCosts)),
    Loss("matrix", "what `matrix` says of the truth and the decision", ("multiclass", "ordinal"), _of(Costs)),
):
    register(_loss)
