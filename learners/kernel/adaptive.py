"""One step of AdaGrad, in place: the specification. The formulas are in algorithms/auto/adagrad.py."""

from typing import Any

import numpy as np

from .elementary import Floats


def adapt(W: Floats, G: Floats, rows: Any, values: Floats, miss: Floats, rate: float) -> Floats:
    """e = values miss';  G <- G + e^2;  W <- W - rate e / sqrt(G), in these rows; the old W and, below, the old G."""
    count, old = len(rows), np.concatenate((W[rows], G[rows]))
    e = np.multiply.outer(values, miss)
    squares = old[count:] + e * e
    W[rows] = old[:count] - rate * (e / np.sqrt(np.where(squares > 0.0, squares, 1.0)))
    G[rows] = squares
    return old
