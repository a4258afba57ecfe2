"""The table of the features: names, counts, and x of an instance: look up, idf, unit length, bias."""

import math
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from ..growth import grown
from .elementary import LOGS, Floats, log, log_of, total
from .reference import BIAS, EMPTY, Features, Ints, LookedUp, Vector, ones

_ZERO, _ONE = (
    np.array(0.0),
    np.array(1.0),
)  # NumPy takes an array as it is, where it converts a float in each call
_UNIT = np.array(1)
_FIRST: Ints = np.zeros(1, dtype=np.intp)  # the row of the bias


def part_names(width: int) -> list[str]:
    """The names of the parts of a vector, in a block of their own (`feature_blocks.py`): see `explaining.shown`."""
    return [f"vector:[{i}]" for i in range(width)]


class _Index(dict[str, int]):
    """The numbers of names. A missing one gets the number that it would join with, from `first` on, kept in `fresh`.

    So a whole vector is looked up without a Python loop over the names that are there.
    """

    __slots__ = ("first", "fresh")
    first: int
    fresh: dict[str, int]

    def __missing__(self, name: str) -> int:
        return self.fresh.setdefault(name, self.first + len(self.fresh))


class Table:
    """Features by name, in the order in which they joined, and what turns an instance into x.

    idf   x_j <- x_j (1 + (log(1 + n) - log(1 + n_j))), n events counted, n_j of them with feature j; not of a vector
    unit  x <- x / max|x|, then x / ||x||: squares of large numbers do not overflow, of small ones not vanish; a vector by
          itself
    bias  row 0 is the constant 1, after all scaling

    A vector is one block of neighbouring rows, which join together: `vector` is the first of them and their number, which
    is 0 until there are any. No name of an instance leads to them.
    """

    idf: bool
    unit: bool
    bias: bool

    def __init__(self, idf: bool = False, unit: bool = False, bias: bool = False) -> None:
        self.idf, self.unit, self.bias = idf, unit, bias
        self.events: int = 0
        self.vector: tuple[int, int] = (0, 0)
        self._names: list[str] = []
        self._index = _Index()
        self._counts = np.zeros(16, dtype=np.int64)
        if bias:
            self.add(BIAS)

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __getitem__(self, number: int) -> str:
        if number < 0:
            raise IndexError("no name has this number")
        return self._names[number]

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def find(self, name: object) -> int:
        """The number of a name, -1 if it has not joined."""
        return self._index.get(name, -1)  # type: ignore[call-overload, no-any-return]

    def add(self, name: str) -> int:
        """The number of a name, given now if it is new."""
        number = self._index.get(name)
        if number is None:
            number = len(self._names)
            self._names.append(name)  # first, so that `forget` sees it whatever fails
            self._index[name] = number
            self._counts = grown(self._counts, len(self._names))
        return number

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """n_j of every feature."""
        return self._counts[: len(self._names)]

    def add_vector(self, width: int) -> int:
        """The first row of the parts of a vector, which join if they are new."""
        if not self.vector[1] and width:
            first = len(self._names)
            self._counts = grown(self._counts, first + width)
            self.vector = first, width  # first, so that `forget` sees it whatever fails
            self._names.extend(part_names(width))
        return self.vector[0]

    def rows(self, names: Sequence[str]) -> Ints:
        """The row of every name, -1 for one that has not joined."""
        rows = self._numbers(names)
        if self._index.fresh:
            rows[rows >= len(self._names)] = -1
        return rows

    def _numbers(self, names: Sequence[str], *first: str) -> Ints:
        """The row of every name, `first` before the others; of one that has not joined the row that it will get."""
        index = self._index
        index.first, index.fresh = len(self._names), {}
        if len(names) < 2:  # an itemgetter of one name gives no tuple
            return np.array([index[name] for name in (*first, *names)], dtype=np.intp)
        # All look-ups in one short loop in C: memory is waited for side by side, in half the time of map's.
        return np.fromiter(itemgetter(*first, *names)(index), np.intp, len(first) + len(names))

    def look(self, features: Features) -> LookedUp:
        """x of the features: rows ascending, so that no result depends on the order in which they were written."""
        values, bias, alone = features.values, self.bias, features.values is None
        if values is not None:
            rows = self._numbers(features.names)
            order = rows.argsort(kind="stable")
            rows, values = rows[order], values[order]
            if bias:
                rows = np.concatenate((_FIRST, rows))
        else:  # names alone: a repeated one shows as a repeated row
            rows = self._numbers(features.names, BIAS) if bias else self._numbers(features.names)
            rows.sort()
            if np.count_nonzero(rows[1:] == rows[:-1]):
                rows = np.concatenate((_FIRST, np.unique(rows[1:]))) if bias else np.unique(rows)
        unknown = list(self._index.fresh)
        if unknown:
            self._counts = grown(self._counts, len(self._names) + len(unknown))
        if self.idf:
            counts = self._counts.take(rows[1:] if bias else rows)
            if self.events < len(LOGS):
                scales = LOGS.item(self.events) - LOGS.take(counts)
            else:
                scales = log_of(1.0 + self.events) - log(1.0 + counts.astype(np.float64))
            scales += _ONE
            values = scales if values is None else values * scales
        if self.unit:
            values = _unit(ones(len(rows) - bias) if values is None else values, alone)
        if values is None:
            values = ones(len(rows))
        elif bias:
            values = np.concatenate((ones(1), values))
        late = 0
        if features.vector is not None:
            rows, values = self._beside(features.vector, rows, values, len(unknown))
            if not self.vector[1]:
                late = features.width
                unknown += part_names(late)
            alone = False
        known = len(rows) - len(unknown)
        if not unknown:
            return LookedUp(rows, values, EMPTY, unknown, 0, (rows, values), alone)
        return LookedUp(rows[:known], values[:known], values[known:], unknown, late, (rows, values), alone)

    def _beside(self, vector: Floats, rows: Ints, values: Floats, unknown: int) -> tuple[Ints, Floats]:
        """Rows and values with those of a vector, which stands behind so many unknown features if it is new."""
        first, width = self.vector
        if not width:
            first, width = len(self._names) + unknown, len(vector)
            self._counts = grown(self._counts, first + width)
        if len(vector) != width:
            raise ValueError("a vector of another length")
        own = _unit(vector, False) if self.unit else vector
        at = int(rows.searchsorted(first))
        between = np.arange(first, first + width)
        return np.concatenate((rows[:at], between, rows[at:])), np.concatenate(
            (values[:at], own, values[at:])
        )

    def familiar(self, features: Features) -> tuple[int, int]:
        """How many features other than 0 are known, and how many are not; a vector is one."""
        if features.values is None:
            names = set(features.names)
        else:
            names = {features.names[i] for i in features.values.nonzero()[0].tolist()}
        known, count = len(self._index.keys() & names), len(names)
        if features.width:
            known, count = known + (self.vector[1] > 0), count + 1
        return known, count - known

    def join(self, x: LookedUp) -> LookedUp:
        """x with every feature known: the unknown ones join."""
        if not x.unknown:
            return x
        first, every = len(self._names), x.every
        names = x.unknown[: len(x.unknown) - x.late]
        if every is not None and every[0].item(len(x.rows)) == first and self._index.keys().isdisjoint(names):
            last = first + len(names)
            self._counts = grown(self._counts, last)
            self._names.extend(names)  # first, so that `forget` sees them whatever fails
            self._index.update(zip(names, range(first, last), strict=True))
            self.add_vector(x.late)
            return LookedUp(*every, every=every, alone=x.alone)
        rows = np.array([self.add(name) for name in names], dtype=np.intp)
        behind = np.arange(x.late) + self.add_vector(x.late)
        return LookedUp(np.concatenate((x.rows, rows, behind)), np.concatenate((x.values, x.unseen)))

    def count(self, x: Vector) -> None:
        """One more event: n and, under idf, n_j of every feature that is not 0."""
        if self.idf:
            counts = self._counts.take(x.rows)
            counts += _UNIT if isinstance(x, LookedUp) and x.alone else x.values != _ZERO
            self._counts[x.rows] = counts
        self.events += 1

    def uncount(self, x: LookedUp) -> None:
        """Take the last `count` of x back."""
        self.events -= 1
        if self.idf:
            self._counts[x.rows] -= x.values != 0.0

    def forget(self, count: int) -> None:
        """The features beyond the first `count` leave."""
        self._counts[count:] = 0
        first, width = self.vector
        if width and first >= count:
            del self._names[first : first + width]
            self.vector = 0, 0
        while len(self._names) > count:
            self._index.pop(self._names.pop(), None)

    def text(self) -> tuple[bytes, bytes]:
        """The bytes of all names one behind the other, and where each ends, as int64."""
        parts = [name.encode("utf-8", "surrogatepass") for name in self._names]
        return b"".join(parts), np.cumsum([len(part) for part in parts], dtype=np.int64).tobytes()

    def restore(
        self,
        text: Any,
        ends: Any,
        counts: npt.NDArray[np.int64],
        events: int,
        vector: tuple[int, int] = (0, 0),
    ) -> None:
        """All as it was, of bytes or arrays of them; ValueError if the parts do not fit together."""
        stops = np.frombuffer(ends, np.int64).tolist()
        if (stops[-1] if stops else 0) != len(text) or len(counts) != len(stops) or events < 0:
            raise ValueError("the names or their counts do not fit together")
        starts = [0, *stops][: len(stops)]
        text = bytes(text)
        names = [
            text[start:stop].decode("utf-8", "surrogatepass")
            for start, stop in zip(starts, stops, strict=True)
        ]
        first, width = vector
        if not 0 <= first <= first + width <= len(names) or names[first : first + width] != part_names(width):
            raise ValueError("the parts of a vector are not where they should be")
        index = _Index(zip(names[:first], range(first), strict=True))
        index.update(zip(names[first + width :], range(first + width, len(names)), strict=True))
        # No feature is in more events than there were.
        wrong = len(counts) and (counts.min() < 0 or counts.max() > events)
        # The bias, and nothing else, has no name.
        wrong = wrong or index.get(BIAS, -1) != self.bias - 1
        if len(index) + width < len(names) or sorted(stops) != stops or wrong:
            raise ValueError("the names or their counts do not fit together")
        self._names, self._index, self.events, self.vector = names, index, events, (first, width)
        self._counts = np.array(counts, dtype=np.int64)

    def nbytes(self) -> int:
        """Roughly the memory in use: a function of the names alone."""
        return len(self.text()[0]) + (48 if self.idf else 40) * len(self._names)


def _unit(values: Floats, positive: bool) -> Floats:
    # The value at an argmax is there in a fraction of the time that a maximum takes.
    top = values.item(values.argmax()) if len(values) else 0.0
    if not positive and len(values):
        top = max(top, -values.item(values.argmin()))
    if not top > 0.0:
        return values
    values = values / top
    values /= math.sqrt(total(values * values))
    return values
