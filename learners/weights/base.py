"""What the learner asks of weights, whatever their form."""

from typing import Any, Protocol

import numpy.typing as npt

from ..instances import Floats, Matrix, Vector

X = Vector | Matrix
Arrays = dict[str, npt.NDArray[Any]]
Counters = dict[str, Any]


class Weights(Protocol):
    """theta and W = link(theta), rows for features, columns for labels (one column for lists)."""

    def grow(self, features: int, labels: int) -> None:
        """Make room: new rows and columns weigh as if they had always been there and never been updated."""

    def scores(self, x: X) -> Floats:
        """t = W x of a vector, or X w of a list."""

    def step(self, x: X, g: Floats, eta: float) -> None:
        """theta <- theta - eta * (x outer g), or theta - eta * X' g. Every feature of x is known."""

    def contributions(self, x: X) -> Floats | None:
        """What each active feature adds to each score: (rows, labels), or (items, rows) of a list.

        None where a score is not a sum over features.
        """

    def arrays(self) -> Arrays:
        """The state, trimmed to what is used."""

    def counters(self) -> Counters:
        """The rest of the state: plain numbers."""

    def restore(self, arrays: Arrays, counters: Counters) -> None:
        """Take the state back, bit for bit."""

    def nbytes(self) -> int:
        """Memory in use: a function of the state, not of the room left for growth."""
