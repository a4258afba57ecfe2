"""psi(y): what the regression learns, and the table of its columns.

A target joins when it is first not 0, and it was 0 before: exact, because a column of zeros is what the batch
problem has. So psi is sparse and costs what was seen, not what could be. A loss whose psi is a linear image of
another's (the marginals, of the sets) is served by it without learning again.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...growth import grown
from ...instances import Floats, Ints
from ...losses.rankings import discounts, gains
from ...weights.base import Arrays, check_rows

__all__ = ["ABSENT", "Columns", "Psi", "disagreements", "normalised_gains", "pairs", "relevant"]

Key = tuple[int, ...]
Psi = list[tuple[Key, float]]
# A column that has not joined: every regression gives 0 for it.
ABSENT = 1 << 62


class Columns:
    """Targets by key, numbered in the order in which they joined. A key is a kind and what it is about."""

    def __init__(self) -> None:
        self.index: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self.index)

    def get(self, key: Key) -> int:
        return self.index.get(key, ABSENT)

    def forget(self, count: int) -> None:
        """The columns beyond the first `count` leave."""
        while len(self.index) > count:
            self.index.popitem()

    def arrays(self) -> Arrays:
        """Keys end to end, and where each starts."""
        ends = np.cumsum([0, *map(len, self.index)], dtype=np.intp)
        flat = [part for key in self.index for part in key]
        return {"keys": np.array(flat, dtype=np.intp), "key_starts": ends}

    @staticmethod
    def keys(arrays: Arrays) -> list[Key]:
        starts = arrays["key_starts"]
        check_rows(starts, arrays["keys"], arrays["keys"], max(0, starts.size - 1), 2**53)
        flat, starts = arrays["keys"].tolist(), starts.tolist()
        return [tuple(flat[a:b]) for a, b in pairwise(starts)]


def normalised_gains(
    y: Floats, cutoff: int | None, gain: str = "exponential", discount: str = "log"
) -> Floats:
    """Eq. (17): G(y_j) / N(y), N the DCG of the best order down to the cutoff; 0 where nothing is relevant."""
    gained = gains(y, gain)
    best = np.sort(gained)[::-1][:cutoff]
    ideal = float((best * discounts(len(best), discount)).sum())
    return gained / ideal if ideal > 0.0 else np.zeros(len(y))


def relevant(y: Floats) -> Floats:
    """1[y_j > 0], the target of precision."""
    return (y > 0.0).astype(np.float64)


def pairs(y: Floats) -> tuple[Ints, float]:
    """AP: psi[j, l] = 1 / |y| for j <= l both relevant. The relevant labels, and the value."""
    chosen = np.flatnonzero(y > 0.0)
    return chosen, 1.0 / max(1, len(chosen))


def disagreements(y: Floats) -> tuple[Ints, Ints, Floats, float]:
    """Pairwise disagreement: psi[j, l] = sign(y_j - y_l) / N(y) for j < l, N the number of pairs of unequal grade.

    j, l, the values, and the constant sum_{j < l} 1[y_l > y_j] / N(y) that completes the loss.
    """
    js, ls = np.triu_indices(len(y), 1)
    signs = np.sign(y[js] - y[ls])
    unequal = np.flatnonzero(signs)
    N = max(1, len(unequal))
    signs = signs[unequal]
    return js[unequal], ls[unequal], signs / N, float(np.count_nonzero(signs < 0.0)) / N


class Growing:
    """A growing list of integers as an array."""

    def __init__(self) -> None:
        self.count: int = 0
        self._room: Ints = np.zeros(0, dtype=np.intp)

    def append(self, value: int) -> None:
        self._room = grown(self._room, self.count + 1)
        self._room[self.count] = value
        self.count += 1

    @property
    def array(self) -> Ints:
        return self._room[: self.count]
