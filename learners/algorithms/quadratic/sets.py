"""Multilabel: the indicator of every label set seen serves every loss, because each is linear in it.

Kept beside it, for cheap decoding, are the marginals and the constant. Past SETS distinct sets a new set has no
column of its own and counts as (label, size) pairs instead, which is all that the F-score needs: memory is
bounded, Hamming, precision and the F-score stay exact, and 0-1 and block 0-1 know the first SETS sets only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...growth import columns_for, grown
from ...instances import Floats, Ints, Mask
from ...kernel import times
from ...weights.base import Arrays
from . import decoders
from .decoders import Optimum
from .families import Family, groups_of, needed
from .targets import ABSENT, Columns, Growing, Key

__all__ = ["SETS", "Sets"]

SETS = 4096
_ONE, _MARGINAL, _SET, _PAIR = range(4)


class Sets(Family):
    """psi(y) = 1, the marginals 1[j in y], and 1[y = z] for the sets z seen."""

    set_columns: Growing
    sizes: Growing
    pair_columns: Growing
    pair_labels: Growing
    pair_sizes: Growing

    served: tuple[str, ...] = ("subset-zero-one", "hamming", "f-score", "precision", "block-zero-one")

    def __init__(self, loss: str, cutoff: int | None) -> None:
        if loss != "block-zero-one":
            self.served = self.served[:-1]
        self.cutoff = cutoff
        self.labels: int = 0
        self.blocks: Sequence[int] = ()
        self.table: Columns = Columns()
        self._clear()
        self._join((_ONE,))

    def _clear(self) -> None:
        self.table.index.clear()
        self.set_columns = Growing()
        self.sizes = Growing()
        self.pair_columns, self.pair_labels, self.pair_sizes = Growing(), Growing(), Growing()
        self._member: Mask = np.zeros((0, columns_for(self.labels)), dtype=bool)
        self._marginals: Ints = np.full(columns_for(self.labels), ABSENT)

    def group(self, blocks: Sequence[int]) -> None:
        self.blocks = blocks

    def grow(self, labels: int) -> None:
        self.labels = labels
        room = columns_for(labels)
        if room > self._member.shape[1]:
            added = room - self._member.shape[1]
            self._member = np.pad(self._member, ((0, 0), (0, added)))
            self._marginals = np.concatenate((self._marginals, np.full(added, ABSENT)))

    def _growing(self) -> tuple[Growing, ...]:
        return self.set_columns, self.sizes, self.pair_columns, self.pair_labels, self.pair_sizes

    def mark(self) -> tuple[int, int, list[int], Mask, Ints]:
        counts = [part.count for part in self._growing()]
        return self.labels, len(self.table), counts, self._member, self._marginals.copy()

    def rewind(self, mark: tuple[int, int, list[int], Mask, Ints]) -> None:
        self.labels, columns, counts, self._member, self._marginals = mark
        self.table.forget(columns)
        for part, count in zip(self._growing(), counts, strict=True):
            part.count = count

    @property
    def member(self) -> Mask:
        """The sets seen, one row each."""
        return self._member[: self.set_columns.count, : self.labels]

    def _join(self, key: Key) -> int:
        known = self.table.index.get(key)
        if known is not None:
            return known
        column = self.table.index[key] = len(self.table)
        kind, *about = key
        if kind == _MARGINAL:
            self._marginals[about[0]] = column
        elif kind == _SET:
            self._member = grown(self._member, self.set_columns.count + 1)
            self._member[self.set_columns.count] = False  # an event that failed may have left something there
            self._member[self.set_columns.count, about] = True
            self.set_columns.append(column)
            self.sizes.append(len(about))
        elif kind == _PAIR:
            self.pair_columns.append(column)
            self.pair_labels.append(about[0])
            self.pair_sizes.append(about[1])
        return column

    def psi(self, y: Mask) -> tuple[Ints, Floats]:
        chosen = tuple(np.flatnonzero(y).tolist())
        columns = [self._join(key) for key in ((_ONE,), *((_MARGINAL, j) for j in chosen))]
        whole = (_SET, *chosen)
        # The empty set always has its column: it has no pairs.
        if whole in self.table.index or self.set_columns.count < SETS or not chosen:
            columns.append(self._join(whole))
        else:
            columns += [self._join((_PAIR, j, len(chosen))) for j in chosen]
        return np.array(columns), np.ones((1, len(columns)))

    def columns(self, loss: str) -> Ints:
        marginals = self._marginals[: self.labels]
        if loss == "f-score":
            return np.concatenate((self.set_columns.array, self.pair_columns.array))
        if loss in ("hamming", "precision"):
            return np.concatenate(([0], marginals))
        return np.concatenate(([0], marginals, self.set_columns.array))

    def decode(self, loss: str, theta: Floats) -> Optimum:
        g = theta[0]
        if loss == "f-score":
            return decoders.f_score(*self._sizes_of(g))
        if loss == "hamming":
            return decoders.hamming(g[1:], float(g[0]))
        if loss == "precision":
            return decoders.precision_set(g[1:], needed(self.cutoff))
        h, w = decoders.hamming(g[1 : self.labels + 1], float(g[0])).scores, g[self.labels + 1 :]
        if loss == "subset-zero-one":
            return decoders.seen_sets(w, self.member, h)
        return self._block(h, w)

    def _sizes_of(self, g: Floats) -> tuple[Floats, float]:
        """P[j, s - 1], the estimate of P(j in y, |y| = s | x), and that of the empty set."""
        sizes, met = self.sizes.array, self.set_columns.count
        largest = max(1, int(sizes.max(initial=0)), int(self.pair_sizes.array.max(initial=0)))
        P = np.zeros((self.labels, largest + 1))
        for s in np.unique(sizes).tolist():
            of_size = np.flatnonzero(sizes == s)
            P[:, s] = times(g[of_size], self.member[of_size].astype(np.float64))
        np.add.at(P, (self.pair_labels.array, self.pair_sizes.array), g[met:])
        empty = np.flatnonzero(sizes == 0)
        return P[:, 1:], float(g[empty[0]]) if len(empty) else 0.0

    def _touched(self) -> tuple[Ints, Mask, Ints]:
        """The group of each label, the distinct sets of groups that the sets seen touch, and which of them each set
        has.
        """
        groups = groups_of(self.blocks, self.labels)
        count = int(groups.max(initial=-1)) + 1
        touched = np.zeros((self.set_columns.count, count), dtype=bool)
        for b in range(count):
            touched[:, b] = self.member[:, groups == b].any(axis=1)
        _, first, owner = np.unique(touched, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return groups, touched[first[order]], rank[owner.ravel()]

    def _block(self, h: Floats, w: Floats) -> Optimum:
        """Two sets are in one block if they meet the same groups of labels; of the best block, the set best by
        Hamming.
        """
        groups, touched, owner = self._touched()
        leaders = np.full(touched.shape[1], -np.inf)
        np.maximum.at(leaders, groups, h)
        solution = decoders.seen_sets(_sums(owner, w, len(touched)), touched, leaders)
        inside = solution.sigma[groups]
        leading = np.zeros(self.labels, dtype=bool)
        for b in np.flatnonzero(solution.sigma).tolist():
            members = np.flatnonzero(groups == b)
            leading[members[h[members].argmax()]] = True
        sigma = inside & ((h > 0.0) | leading)
        # A label in takes its group's score, one left out of a group that is touched its own, which is not above 0.
        return Optimum(sigma, np.where(inside & ~sigma, h, solution.scores[groups]), solution.margin)

    def functionals(self, loss: str, theta: Floats) -> Floats:
        g, m = theta[0], self.labels
        if loss == "f-score":
            return self._f_functionals(g)
        marginal = np.zeros((m, len(g)))
        if loss == "precision":
            k, order = needed(self.cutoff), np.argsort(-g[1:], kind="stable")
            marginal[np.arange(m), 1 + np.arange(m)] = 1.0 / k
            if m > k:
                rivals = np.where(decoders.precision_set(g[1:], k).sigma, order[k], order[k - 1])
                marginal[np.arange(m), 1 + rivals] -= 1.0 / k
            return marginal
        marginal[np.arange(m), 1 + np.arange(m)] = 2.0 / max(1, m)
        marginal[:, 0] = -1.0 / max(1, m)
        if loss == "hamming":
            return marginal
        w = g[m + 1 :]
        if loss == "subset-zero-one":
            T = np.zeros((m, len(g)))
            T[:, m + 1 :] = _differences(w, self.member)
            return T
        groups, touched, owner = self._touched()
        per_block = _differences(_sums(owner, w, len(touched)), touched)
        T = np.zeros((m, len(g)))
        T[:, m + 1 :] = per_block[groups][:, owner]
        sigma = self.decode(loss, theta).sigma
        met = np.zeros(touched.shape[1], dtype=bool)
        met[groups[sigma]] = True
        own = met[groups] & ~sigma
        T[own] = marginal[own]
        return T

    def _f_functionals(self, g: Floats) -> Floats:
        into, without = decoders.f_sets(*self._sizes_of(g))
        return self._f_values(into) - self._f_values(without)

    def _f_values(self, z: Mask) -> Floats:
        """F(z, y) of the sets z (rows) with what each column stands for."""
        k = z.sum(axis=1)[:, None]
        sizes = self.sizes.array
        shared = times(z.astype(np.float64), self.member.T.astype(np.float64))
        of_sets = np.where(sizes + k > 0, 2.0 * shared / np.maximum(sizes + k, 1), 1.0)
        of_pairs = 2.0 * z[:, self.pair_labels.array] / (self.pair_sizes.array + k)
        return np.hstack((of_sets, of_pairs))

    def loss(self, loss: str, sigma: Mask, y: Mask) -> float:
        shared, sizes = int((sigma & y).sum()), int(sigma.sum()) + int(y.sum())
        if loss == "subset-zero-one":
            return float((sigma != y).any())
        if loss == "hamming":
            return (sizes - 2 * shared) / max(1, len(y))
        if loss == "f-score":
            return 1.0 - 2.0 * shared / sizes if sizes else 0.0
        if loss == "precision":
            k = needed(self.cutoff)
            return (min(k, int(y.sum())) - shared) / k
        groups = groups_of(self.blocks, len(y))
        return float(set(groups[sigma].tolist()) != set(groups[y].tolist()))

    def arrays(self) -> Arrays:
        return self.table.arrays()

    def restore(self, arrays: Arrays) -> None:
        self._clear()
        for key in Columns.keys(arrays):
            self._join(key)


def _differences(w: Floats, member: Mask) -> Floats:
    """T with T w = (best with j) - (best without j); an unseen set weighs 0 and has no column."""
    m = member.shape[1]
    T = np.zeros((m, len(w)))
    bests = decoders.seen_marginals(w, member)
    for sign, inside, best in ((1.0, member, bests[0]), (-1.0, ~member, bests[1])):
        for j in range(m):
            holders = np.flatnonzero(inside[:, j] & (w == best[j]))
            if len(holders):
                T[j, holders[0]] += sign
    return T


def _sums(owner: Ints, w: Floats, count: int) -> Floats:
    return np.bincount(owner, weights=w, minlength=count).astype(np.float64)
