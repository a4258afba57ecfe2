"""Label ranking: graded labels of one feature vector.

Gains and relevances, m columns each, are always kept. Average precision and pairwise disagreement need a column
for each pair of labels that was seen: they are kept while there are at most PAIRED labels, or at any number if the
spec's loss is one of the two. A pair with a label that joined later counts as of equal grade in the events before:
its target is 0 there.
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import OptionError, pointer
from ...instances import Floats, Ints
from ...weights.base import Arrays
from . import decoders
from .decoders import Optimum
from .families import WORTH, Family, Worth, ranking_loss, steps_of
from .targets import ABSENT, disagreements, normalised_gains, pairs, relevant

__all__ = ["PAIRED", "Labels"]

PAIRED = 32
_KINDS = 6
_GAIN, _RELEVANT, _BOTH, _ORDERED, _ANY, _REST = range(_KINDS)
_OF_LABEL = {"ndcg": _GAIN, "precision": _RELEVANT}
# The kind of the pairs, and the constant of the risk.
_OF_PAIR = {"ap": (_BOTH, _ANY), "pairwise-disagreement": (_ORDERED, _REST)}


class Slots:
    """The column of every label (`pairs` false), or of every pair j <= l, of one kind of target; -1 where it has none.

    Pair (j, l) has slot l (l + 1) / 2 + j, so that labels that join add slots at the end.
    """

    def __init__(self, pairs: bool) -> None:
        self.pairs = pairs
        self.columns: Ints = np.zeros(0, dtype=np.intp)

    def grow(self, labels: int) -> None:
        count = labels * (labels + 1) // 2 if self.pairs else labels
        if count > len(self.columns):
            self.columns = np.append(self.columns, np.full(count - len(self.columns), -1))

    def at(self, j: Ints, l: Ints) -> Ints:  # noqa: E741  (the paper's letter)
        """The slots of labels j, or of the pairs j <= l."""
        return l * (l + 1) // 2 + j if self.pairs else j

    def joined(self) -> tuple[Ints, Ints, Ints]:
        """The columns that have joined, with their labels j and l."""
        slots = np.flatnonzero(self.columns >= 0)
        if not self.pairs:
            return self.columns[slots], slots, slots
        labels = math.isqrt(2 * len(self.columns))
        ends = np.arange(1, labels + 1)
        ls = np.searchsorted(ends * (ends + 1) // 2, slots, side="right")
        return self.columns[slots], slots - ls * (ls + 1) // 2, ls


class Labels(Family):
    """psi(y): G(y_j) / N(y); 1[y_j > 0]; 1[y_j, y_l > 0] / |y|; sign(y_j - y_l) / N(y); and two constants."""

    cutoff: int | None
    worth: Worth
    count: int

    served: tuple[str, ...] = ("ndcg", "precision", "ap", "pairwise-disagreement")

    def __init__(self, loss: str, cutoff: int | None, worth: Worth = WORTH) -> None:
        self.cutoff, self.worth = cutoff, worth
        self.always: bool = loss in _OF_PAIR
        self.labels: int = 0
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self._slots = {kind: Slots(kind in (_BOTH, _ORDERED)) for kind in range(_KINDS)}

    def grow(self, labels: int) -> None:
        self.labels = labels

    def mark(self) -> tuple[int, int, list[int]]:
        return self.labels, self.count, [len(slots.columns) for slots in self._slots.values()]

    def rewind(self, mark: tuple[int, int, list[int]]) -> None:
        self.labels, self.count, lengths = mark
        for slots, length in zip(self._slots.values(), lengths, strict=True):
            slots.columns = slots.columns[:length]
            slots.columns[slots.columns >= self.count] = -1

    @property
    def paired(self) -> bool:
        return self.always or self.labels <= PAIRED

    def _join(self, kind: int, j: Ints, l: Ints) -> Ints:  # noqa: E741
        """The columns of these labels or pairs, none twice; those that have none join in this order."""
        slots = self._slots[kind]
        slots.grow(1 if kind in (_ANY, _REST) else self.labels)
        at = slots.at(j, l)
        columns: Ints = slots.columns[at]
        fresh = np.flatnonzero(columns < 0)
        columns[fresh] = np.arange(self.count, self.count + len(fresh))
        slots.columns[at] = columns
        self.count += len(fresh)
        return columns

    def psi(self, y: Floats) -> tuple[Ints, Floats]:
        columns, values = [], []

        def add(kind: int, j: Ints, l: Ints, entries: Floats) -> None:  # noqa: E741
            columns.append(self._join(kind, j, l))
            values.append(entries)

        for kind, of_label in (
            (_GAIN, normalised_gains(y, self.cutoff, *self.worth)),
            (_RELEVANT, relevant(y)),
        ):
            j = np.flatnonzero(of_label)
            add(kind, j, j, of_label[j])
        if self.paired:
            zero, one = np.zeros(1, dtype=np.intp), np.ones(1)
            chosen, value = pairs(y)
            if len(chosen):
                first, second = np.triu_indices(len(chosen))
                add(_BOTH, chosen[first], chosen[second], np.full(len(first), value))
                add(_ANY, zero, zero, one)
            js, ls, signs, rest = disagreements(y)
            add(_ORDERED, js, ls, signs)
            if rest:
                add(_REST, zero, zero, rest * one)
        return np.concatenate(columns), np.concatenate(values)[None, :]

    def _of(self, loss: str) -> tuple[Ints, Ints, Ints]:
        if not self.paired:
            raise OptionError(
                f"with more than {PAIRED} labels the targets of {loss} are stored only if it is the loss of the spec",
                pointer("loss"),
            )
        return self._slots[_OF_PAIR[loss][0]].joined()

    def columns(self, loss: str) -> Ints:
        if loss in _OF_LABEL:
            kind, wanted = _OF_LABEL[loss], self.labels
            pairwise = np.zeros(0, dtype=np.intp)
        else:
            kind, wanted = _OF_PAIR[loss][1], 1
            pairwise = self._of(loss)[0]
        slots = self._slots[kind]
        slots.grow(wanted)
        own = slots.columns[:wanted]
        return np.append(pairwise, np.where(own < 0, ABSENT, own))

    def _matrix(self, loss: str, g: Floats) -> Floats:
        _, js, ls = self._of(loss)
        pairwise = np.zeros((self.labels, self.labels))
        pairwise[js, ls] = g[: len(js)]
        return pairwise + np.triu(pairwise, 1).T if loss == "ap" else pairwise

    def decode(self, loss: str, theta: Floats) -> Optimum:
        g = theta[0]
        if loss == "ap":
            return decoders.average_precision(self._matrix(loss, g), float(g[-1]))
        if loss == "pairwise-disagreement":
            return decoders.pairwise_disagreement(self._matrix(loss, g), float(g[-1]))
        if loss == "precision" and self.cutoff is None:
            return Optimum(np.argsort(-g, kind="stable"), g, None)
        return decoders.sorted_order(g, steps_of(loss, len(g), self.cutoff, self.worth))

    def functionals(self, loss: str, theta: Floats) -> Floats:
        if loss in _OF_LABEL:
            return np.eye(self.labels)
        # Scores are linear in the pairs once the order is fixed: read the coefficients off, one pair at a time.
        order = self.decode(loss, theta).sigma
        T = np.zeros((self.labels, theta.shape[1]))
        for c in range(theta.shape[1] - 1):
            unit = np.zeros(theta.shape[1])
            unit[c] = 1.0
            T[:, c] = decoders.swap_scores(order, *_terms(loss, self._matrix(loss, unit)))
        return T

    def loss(self, loss: str, sigma: Ints, y: Floats) -> float:
        return ranking_loss(loss, sigma, y, self.cutoff, self.worth)

    def arrays(self) -> Arrays:
        """The kind and the labels of every column, in the order in which they joined."""
        keys = np.zeros((self.count, 3), dtype=np.intp)
        for kind, slots in self._slots.items():
            columns, js, ls = slots.joined()
            keys[columns] = np.column_stack((np.full(len(js), kind), js, ls))
        return {"targets": keys}

    def restore(self, arrays: Arrays) -> None:
        self._clear()
        keys = arrays["targets"]
        if keys.ndim != 2 or keys.shape[1] != 3:
            raise ValueError("the targets of the regression are not rows of three")
        if keys.min(initial=0) < 0 or keys[:, 0].max(initial=0) >= _KINDS:
            raise ValueError("a target of the regression is of no known kind")
        self.count = len(keys)
        for kind, slots in self._slots.items():
            columns = np.flatnonzero(keys[:, 0] == kind)
            js, ls = keys[columns, 1], keys[columns, 2]
            limit = 1 if kind in (_ANY, _REST) else self.labels
            if ls.max(initial=-1) >= limit or (js > ls).any() or (not slots.pairs and (js < ls).any()):
                raise ValueError("a target of the regression has no such label")
            slots.grow(limit)
            slots.columns[slots.at(js, ls)] = columns
            if np.count_nonzero(slots.columns >= 0) != len(columns):
                raise ValueError("a target of the regression is duplicated")

    def nbytes(self) -> int:
        return sum(slots.columns.nbytes for slots in self._slots.values())


def _terms(loss: str, pairwise: Floats) -> tuple[Floats, Floats, Floats]:
    return decoders.ap_terms(pairwise) if loss == "ap" else decoders.disagreement_terms(pairwise)
