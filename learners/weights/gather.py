"""The active rows of the weights, side by side, in memory that is used again and again."""

import threading

import numpy as np

from ..instances import Floats, Ints

_MOST = 2**20  # numbers; larger blocks are rare and come and go


class _Room(threading.local):
    """Each thread's own: learners work side by side."""

    def __init__(self) -> None:
        self.numbers: Floats = np.empty(0)


_room = _Room()


def gather(theta: Floats, rows: Ints) -> Floats:
    """`theta.take(rows, axis=0)`, to be used at once: the next call in this thread writes over it.

    A block of its own for every score would be by far the largest thing that a service allocates in a round. Freed among
    small things that stay, it leaves holes, and a process that grows by hundreds of megabytes.
    """
    size = len(rows) * theta.shape[1]
    if size > _MOST:
        return theta.take(rows, axis=0)
    if size > _room.numbers.size:
        _room.numbers = np.empty(2 * size)
    block = _room.numbers[:size].reshape(len(rows), theta.shape[1])
    # Rows are never out of bounds; "raise" would gather into a copy first.
    return theta.take(rows, axis=0, out=block, mode="clip")
