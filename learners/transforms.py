"""What happens to features before the weights see them: weighting, then normalize, then bias.

    weighting  idf   x_j <- x_j * log((1 + n) / (1 + n_j)) + x_j     n events learned so far, n_j of them with feature j
    normalize  unit  x   <- x / ||x||
               list  X_ij <- (X_ij - min_i) / (max_i - min_i)        within the list; a constant feature becomes 0
    bias             one more feature of value 1, after all scaling

The counts n, n_j are state: they change by learning only, after the round is judged, so that a prediction and the
judgement of the same round see the same x.
"""

from typing import Any

import numpy as np
from scipy import sparse

from .growth import grown
from .instances import Floats, Ints, Listing, Matrix, Vector, Words
from .names import Names

# The constant feature's name: no feature of a user can have it, because empty names are refused.
BIAS = ""


class Transform:
    """Turns what was read into the x that the model scores. One object a learner; `counts` and `events` are its state."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.idf = spec.get("weighting") == "idf"
        self.normalize: str = spec["normalize"]
        self.bias: bool = spec["bias"]
        self.events = 0
        self.counts: Floats = np.zeros(0)
        self._known: tuple[Any, int, Ints] | None = None

    def rows(self, names: Any, features: Names) -> Ints:
        """The row of every name, -1 where it has not been met."""
        known = self._known
        if known is not None and known[0] is names and known[1] == len(features):
            return known[2]  # numbered features come as one shared tuple: look them up once
        get = features.index.get
        rows = np.array([get(name, -1) for name in names], dtype=np.intp)
        if type(names) is tuple:
            self._known = (names, len(features), rows)
        return rows

    def vector(self, words: Words, rows: Ints) -> tuple[Vector, Floats]:
        """x on the features that are known, and the value of every feature of `words` after scaling."""
        values = words.values
        if self.idf:
            values = values * self._idf(rows)
        if self.normalize == "unit":
            # Scaled by the largest first, so that squares of large numbers do not overflow.
            top = np.abs(values).max(initial=0.0)
            if top > 0:
                values = values / top
                values = values / np.sqrt(values @ values)
        return self._select(rows, values), values

    def _select(self, rows: Ints, values: Floats) -> Vector:
        if rows.size and rows.min() < 0:
            seen = rows >= 0
            return self.constant(Vector(rows[seen], values[seen], values[~seen]))
        return self.constant(Vector(rows, values))

    def constant(self, x: Vector) -> Vector:
        """x with the bias in front, if there is one; its row is 0."""
        if not self.bias:
            return x
        return Vector(np.concatenate(([0], x.rows)), np.concatenate(([1.0], x.values)), x.unseen)

    def matrix(self, listing: Listing, rows: Ints) -> tuple[Matrix, Any]:
        """X on the features that are known, and the whole matrix after scaling."""
        values = listing.values
        if self.normalize == "unit":
            values = _unit_rows(values)
        elif self.normalize == "list":
            values = _list_columns(values)
        if rows.size and rows.min() < 0:
            seen = rows >= 0
            rest = values[:, ~seen]
            squares = (
                rest.multiply(rest).sum(axis=1)
                if sparse.issparse(rest)
                else np.einsum("ij,ij->i", rest, rest)
            )
            return self.constant_column(
                Matrix(rows[seen], values[:, seen], np.asarray(squares).ravel())
            ), values
        return self.constant_column(Matrix(rows, values)), values

    def constant_column(self, X: Matrix) -> Matrix:
        """X with a column of ones in front, if there is a bias."""
        if not self.bias:
            return X
        ones = np.ones((X.values.shape[0], 1))
        if sparse.issparse(X.values):
            values: Any = sparse.hstack([ones, X.values], format="csr")
        else:
            values = np.hstack([ones, X.values])
        return Matrix(np.concatenate(([0], X.rows)), values, X.unseen)

    def count(self, found: Words | Listing, rows: Ints, features: int) -> None:
        """One more event with these features, all of them known by now."""
        self.events += 1
        if self.idf:
            self.counts = grown(self.counts, features)
            self.counts[rows] += found.values != 0

    def _idf(self, rows: Ints) -> Floats:
        if not len(self.counts):
            return np.ones(len(rows)) + np.log1p(self.events)
        met = (rows >= 0) & (rows < len(self.counts))
        counts = np.where(met, self.counts.take(rows, mode="clip"), 0.0)
        return np.asarray(np.log((1 + self.events) / (1 + counts)) + 1)


def _unit_rows(values: Any) -> Any:
    if sparse.issparse(values):
        top = np.asarray(abs(values).max(axis=1).todense()).ravel()
        values = sparse.diags_array(1 / np.where(top > 0, top, 1)) @ values
        norms = np.sqrt(np.asarray(values.multiply(values).sum(axis=1)).ravel())
        return sparse.csr_array(sparse.diags_array(1 / np.where(norms > 0, norms, 1)) @ values)
    top = np.abs(values).max(axis=1, initial=0.0)
    values = values / np.where(top > 0, top, 1)[:, None]
    norms = np.sqrt(np.einsum("ij,ij->i", values, values))
    return values / np.where(norms > 0, norms, 1)[:, None]


def _list_columns(values: Any) -> Any:
    if sparse.issparse(values):
        # A feature with an implicit zero has its least value at most 0; with a negative one the shift fills the column.
        low = np.asarray(values.min(axis=0).todense()).ravel()
        if (low < 0).any():
            return _list_columns(values.toarray())
        high = np.asarray(values.max(axis=0).todense()).ravel()
        counts = np.diff(values.tocsc().indptr)
        full = counts == values.shape[0]
        if (full & (low > 0)).any():
            return _list_columns(values.toarray())
        return sparse.csr_array(values @ sparse.diags_array(1 / np.where(high > 0, high, 1)))
    low, high = values.min(axis=0), values.max(axis=0)
    spread = high - low
    return (values - low) / np.where(spread > 0, spread, 1)
