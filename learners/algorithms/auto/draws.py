"""Random draws that are the same in every version and on every CPU: a hash of (seed, place), no generator with a state.

The hash is a multiply-xorshift finaliser of 64 bits; normals are made of two uniforms by Box and Muller.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from ...instances import Floats
from ...kernel import cos_turns, log

Words64 = npt.NDArray[np.uint64]
_STEP = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, odd
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def _mixed(word: Words64) -> Words64:
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


def uniforms(seed: int, count: int) -> Floats:
    """`count` numbers in (0, 1), a function of the seed."""
    return np.asarray(_uniforms(np.array([seed], dtype=np.uint64), count)[0])


def normals(seeds: Iterable[int], count: int) -> Floats:
    """A row of `count` standard normal numbers for each seed: sqrt(-2 ln a) cos(2 pi b)."""
    drawn = _uniforms(np.fromiter(seeds, np.uint64), 2 * count)
    return np.asarray(np.sqrt(-2.0 * _each(log, drawn[:, :count])) * _each(cos_turns, drawn[:, count:]))


def _uniforms(seeds: Words64, count: int) -> Floats:
    base = _mixed(seeds * _STEP + _STEP)
    words = _mixed(base[:, None] + np.arange(1, count + 1, dtype=np.uint64) * _STEP)
    return np.asarray(((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)


def _each(function: Callable[[Floats], Floats], table: Floats) -> Floats:
    """A function of the kernel, which takes vectors, on the cells of a table."""
    return function(table.ravel()).reshape(table.shape)
