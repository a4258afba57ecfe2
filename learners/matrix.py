"""The numbers of a list to rank: X, with one row an item. Tested in tests/learners/test_lists.py."""

from dataclasses import dataclass, field

import numpy as np

from .kernel import times
from .kernel.elementary import Floats
from .kernel.reference import EMPTY, Ints
from .sparse import Csr


@dataclass(slots=True)
class Matrix:
    """X of a list: one row an item, one column for each of the known feature `rows` of the list."""

    rows: Ints
    values: Floats | Csr  # (items, len(rows))
    unseen: Floats = field(default_factory=lambda: EMPTY)  # squared norm of each item's features not seen yet
    # Where only some items of a served list count: the values of all of them, and which ones count.
    served: tuple[Floats | Csr, Ints] | None = None

    def product(self, block: Floats) -> Floats:
        """t = X w, where `block` holds the active rows of w as a column."""
        return _product(self.values, block[:, 0])

    def gradient(self, g: Floats) -> Floats:
        """The step in the active rows: X' g, as a column."""
        values = self.values
        step: Floats = times(g, values) if isinstance(values, np.ndarray) else values.T.dot(g)
        return step[:, None]

    def squared_norms(self) -> Floats:
        """||x_i||^2 of every item, unseen features included."""
        values = self.values
        if isinstance(values, np.ndarray):
            squares: Floats = (values * values).sum(axis=1)
        else:
            squares = np.asarray(values.multiply(values).sum(axis=1)).ravel()
        return squares + self.unseen if len(self.unseen) else squares

    def squared_norm(self) -> float:
        """The largest ||x_i||^2: R^2 of this list."""
        return float(self.squared_norms().max())


def _product(values: Floats | Csr, w: Floats) -> Floats:
    """X w, every sum from the first feature to the last: SciPy's loops over sparse rows run so too."""
    return times(values, w) if isinstance(values, np.ndarray) else values.dot(w)
