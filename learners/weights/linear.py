"""Linear weights: W = theta, the identity link.

Laid out (features, labels), so that the active features of an instance are whole rows: a `take`, a product.
"""

import numpy as np

from ..growth import columns_for, grown
from ..instances import Floats, Ints, Matrix
from .base import Arrays, Counters, X


class Linear:
    """theta <- theta - eta (x outer g); t = theta' x. A round touches active rows and changed labels only."""

    def __init__(self) -> None:
        self.features = 0
        self.labels = 0
        self.theta: Floats = np.zeros((0, 0))
        self._flat: Floats = self.theta.reshape(-1)

    def grow(self, features: int, labels: int) -> None:
        """Zero rows and columns for what is new."""
        theta = self.theta
        width = columns_for(labels)
        if width != theta.shape[1]:
            wider = np.zeros((len(theta), width))
            wider[:, : self.labels] = theta[:, : self.labels]
            theta = wider
        self.features, self.labels = features, labels
        self.theta = grown(theta, features)
        self._flat = self.theta.reshape(-1)

    def block(self, rows: Ints) -> Floats:
        """The rows of W that are active: what a link replaces."""
        return self.theta.take(rows, axis=0)

    def scores(self, x: X) -> Floats:
        """t = W x, or X w."""
        t = x.product(self.block(x.rows))
        return t if isinstance(x, Matrix) else t[: self.labels]

    def step(self, x: X, g: Floats, eta: float) -> None:
        """Subtract eta * gradient in the active rows."""
        if isinstance(x, Matrix):
            self._flat[x.rows] -= x.gradient(g if eta == 1.0 else eta * g)[:, 0]
            return
        columns = g.nonzero()[0]
        width = self.theta.shape[1]
        if len(columns) <= 4:
            # A flat index a label is the cheapest way to touch few columns of scattered rows.
            starts = x.rows * width
            for column in columns:
                self._flat[starts + column] -= (eta * g[column]) * x.values
        else:
            places = (x.rows * width)[:, None] + columns
            self._flat[places] -= np.multiply.outer(eta * x.values, g[columns])

    def contributions(self, x: X) -> Floats:
        """values * W in the active rows."""
        block = self.block(x.rows)[:, : self.labels]
        if isinstance(x, Matrix):
            dense = x.values if isinstance(x.values, np.ndarray) else x.values.toarray()
            return dense * block[:, 0]
        return block * x.values[:, None]

    def arrays(self) -> Arrays:
        """theta, trimmed."""
        return {"theta": self.theta[: self.features, : self.labels]}

    def counters(self) -> Counters:
        """Nothing but theta."""
        return {}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        """theta as it was."""
        del counters
        theta = arrays["theta"]
        self.grow(*theta.shape)
        self.theta[: self.features, : self.labels] = theta

    def nbytes(self) -> int:
        """Bytes of theta in use."""
        return 8 * self.features * columns_for(self.labels)
