"""Label ranking: graded labels of one feature vector.

Gains and relevances, m columns each, are always kept. Average precision and pairwise disagreement need a column
for each pair of labels that was met: they are kept while there are at most PAIRED labels, or at any number if the
spec's loss is one of the two. A pair with a label that joined later counts as of equal grade in the events before:
its target is 0 there.
"""

from __future__ import annotations

import numpy as np

from ...errors import OptionError, pointer
from ...instances import Floats, Ints
from ...weights.base import Arrays
from . import decoders
from .decoders import Found
from .families import Family, ranking_loss, steps_of
from .targets import Columns, Growing, Key, disagreements, normalised_gains, pairs, relevant

__all__ = ["PAIRED", "Labels"]

PAIRED = 32
_GAIN, _RELEVANT, _BOTH, _ORDERED, _ANY, _REST = range(6)
_OF_LABEL = {"ndcg": _GAIN, "precision": _RELEVANT}
# The kind of the pairs, and the constant of the risk.
_OF_PAIR = {"ap": (_BOTH, _ANY), "pairwise-disagreement": (_ORDERED, _REST)}


class Labels(Family):
    """psi(y): G(y_j) / N(y); 1[y_j > 0]; 1[y_j, y_l > 0] / |y|; sign(y_j - y_l) / N(y); and two constants."""

    served: tuple[str, ...] = ("ndcg", "precision", "ap", "pairwise-disagreement")

    def __init__(self, loss: str, cutoff: int | None) -> None:
        self.cutoff = cutoff
        self.always = loss in _OF_PAIR
        self.labels = 0
        self.table = Columns()
        self._clear()

    def _clear(self) -> None:
        self.table.index.clear()
        self._pairs = {kind: (Growing(), Growing(), Growing()) for kind in (_BOTH, _ORDERED)}

    def grow(self, labels: int) -> None:
        self.labels = labels

    def mark(self) -> tuple[int, int, list[int]]:
        return self.labels, len(self.table), [part.count for parts in self._pairs.values() for part in parts]

    def rewind(self, mark: tuple[int, int, list[int]]) -> None:
        self.labels, columns, counts = mark
        self.table.forget(columns)
        parts = [part for parts in self._pairs.values() for part in parts]
        for part, count in zip(parts, counts, strict=True):
            part.count = count

    @property
    def paired(self) -> bool:
        return self.always or self.labels <= PAIRED

    def _join(self, key: Key) -> int:
        column = self.table.index.get(key)
        if column is None:
            column = self.table.index[key] = len(self.table)
            if key[0] in self._pairs:
                for part, value in zip(self._pairs[key[0]], (column, key[1], key[2]), strict=True):
                    part.append(value)
        return column

    def psi(self, y: Floats) -> tuple[Ints, Floats]:
        found: list[tuple[Key, float]] = []
        for kind, values in ((_GAIN, normalised_gains(y, self.cutoff)), (_RELEVANT, relevant(y))):
            found += [((kind, j), float(values[j])) for j in np.flatnonzero(values).tolist()]
        if self.paired:
            chosen, value = pairs(y)
            both = chosen.tolist()
            found += [((_BOTH, j, k), value) for i, j in enumerate(both) for k in both[i:]]
            if both:
                found.append(((_ANY,), 1.0))
            js, ls, signs, rest = disagreements(y)
            found += [
                ((_ORDERED, j, k), sign)
                for j, k, sign in zip(js.tolist(), ls.tolist(), signs.tolist(), strict=True)
            ]
            if rest:
                found.append(((_REST,), rest))
        columns = np.array([self._join(key) for key, _ in found], dtype=np.intp)
        return columns, np.array([[value for _, value in found]])

    def _of(self, loss: str) -> tuple[Ints, Ints, Ints]:
        if not self.paired:
            raise OptionError(
                f"with more than {PAIRED} labels the targets of {loss} are kept only if it is the spec's loss",
                pointer("loss"),
            )
        columns, js, ls = self._pairs[_OF_PAIR[loss][0]]
        return columns.array, js.array, ls.array

    def columns(self, loss: str) -> Ints:
        if loss in _OF_LABEL:
            return np.array([self.table.get((_OF_LABEL[loss], j)) for j in range(self.labels)], dtype=np.intp)
        return np.append(self._of(loss)[0], self.table.get((_OF_PAIR[loss][1],)))

    def _matrix(self, loss: str, g: Floats) -> Floats:
        _, js, ls = self._of(loss)
        pairwise = np.zeros((self.labels, self.labels))
        pairwise[js, ls] = g[: len(js)]
        return pairwise + np.triu(pairwise, 1).T if loss == "ap" else pairwise

    def found(self, loss: str, theta: Floats) -> Found:
        g = theta[0]
        if loss == "ap":
            return decoders.average_precision(self._matrix(loss, g), float(g[-1]))
        if loss == "pairwise-disagreement":
            return decoders.pairwise_disagreement(self._matrix(loss, g), float(g[-1]))
        if loss == "precision" and self.cutoff is None:
            return Found(np.argsort(-g, kind="stable"), g, None)
        return decoders.sorted_order(g, steps_of(loss, len(g), self.cutoff))

    def functionals(self, loss: str, theta: Floats) -> Floats:
        if loss in _OF_LABEL:
            return np.eye(self.labels)
        # Scores are linear in the pairs once the order is fixed: read the coefficients off, one pair at a time.
        order = self.found(loss, theta).sigma
        T = np.zeros((self.labels, theta.shape[1]))
        for c in range(theta.shape[1] - 1):
            unit = np.zeros(theta.shape[1])
            unit[c] = 1.0
            T[:, c] = decoders.swap_scores(order, *_terms(loss, self._matrix(loss, unit)))
        return T

    def loss(self, loss: str, sigma: Ints, y: Floats) -> float:
        return ranking_loss(loss, sigma, y, self.cutoff)

    def arrays(self) -> Arrays:
        return self.table.arrays()

    def restore(self, arrays: Arrays) -> None:
        self._clear()
        for key in Columns.keys(arrays):
            self._join(key)


def _terms(loss: str, pairwise: Floats) -> tuple[Floats, Floats, Floats]:
    return decoders.ap_terms(pairwise) if loss == "ap" else decoders.disagreement_terms(pairwise)
