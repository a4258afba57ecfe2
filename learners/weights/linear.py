"""Linear weights: W = theta, the identity link. The kernel keeps them, (features, labels)."""

import numpy as np

from .. import kernel
from ..blocks import Blocks
from ..instances import Floats, Ints, Matrix, Vector
from ..kernel.label_words import NameMatches
from .base import MISFIT, Arrays, Counters, Weights, X
from .stored_rows import restore_stored, stored

# Columns above which rows may be lists, for less memory; in the pool of a preset, where they also take less time.
BRIEF, BRIEF_IN_POOL = 16, 256


class Linear(Weights):
    """theta <- theta - eta (x outer g); t = theta' x. A round touches active rows and changed labels only.

    `single` keeps theta in float32: half the memory, the arithmetic as before, every sum rounded when it is stored.
    Above `brief` columns, features that met few labels have lists instead of rows, where the kernel can: the same bits.
    """

    def __init__(self, single: bool = False, brief: int = 0) -> None:
        self.kernel: kernel.Weights = kernel.Weights(single, brief)

    @property
    def features(self) -> int:
        """Rows in use."""
        return self.kernel.features

    @property
    def labels(self) -> int:
        """Columns in use."""
        return self.kernel.labels

    @property
    def theta(self) -> Floats:
        """(features, labels): on the memory of the weights until they grow, or a copy where rows are short."""
        return self.kernel.theta

    def grow(self, features: int, labels: int) -> None:
        """Zero rows and columns for what is new."""
        if features != self.features or labels != self.labels:
            self.kernel.grow(features, labels)

    def mark(self) -> tuple[int, int]:
        return self.features, self.labels

    def rewind(self, mark: tuple[int, int]) -> None:
        self.kernel.shrink(*mark)

    def block(self, rows: Ints) -> Floats:
        """The rows of W that are active: what a link replaces."""
        block: Floats = self.kernel.take(rows)
        return block

    def scores(self, x: X) -> Floats:
        """t = W x, or X w."""
        return x.product(self.block(x.rows)) if isinstance(x, Matrix) else self.kernel.scores(x)

    def step(self, x: X, g: Floats, eta: float) -> None:
        """Subtract eta * gradient in the active rows."""
        if isinstance(x, Matrix):
            self.theta[x.rows] -= x.gradient(g if eta == 1.0 else eta * g)
        else:
            self.kernel.step(x, g, eta)

    def contributions(self, x: X) -> Floats:
        """values * W in the active rows."""
        block = self.block(x.rows)
        if isinstance(x, Matrix):
            dense: Floats = x.values if isinstance(x.values, np.ndarray) else x.values.toarray()
            return dense * block[:, 0]
        return block * x.values[:, None]

    def arrays(self) -> Arrays:
        """theta."""
        return {"theta": stored(self.kernel)}

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        """theta as it was."""
        del counters
        theta = arrays["theta"]
        if theta.shape != (self.features, self.labels):
            raise ValueError(MISFIT)
        restore_stored(self.kernel, theta)

    def nbytes(self) -> int:
        """Bytes of theta in use."""
        return self.kernel.nbytes()


class Named(Linear):
    """Linear weights, and beside them one a block that all labels share: t_l = theta_l' x + sum_b s_b m_b(x, l).

    `blocks`, which keep s and know m (kernel/label_words.py), are the learner's, given before the first round.
    """

    blocks: Blocks

    def _matches(self, x: X) -> NameMatches:
        matches = None if isinstance(x, Matrix) else self.blocks.name_matches(x)
        if matches is None:
            raise TypeError("words of labels' names count only in vectors of a learner with label_words")
        return matches

    def scores(self, x: X) -> Floats:
        return self._matches(x).add_to(super().scores(x), self.blocks.kernel.shared)

    def curvature(self, x: Vector) -> float:
        return x.squared_norm() + self._matches(x).squared_norm()

    def step(self, x: X, g: Floats, eta: float) -> None:
        # theta last: what the blocks keep goes back to their mark where something fails, and theta has none.
        self._matches(x).step(self.blocks.kernel.shared, g, eta)
        super().step(x, g, eta)

    def by_feature(self, x: X) -> Floats:
        """What theta alone adds."""
        return super().contributions(x)

    def contributions(self, x: X) -> Floats:
        """Of each active feature, then of those that have not joined: theirs are words alone."""
        if isinstance(x, Matrix):
            raise TypeError("labels are ranked for vectors")
        parts = super().contributions(x)
        parts = np.concatenate((parts, np.zeros((len(x.unseen), self.labels))))
        self.blocks.add_name_matches(x, parts)
        return parts
