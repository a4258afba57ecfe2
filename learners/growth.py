"""Arrays that grow. No result may depend on how much room is left: only on how much is used."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Entry = TypeVar("Entry", bound=np.generic)


def grown(array: npt.NDArray[Entry], rows: int) -> npt.NDArray[Entry]:
    """`array` with room for `rows` rows: itself, or a copy of doubled length, zeros behind."""
    room = len(array)
    if rows <= room:
        return array
    larger = np.zeros((max(rows, 2 * room, 16), *array.shape[1:]), dtype=array.dtype)
    larger[:room] = array
    return larger


def columns_for(labels: int) -> int:
    """How many columns a block of `labels` columns takes: the next multiple of a step of at most an eighth.

    A function of `labels` alone, because a product's last bits may depend on the width it is computed over, and a learner
    that was saved and loaded must go on with the same bits.
    """
    if labels <= 4:
        return labels
    step = max(4, 1 << max(0, labels.bit_length() - 4))
    return -(-labels // step) * step
