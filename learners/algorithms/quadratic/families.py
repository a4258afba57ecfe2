"""What each task keeps as psi, which losses that serves, and how: columns to ask for, the decision, and its scores
as functionals.

    family   psi kept                                               losses served
    Classes  1[y = j]                                               zero-one, weighted, block-zero-one
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

from ...errors import OptionError, pointer
from ...instances import Floats, Ints
from ...losses import rankings as losses
from ...tasks.task import Sigma, Y
from ...weights.base import Arrays
from . import decoders
from .decoders import Optimum
from .targets import normalised_gains, relevant

__all__ = ["Classes", "Family", "Items", "ranking_loss"]


class Family(ABC):
    """A task's psi and decoders; `loss` is always one of `served`."""

    served: tuple[str, ...]

    @abstractmethod
    def grow(self, labels: int) -> None:
        """So many labels have joined."""

    def price(self, costs: Sequence[float]) -> None:
        """What missing each label costs, where the loss has costs."""
        raise ValueError(f"{type(self).__name__} has no loss with costs")

    def group(self, blocks: Sequence[int]) -> None:
        """The block of each label, -1 for a label that none names."""
        raise ValueError(f"{type(self).__name__} has no loss with blocks")

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


class Classes(Family):
    """psi(y) = e_y: g_y estimates P(y | x), and every loss of one label is linear in it."""

    served: tuple[str, ...] = ("zero-one", "weighted", "block-zero-one")

    def __init__(self, loss: str, cutoff: int | None = None) -> None:
        # What these two lose depends on the spec, so they are served where it gives them.
        self.served = tuple(name for name in self.served if name in ("zero-one", loss))
        self.labels = 0
        self.costs: Sequence[float] = ()
        self.blocks: Sequence[int] = ()

    def price(self, costs: Sequence[float]) -> None:
        self.costs = costs

    def group(self, blocks: Sequence[int]) -> None:
        self.blocks = blocks

    def grow(self, labels: int) -> None:
        self.labels = labels

    def mark(self) -> int:
        return self.labels

    def rewind(self, mark: int) -> None:
        self.labels = mark

    def _costs(self, loss: str) -> Floats:
        costs = np.ones(self.labels)
        if loss == "weighted":
            costs[: len(self.costs)] = self.costs[: self.labels]
        return costs

    def psi(self, y: int) -> tuple[Ints, Floats]:
        return np.array([y]), np.ones((1, 1))

    def columns(self, loss: str) -> Ints:
        return np.arange(self.labels)

    def decode(self, loss: str, theta: Floats) -> Optimum:
        if loss == "block-zero-one":
            return decoders.block_zero_one(theta[0], groups_of(self.blocks, self.labels))
        return decoders.weighted_zero_one(theta[0], self._costs(loss))

    def functionals(self, loss: str, theta: Floats) -> Floats:
        if loss != "block-zero-one":
            return np.diag(self._costs(loss))
        groups = groups_of(self.blocks, self.labels)
        T: Floats = (groups[:, None] == groups) + np.eye(self.labels)
        for j in range(self.labels):
            members = np.flatnonzero(groups == groups[j])
            T[j, members[theta[0, members].argmax()]] -= 1.0
        return T

    def loss(self, loss: str, sigma: int, y: int) -> float:
        if loss == "block-zero-one":
            groups = groups_of(self.blocks, max(self.labels, y + 1))
            return float(sigma < 0 or groups[sigma] != groups[y])
        return 0.0 if sigma == y else float(self._costs(loss)[y])


def ranking_loss(loss: str, sigma: Ints, y: Floats, cutoff: int | None) -> float:
    """The four losses of an order."""
    if loss == "ndcg":
        return losses.ndcg_loss(sigma, y, cutoff)
    if loss == "precision":
        return losses.precision_loss(sigma, y, needed(cutoff))
    return losses.ap_loss(sigma, y) if loss == "ap" else losses.pairwise_disagreement_loss(sigma, y)


def needed(cutoff: int | None) -> int:
    """The cutoff that precision cannot do without."""
    if cutoff is None:
        raise OptionError("precision needs a cutoff, and this learner's spec has none", pointer("loss"))
    return cutoff


def steps_of(loss: str, m: int, cutoff: int | None) -> Floats:
    """D_p - D_{p + 1} of the places p = 1 .. m, where the risk of an order is - sum_j v_j D_{place of j}."""
    if loss == "ndcg":
        D = np.append(losses.discounts(m), 0.0)
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

    served: tuple[str, ...] = ("ndcg", "precision", "ap", "pairwise-disagreement")

    def __init__(self, loss: str, cutoff: int | None = None) -> None:
        self.cutoff = cutoff

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
            (normalised_gains(y, self.cutoff), above, above / max(1.0, above.sum()), wins / N)
        )

    def columns(self, loss: str) -> Ints:
        return np.array([self.served.index(loss)])

    def decode(self, loss: str, theta: Floats) -> Optimum:
        v = theta[:, 0]
        if loss == "precision" and self.cutoff is None:
            return Optimum(np.argsort(-v, kind="stable"), v, None)
        return decoders.sorted_order(v, steps_of(loss, len(v), self.cutoff))

    def functionals(self, loss: str, theta: Floats) -> Floats:
        return np.ones((1, 1))

    def loss(self, loss: str, sigma: Ints, y: Floats) -> float:
        return ranking_loss(loss, sigma, y, self.cutoff)
