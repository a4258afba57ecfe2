"""From names to rows, and what happens to features before the weights see them: weighting, normalize, bias.

    weighting  idf   x_j  <- x_j (1 + log((1 + n) / (1 + n_j)))      n events learned so far, n_j of them with feature j
    normalize  unit  x    <- x / ||x||
               list  X_ij <- (X_ij - min_i X_ij) / (max_i - min_i)   within the list; a constant feature becomes 0
    bias             one more feature of value 1, after all scaling

The counts n, n_j are state: they change by learning only, after the round is judged, so that a prediction and the
judgement of the same round see the same x.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import filterfalse
from typing import Any

import numpy as np
from scipy import sparse

from .growth import grown
from .instances import EMPTY, Floats, Ints, Listing, Matrix, Vector, Words, ones
from .names import Names

# The constant feature's name: no feature of a user can have it, because empty names are refused.
BIAS = ""


@dataclass(slots=True)
class Unmet:
    """Features of an instance that the learner has not met: they join if it is learned. `values` are scaled."""

    names: Sequence[str]
    values: Any


_ALL_MET = Unmet((), EMPTY)


class Transform:
    """Turns what was read into the x that the model scores. `counts` and `events` are its state."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.idf = spec.get("weighting") == "idf"
        self.normalize: str = spec["normalize"]
        self.bias: bool = spec["bias"]
        self.events = 0
        self.counts: Floats = np.zeros(0)
        self._columns: tuple[Any, int, Ints] = ((), 0, np.empty(0, dtype=np.intp))

    # ---- one vector

    def vector(self, words: Words, features: Names) -> tuple[Vector, Unmet]:
        """x on the features that are known, and the rest."""
        rows, values, unmet, rest = self._look_up(words, features)
        if self.idf:
            values = values * self._weights(self.counts.take(rows))
            rest = rest * self._weights(0.0)
        if self.normalize == "unit":
            values, rest = _unit(values, rest)
        x = Vector(rows, values, rest)
        if self.bias:
            x = Vector(np.concatenate(([0], rows)), np.concatenate(([1.0], values)), rest)
        return x, (Unmet(unmet, rest) if unmet else _ALL_MET)

    def _look_up(self, words: Words, features: Names) -> tuple[Ints, Floats, Sequence[str], Floats]:
        """Rows ascending, so that no result depends on the order in which features were written."""
        names, values = words.names, words.values
        rows = features.numbers(names)
        unmet: list[str] = []
        rest = EMPTY
        if values is None:  # names alone: a repeated one shows as a repeated row
            rows.sort()
            if len(rows) and rows[0] < 0:
                rows = rows[rows.searchsorted(0) :]
                unmet = list(dict.fromkeys(filterfalse(features.index.__contains__, names)))
                rest = ones(len(unmet))
            if len(rows) > 1 and np.count_nonzero(rows[1:] == rows[:-1]):
                rows = np.unique(rows)
            return rows, ones(len(rows)), unmet, rest
        order = rows.argsort(kind="stable")
        rows, values = rows[order], values[order]
        if len(rows) and rows[0] < 0:
            first = int(rows.searchsorted(0))
            unmet, rest = [names[i] for i in order[:first].tolist()], values[:first]
            rows, values = rows[first:], values[first:]
        return rows, values, unmet, rest

    def _weights(self, counts: Any) -> Any:
        return 1.0 + np.log((1.0 + self.events) / (1.0 + counts))

    # ---- a list

    def matrix(self, listing: Listing, features: Names) -> tuple[Matrix, Unmet]:
        """X on the features that are known, and the rest."""
        rows = self._rows(listing.names, features)
        values = listing.values
        if self.normalize == "unit":
            values = _unit_rows(values)
        elif self.normalize == "list":
            values = _list_columns(values)
        unmet, norms = _ALL_MET, EMPTY
        if rows.size and rows[rows.argmin()] < 0:
            met = rows >= 0
            rest = values[:, ~met]
            unmet = Unmet([listing.names[i] for i in np.flatnonzero(~met).tolist()], rest)
            norms = Matrix(rows, rest).squared_norms()
            rows, values = rows[met], values[:, met]
        if self.bias:
            rows, values = np.concatenate(([0], rows)), hstack(np.ones((len(listing.ids), 1)), values)
        return Matrix(rows, values, norms), unmet

    def _rows(self, names: Sequence[str], features: Names) -> Ints:
        # Numbered features come as one shared tuple: they are looked up once.
        if self._columns[0] is not names or self._columns[1] != len(features):
            rows = features.numbers(names)
            self._columns = (names, len(features), rows)
        return self._columns[2]

    # ---- learning

    def count(self, x: Vector | Matrix, features: int) -> None:
        """One more event; every feature of x is known by now."""
        self.events += 1
        if self.idf:
            self.counts = grown(self.counts, features)
            self.counts[x.rows] += x.values != 0

    def grow(self, features: int) -> None:
        """Room for the counts of the features known."""
        if self.idf:
            self.counts = grown(self.counts, features)


def met(x: Vector | Matrix, unmet: Unmet, rows: Sequence[int]) -> Vector | Matrix:
    """x with the features that were unmet, now in `rows`, which come after all others."""
    every = np.concatenate((x.rows, np.array(rows, dtype=np.intp)))
    if isinstance(x, Matrix):
        return Matrix(every, hstack(x.values, unmet.values))
    return Vector(every, np.concatenate((x.values, unmet.values)), EMPTY)


def hstack(left: Any, right: Any) -> Any:
    """Side by side: sparse if one of them is."""
    if sparse.issparse(left) or sparse.issparse(right):
        return sparse.csr_array(sparse.hstack([left, right], format="csr"))
    return np.hstack([left, right])


def _unit(values: Floats, rest: Floats) -> tuple[Floats, Floats]:
    # Scaled by the largest first, so that squares of large numbers do not overflow.
    top = max(np.abs(values).max(initial=0.0), np.abs(rest).max(initial=0.0))
    if not top > 0:
        return values, rest
    values, rest = values / top, rest / top
    norm = np.sqrt(values @ values + rest @ rest)
    return values / norm, rest / norm


def _unit_rows(values: Any) -> Any:
    if sparse.issparse(values):
        top = np.asarray(abs(values).max(axis=1).todense()).ravel()
        values = sparse.diags_array(1 / np.where(top > 0, top, 1)) @ values
        norms = np.sqrt(Matrix(EMPTY.astype(np.intp), values).squared_norms())
        return sparse.csr_array(sparse.diags_array(1 / np.where(norms > 0, norms, 1)) @ values)
    top = np.abs(values).max(axis=1, initial=0.0)
    values = values / np.where(top > 0, top, 1)[:, None]
    norms = np.sqrt(np.einsum("ij,ij->i", values, values))
    return values / np.where(norms > 0, norms, 1)[:, None]


def _list_columns(values: Any) -> Any:
    if sparse.issparse(values):
        # Zeros stay zeros where a feature's least value is 0; elsewhere the shift fills the column.
        low = np.asarray(values.min(axis=0).todense()).ravel()
        if low.any():
            return _list_columns(values.toarray())
        high = np.asarray(values.max(axis=0).todense()).ravel()
        return sparse.csr_array(values @ sparse.diags_array(1 / np.where(high > 0, high, 1)))
    scaled = values - values.min(axis=0)
    spread = scaled.max(axis=0)
    scaled /= np.where(spread > 0, spread, 1)
    return scaled
