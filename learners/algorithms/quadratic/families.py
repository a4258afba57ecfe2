"""What each task keeps as psi, which losses that serves, and how: columns to ask for, the decision, and its scores
as functionals.

    family   psi kept                                               losses served
    Classes  1[y = j] (one_of_several.py)                                  all of one label
    Sets     1, 1[j in y], 1[y = z] of every set z seen (sets.py)   all of sets
    Labels   gains / N, 1[y_j > 0]; pairs of labels (labels.py)     ndcg, precision; ap, pairwise-disagreement
    Items    of each item: gains / N, 1[y > 0], 1[y > 0] / |y|,     all of orders
             net wins / N
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import OptionError, lacks, pointer
from ...instances import Floats, Ints
from ...losses import rankings as losses
from ...losses.costs import CostMatrix
from ...tasks.task import Sigma, Y
from ...weights.base import Arrays
from . import decoders
from .decoders import Optimum
from .targets import normalised_gains, relevant

__all__ = ["WORTH", "Family", "Items", "Worth", "ranking_loss"]

Worth = tuple[str, str]  # the gain of a grade and the discount of a place, as NDCG counts them
WORTH: Worth = ("exponential", "log")


class Family(ABC):
    """A task's psi and decoders; `loss` is always one of `served`."""

    served: tuple[str, ...]

    @abstractmethod
    def grow(self, labels: int) -> None:
        """So many labels have joined."""

    def price(self, costs: Sequence[float]) -> None:
        """What missing each label costs, where the loss has costs."""
        raise lacks(self, "loss with costs")

    def charge(self, costs: CostMatrix) -> None:
        """What each decision costs on each truth, where the loss is a matrix."""
        raise lacks(self, "matrix of costs")

    def group(self, blocks: Sequence[int]) -> None:
        """The block of each label, -1 for a label that none names."""
        raise lacks(self, "loss with blocks")

    @abstractmethod
    def psi(self, y: Y) -> tuple[Ints, Floats]:
        """The columns where psi(y) is not 0, which may join now, and its values, one row for each row of the
        regression.
        """

    @abstractmethod
    def columns(self, loss: str) -> Ints:
        """The columns that decoding needs."""

    @abstractmethod
    def decode(self, loss: str, theta: Floats) -> Optimum:
        """The decision, from g(x) in those columns: (rows, columns)."""

    @abstractmethod
    def functionals(self, loss: str, theta: Floats) -> Floats:
        """T (scores, columns asked) with scores = T theta, at this decision. For items, one row that fits all."""

    @abstractmethod
    def loss(self, loss: str, sigma: Sigma, y: Y) -> float:
        """L(sigma, y)."""

    @abstractmethod
    def mark(self) -> Any:
        """What `rewind` needs."""

    @abstractmethod
    def rewind(self, mark: Any) -> None:
        """All as it was at the mark: labels and columns that have joined leave again."""

    def arrays(self) -> Arrays:
        """What is kept beside the labels."""
        return {}

    def restore(self, arrays: Arrays) -> None:  # noqa: B027  (most keep nothing beside the labels)
        """Take it back."""

    def nbytes(self) -> int:
        """Memory in use."""
        return 0


def groups_of(blocks: Sequence[int], labels: int) -> Ints:
    """The block of each label as 0, 1, ... in order of joining; a label that no block names (-1) is a block of its
    own.
    """
    numbers: dict[int, int] = {}
    groups = np.empty(labels, dtype=np.intp)
    for j in range(labels):
        block = blocks[j] if j < len(blocks) else -1
        groups[j] = numbers.setdefault(block if block >= 0 else -1 - j, len(numbers))
    return groups


def ranking_loss(loss: str, sigma: Ints, y: Floats, cutoff: int | None, worth: Worth = WORTH) -> float:
    """The four losses of an order."""
    if loss == "ndcg":
        return losses.ndcg_loss(sigma, y, cutoff, *worth)
    if loss == "precision":
        return losses.precision_loss(sigma, y, needed(cutoff))
    return losses.ap_loss(sigma, y) if loss == "ap" else losses.pairwise_disagreement_loss(sigma, y)


def needed(cutoff: int | None) -> int:
    """The cutoff that precision cannot do without."""
    if cutoff is None:
        raise OptionError("precision needs a cutoff, and this learner's spec has none", pointer("loss"))
    return cutoff


def steps_of(loss: str, m: int, cutoff: int | None, worth: Worth = WORTH) -> Floats:
    """D_p - D_{p + 1} of the places p = 1 .. m, where the risk of an order is - sum_j v_j D_{place of j}."""
    if loss == "ndcg":
        D = np.append(losses.discounts(m, worth[1]), 0.0)
    elif loss == "ap":
        D = np.append(1.0 / np.arange(1.0, m + 1.0), 0.0)
    elif loss == "precision":
        D = np.full(m + 1, 1.0 / needed(cutoff))
    else:  # net wins: D falls evenly, and a pair is lost once
        return np.full(m, 1.0 / max(1, m))
    if loss in ("ndcg", "precision") and cutoff is not None:
        D[cutoff:] = 0.0
    steps: Floats = D[:-1] - D[1:]
    return steps


class Items(Family):
    """The items of a list are rows of one regression, with a target each; each order sorts by one of four.

    ndcg                   G(y_j) / N(y)
    precision              1[y_j > 0]
    ap                     1[y_j > 0] / |y|, the diagonal of AP's psi: the best order where relevances are independent
    pairwise-disagreement  (won - lost pairs of j) / N(y): the best order where the estimate of pair j, l is u_j - u_l
    """

    cutoff: int | None
    worth: Worth

    served: tuple[str, ...] = ("ndcg", "precision", "ap", "pairwise-disagreement")

    def __init__(self, loss: str, cutoff: int | None = None, worth: Worth = WORTH) -> None:
        self.cutoff, self.worth = cutoff, worth

    def grow(self, labels: int) -> None:
        """Lists bring their own items."""

    def mark(self) -> None:
        return None

    def rewind(self, mark: None) -> None:
        """Nothing is kept."""

    def psi(self, y: Floats) -> tuple[Ints, Floats]:
        above = relevant(y)
        ordered = np.sort(y)
        wins = np.searchsorted(ordered, y, side="left") - (len(y) - np.searchsorted(ordered, y, side="right"))
        _, counts = np.unique(ordered, return_counts=True)
        N = max(1.0, (len(y) ** 2 - float((counts**2).sum())) / 2.0)  # pairs of unequal grade
        return np.arange(4), np.column_stack(
            (normalised_gains(y, self.cutoff, *self.worth), above, above / max(1.0, above.sum()), wins / N)
        )

    def columns(self, loss: str) -> Ints:
        return np.array([self.served.index(loss)])

    def decode(self, loss: str, theta: Floats) -> Optimum:
        v = theta[:, 0]
        if loss == "precision" and self.cutoff is None:
            return Optimum(np.argsort(-v, kind="stable"), v, None)
        return decoders.sorted_order(v, steps_of(loss, len(v), self.cutoff, self.worth))

    def functionals(self, loss: str, theta: Floats) -> Floats:
        return np.ones((1, 1))

    def loss(self, loss: str, sigma: Ints, y: Floats) -> float:
        return ranking_loss(loss, sigma, y, self.cutoff, self.worth)
