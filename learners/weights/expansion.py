"""The kernel form: t(x) = sum_i alpha_i k(x_i, x), alpha_i = -eta g_i, over the stored examples.

    linear      <x, x'>
    gaussian    exp(-||x - x'||^2 / (2 bandwidth^2))
    polynomial  (1 + <x, x'>)^degree

For a list the sum runs over its items, each with its own number: t(item) = sum_i sum_r alpha_ir k(x_ir, item).

`budget` bounds the stored examples (a list is one). When it is passed, the oldest leaves: what it taught is gone, so
the loss bounds no longer hold, but memory and time are flat and the learner follows a stream that drifts.
"""

import numpy as np

from .. import sparse
from ..growth import columns_for, grown
from ..instances import Floats, Ints, Matrix
from ..kernel import exp, times
from .base import Arrays, Counters, Weights, X, check_rows

# A polynomial of large features must not become infinite, or differences of scores lose their meaning.
_LARGEST = 1e200


class KernelExpansion(Weights):
    """The examples as one sparse matrix of rows x_ir, with a row of `alpha` each; scores take one product with it."""

    def __init__(
        self, kind: str = "gaussian", bandwidth: float = 1.0, degree: int = 2, budget: int | None = None
    ) -> None:
        self.kind = kind
        self.bandwidth = bandwidth
        self.degree = degree
        self.budget = budget
        self.features: int = 0
        self.labels: int = 0
        self.examples: int = 0  # stored vectors
        self.cells: int = 0  # stored numbers in them
        self.sizes: list[int] = []  # vectors of each example, the oldest first
        self.alpha: Floats = np.zeros((0, 0))
        self.squares: Floats = np.zeros(0)  # ||x_ir||^2
        self.starts: Ints = np.zeros(1, dtype=np.intp)
        self.columns: Ints = np.zeros(0, dtype=np.intp)
        self.values: Floats = np.zeros(0)

    def grow(self, features: int, labels: int) -> None:
        """Stored examples have no part in what is new."""
        width = columns_for(labels)
        if width != self.alpha.shape[1]:
            wider = np.zeros((len(self.alpha), width))
            wider[:, : self.labels] = self.alpha[:, : self.labels]
            self.alpha = wider
        self.features, self.labels = features, labels

    def mark(self) -> tuple[int, int, Floats]:
        return self.features, self.labels, self.alpha

    def rewind(self, mark: tuple[int, int, Floats]) -> None:
        self.features, self.labels, self.alpha = mark

    def scores(self, x: X) -> Floats:
        """t = sum_i alpha_i k(x_i, x)."""
        K = self._kernel(x)
        if isinstance(x, Matrix):
            return times(self.alpha[: self.examples, 0], K)  # type: ignore[no-any-return]
        return times(K, self.alpha[: self.examples])[: self.labels]  # type: ignore[no-any-return]

    def _kernel(self, x: X) -> Floats:
        """k(x_i, x) of every stored vector; (vectors, items) for a list."""
        # Only cells in the active columns meet a number of x.
        place = np.full(self.features, -1, dtype=np.intp)
        place[x.rows] = np.arange(len(x.rows))
        columns = place[self.columns[: self.cells]]
        met = columns >= 0
        counts = np.concatenate(([0], np.cumsum(met)))
        starts = counts[self.starts[: self.examples + 1]]
        shape = (self.examples, len(x.rows))
        stored = sparse.csr_array((self.values[: self.cells][met], columns[met], starts), shape=shape)
        product = stored @ x.values.T  # SciPy's sparse loops run from the first to the last
        inner = product if isinstance(product, np.ndarray) else product.toarray()
        if self.kind == "linear":
            return inner
        if self.kind == "polynomial":
            return whole_power(1.0 + inner, self.degree)
        squares = self.squares[: self.examples]
        if isinstance(x, Matrix):
            distances = squares[:, None] + x.squared_norms() - 2.0 * inner
        else:
            distances = squares + x.squared_norm() - 2.0 * inner
        return exp(np.maximum(distances, 0.0) / (-2.0 * (self.bandwidth * self.bandwidth)))

    def step(self, x: X, g: Floats, eta: float) -> None:
        """Store (x, -eta g); the oldest example leaves if there are more than `budget`."""
        # What is stored is never overwritten in place: the arrays as they are now are the way back.
        before, sizes, stored = dict(vars(self)), self.sizes, len(self.sizes)
        try:
            self._store(x, g, eta)
        except BaseException:
            vars(self).update(before)
            del sizes[stored:]
            raise

    def _store(self, x: X, g: Floats, eta: float) -> None:
        if isinstance(x, Matrix):
            kept = np.flatnonzero(g)
            block = sparse.csr_array(x.values[kept])
            block.eliminate_zeros()
            counts, columns, values = np.diff(block.indptr), x.rows[block.indices], block.data
            alpha = -eta * g[kept][:, None]
            squares = x.squared_norms()[kept]
        else:
            counts, columns, values = np.array([len(x.rows)]), x.rows, x.values
            alpha = -eta * g[None, :]
            squares = np.array([x.squared_norm()])
        rows, cells = self.examples + len(alpha), self.cells + len(values)
        self.alpha = grown(self.alpha, rows)
        self.alpha[self.examples : rows] = 0.0  # an event that failed may have left something there
        self.alpha[self.examples : rows, : alpha.shape[1]] = alpha
        self.squares = grown(self.squares, rows)
        self.squares[self.examples : rows] = squares
        self.starts = grown(self.starts, rows + 1)
        self.starts[self.examples + 1 : rows + 1] = self.cells + np.cumsum(counts)
        self.columns, self.values = grown(self.columns, cells), grown(self.values, cells)
        self.columns[self.cells : cells] = columns
        self.values[self.cells : cells] = values
        self.sizes.append(len(alpha))
        self.examples, self.cells = rows, cells
        if self.budget is not None and len(self.sizes) > self.budget:
            self._forget()

    def _forget(self) -> None:
        """The oldest example leaves; the others move up, because no result may depend on where they lie."""
        size = self.sizes[0]
        cells = int(self.starts[size])
        self.sizes = self.sizes[1:]
        self.alpha, self.squares = (
            self.alpha[size : self.examples].copy(),
            self.squares[size : self.examples].copy(),
        )
        self.starts = self.starts[size : self.examples + 1] - cells
        self.columns, self.values = (
            self.columns[cells : self.cells].copy(),
            self.values[cells : self.cells].copy(),
        )
        self.examples, self.cells = self.examples - size, self.cells - cells

    def contributions(self, x: X) -> None:
        """A score here is not a sum over features."""

    def arrays(self) -> Arrays:
        """The stored examples."""
        return {
            "alpha": self.alpha[: self.examples, : self.labels],
            "squares": self.squares[: self.examples],
            "sizes": np.array(self.sizes, dtype=np.intp),
            "starts": self.starts[: self.examples + 1],
            "columns": self.columns[: self.cells],
            "values": self.values[: self.cells],
        }

    def counters(self) -> Counters:
        """How many features there are: not all need be stored."""
        return {"features": self.features}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        """The stored examples as they were."""
        alpha, starts, sizes = arrays["alpha"], arrays["starts"], arrays["sizes"]
        if counters["features"] != self.features or alpha.shape != (len(alpha), self.labels):
            raise ValueError("the examples do not fit the features and labels")
        check_rows(starts, arrays["columns"], arrays["values"], len(alpha), self.features)
        if arrays["squares"].shape != (len(alpha),) or arrays["squares"].min(initial=0.0) < 0.0:
            raise ValueError("the examples have other norms")
        if sizes.ndim != 1 or sizes.min(initial=1) < 1 or int(sizes.sum()) != len(alpha):
            raise ValueError("the examples have other sizes")
        self.alpha = np.zeros((len(alpha), columns_for(alpha.shape[1])))
        self.alpha[:, : alpha.shape[1]] = alpha
        self.features, self.labels = counters["features"], alpha.shape[1]
        self.sizes = arrays["sizes"].tolist()
        self.squares, self.starts = arrays["squares"], arrays["starts"]
        self.columns, self.values = arrays["columns"], arrays["values"]
        self.examples, self.cells = len(alpha), len(self.values)

    def nbytes(self) -> int:
        """Bytes of the stored examples."""
        return sum(array.nbytes for array in self.arrays().values())


def whole_power(base: Floats, degree: int) -> Floats:
    """base^degree by squaring, log2(degree) products however large the degree; clipped, so that none overflows."""
    result: Floats | None = None
    with np.errstate(over="ignore"):
        base = np.clip(base, -_LARGEST, _LARGEST)
        while True:
            if degree & 1:
                result = base if result is None else np.clip(result * base, -_LARGEST, _LARGEST)
            degree >>= 1
            if not degree:
                assert result is not None
                return result
            base = np.clip(base * base, -_LARGEST, _LARGEST)
