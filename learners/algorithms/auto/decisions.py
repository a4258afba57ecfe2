"""From log-odds and probabilities to a decision: the one of least expected cost.

zero-one, hamming, subset-zero-one, absolute   what the scores say by themselves
weighted          argmax_k cost_k p_k
reject            REJECT if sum_k cost_k p_k < 1 - max p, else the most probable label
matrix            argmin_k sum_y L(k, y) p_y
block-zero-one    the most probable label of the most probable block
f-score           the m most probable labels, m the best of 2 (p_1 + .. + p_m) / (m + sum p), and P(none) for m = 0
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from ...errors import lacks
from ...instances import Floats
from ...losses import classes, subsets
from ...losses.classes import REJECT
from ...losses.costs import CostMatrix
from ...tasks.task import Sigma, Task, Y, lead


class Decider(ABC):
    """`most` is the largest loss that a round may have with so many labels; `asks` tells that p is looked at."""

    asks = True
    view: Floats | None = None  # the labels' scores are view @ t, where t is of the bits of a grade

    def price(self, costs: Sequence[float]) -> None:
        """What missing, or rejecting, each label costs."""
        raise lacks(self, "costs")

    def charge(self, costs: CostMatrix) -> None:
        """What each decision costs on each truth."""
        raise lacks(self, "matrix of costs")

    def group(self, blocks: Sequence[int]) -> None:
        """The block of each label, -1 for one that no block names."""
        raise lacks(self, "blocks")

    @abstractmethod
    def decide(self, t: Floats, p: Floats) -> Sigma:
        """The decision; ties go to what joined first."""

    @abstractmethod
    def margin(self, t: Floats, p: Floats) -> float | None:
        """The gap that another decision would have to close."""

    @abstractmethod
    def loss(self, sigma: Sigma, y: Y) -> float:
        """What the decision costs."""

    def most(self, labels: int) -> float:
        return 1.0


class ByScores(Decider):
    """As a task of the core decides: scores say it all. `counts` tells that a loss is a number of labels or grades."""

    asks = False

    def __init__(self, task: Task, counts: bool = False) -> None:
        self.task = task
        self.counts = counts

    def decide(self, t: Floats, p: Floats) -> Sigma:
        return self.task.decide(t)

    def margin(self, t: Floats, p: Floats) -> float | None:
        return self.task.margin(t)

    def loss(self, sigma: Sigma, y: Y) -> float:
        return self.task.loss(sigma, y)

    def most(self, labels: int) -> float:
        return float(max(labels, 1)) if self.counts else 1.0


class ByMatrix(Decider):
    """L of a matrix: the decision of least expected cost, of classes or of grades (with a `view`)."""

    def __init__(self, view: Floats | None = None) -> None:
        self.view = view
        self.costs: CostMatrix = CostMatrix()

    def charge(self, costs: CostMatrix) -> None:
        self.costs = costs

    def decide(self, t: Floats, p: Floats) -> Sigma:
        return int(self.costs.gains(p).argmax())

    def margin(self, t: Floats, p: Floats) -> float | None:
        return lead(self.costs.gains(p))

    def loss(self, sigma: Sigma, y: Y) -> float:
        return self.costs.cost(sigma, y)

    def most(self, labels: int) -> float:
        return self.costs.highest


class ByGrade(Decider):
    """The grade g of the highest sum of log-odds of the bits, those below g for it and the others against it."""

    asks = False

    def __init__(self, view: Floats) -> None:
        self.view: Floats = view

    def _sums(self, t: Floats) -> Floats:
        # From the lowest grade up, each bit in turn: -t/2 of all bits, then t more for every step.
        return np.concatenate(([0.0], np.add.accumulate(t)))

    def decide(self, t: Floats, p: Floats) -> Sigma:
        return int(self._sums(t).argmax())

    def margin(self, t: Floats, p: Floats) -> float | None:
        return lead(self._sums(t))

    def loss(self, sigma: Sigma, y: Y) -> float:
        return classes.absolute(sigma, y)

    def most(self, labels: int) -> float:
        return float(max(len(self.view) - 1, 1))


class _Costed(Decider):
    """Expected costs of all decisions, REJECT last where it is one."""

    def __init__(self) -> None:
        self.costs: Floats = np.zeros(0)

    def price(self, costs: Sequence[float]) -> None:
        self.costs = np.array(costs, dtype=np.float64)

    @abstractmethod
    def expected(self, p: Floats) -> Floats:
        """The expected cost of each decision."""

    def decide(self, t: Floats, p: Floats) -> Sigma:
        return int(self.expected(p).argmin())

    def margin(self, t: Floats, p: Floats) -> float | None:
        return lead(-self.expected(p))

    def most(self, labels: int) -> float:
        return max(1.0, float(self.costs.max(initial=0.0)))


class Weighted(_Costed):
    """L = cost_y if sigma != y: -cost_k p_k, up to a constant."""

    def expected(self, p: Floats) -> Floats:
        return -(p * self.costs[: len(p)])

    def loss(self, sigma: Sigma, y: Y) -> float:
        return 0.0 if sigma == y else float(self.costs[y])


class WithReject(_Costed):
    """L(REJECT, y) = cost_y, else 1 if wrong."""

    def expected(self, p: Floats) -> Floats:
        return np.append(1.0 - p, np.add.accumulate(p * self.costs[: len(p)])[-1])

    def decide(self, t: Floats, p: Floats) -> Sigma:
        expected = self.expected(p)
        best = int(expected.argmin())  # the first of equals, so that REJECT loses ties
        return REJECT if best == len(p) else best

    def loss(self, sigma: Sigma, y: Y) -> float:
        return classes.reject(sigma, y, float(self.costs[y]))


class ByBlock(Decider):
    """L = 1 unless sigma and y are of one block; a label that no block names is a block of its own."""

    def __init__(self) -> None:
        self.blocks: list[int] = []

    def group(self, blocks: Sequence[int]) -> None:
        alone = max(blocks, default=-1) + 1
        self.blocks = [b if b >= 0 else alone + i for i, b in enumerate(blocks)]

    def _shares(self, p: Floats) -> dict[int, float]:
        shares: dict[int, float] = {}
        for block, share in zip(self.blocks, p.tolist(), strict=False):
            shares[block] = shares.get(block, 0.0) + share
        return shares

    def decide(self, t: Floats, p: Floats) -> Sigma:
        shares = self._shares(p)
        best = max(shares, key=lambda block: shares[block])
        return int(np.where(np.array(self.blocks[: len(p)]) == best, t, -np.inf).argmax())

    def margin(self, t: Floats, p: Floats) -> float | None:
        return lead(np.array(list(self._shares(p).values())))

    def loss(self, sigma: Sigma, y: Y) -> float:
        return float(sigma == REJECT or self.blocks[sigma] != self.blocks[y])


class FScore(Decider):
    """L = 1 - 2a / (2a + b + c), 0 for two empty sets."""

    def _values(self, p: Floats) -> tuple[np.ndarray, Floats]:
        """The labels, most probable first, and the score of taking m of them."""
        order = np.argsort(-p, kind="stable")
        sums = np.add.accumulate(p[order]) if len(p) else np.zeros(0)
        none = float(np.multiply.accumulate(1.0 - p)[-1]) if len(p) else 1.0
        whole = float(sums[-1]) if len(p) else 0.0
        return order, np.append(none, 2.0 * sums / (np.arange(1.0, len(p) + 1.0) + whole))

    def decide(self, t: Floats, p: Floats) -> Sigma:
        order, values = self._values(p)
        sigma = np.zeros(len(p), dtype=bool)
        sigma[order[: int(values.argmax())]] = True
        return sigma

    def margin(self, t: Floats, p: Floats) -> float | None:
        return lead(self._values(p)[1])

    def loss(self, sigma: Sigma, y: Y) -> float:
        a, b, c, _ = subsets.counts(sigma, y)
        return 1.0 - 2.0 * a / (2.0 * a + b + c) if a + b + c else 0.0
