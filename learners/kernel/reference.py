"""Instances in the hot round, in NumPy, to the bit. The native kernel repeats it; where none was built, this one runs.

    Table    features by name, their counts, and x of an instance: look up, idf, unit length, bias

Sums run from the first to the last, so that a plain loop gives the same bits: over rows of a matrix by `np.add.reduce`,
over one row by `np.add.accumulate`. No product is left to BLAS, no logarithm to a vector library.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import filterfalse
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from . import elementary
from .elementary import LOGS, Floats, row_total, total

Ints = npt.NDArray[np.intp]
EMPTY: Floats = np.empty(0)
BIAS = ""  # the name of the constant feature: no other can have it, because empty names are refused
_ONES: Floats = np.ones(4_096)
_ONES.setflags(write=False)


def ones(count: int) -> Floats:
    """The values of names alone, read-only."""
    if count <= len(_ONES):
        return _ONES[:count]
    array = np.ones(count)
    array.setflags(write=False)
    return array


class Features:
    """A feature vector by name, read and checked. Without `values` each name counts 1, and may be there twice."""

    __slots__ = ("names", "values")
    json: bytes | None = None

    def __init__(self, names: Sequence[str], values: Floats | None = None) -> None:
        self.names = names
        self.values = values

    def __len__(self) -> int:
        return len(self.names) if self.values is not None else len(set(self.names))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Features) or list(self.names) != list(other.names):
            return False
        if self.values is None or other.values is None:
            return self.values is other.values
        return np.array_equal(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]


def read(features: Any) -> Features | None:
    """The features of plain Python objects; None leaves them to `instances.read_features`."""
    return None


def matrix(rows: Any, width: int) -> Floats | None:
    """Lists of `width` numbers as an array; None leaves them to `instances.read_items`."""
    return None


def loads(line: bytes) -> Any:
    """JSON with the members "features" read; None leaves it to another reader."""
    return None


@dataclass(slots=True)
class Vector:
    """x of one instance: `values` on the known `rows`; `unseen` are the values on features that have not joined."""

    rows: Ints
    values: Floats
    unseen: Floats = field(default_factory=lambda: EMPTY)

    @property
    def fresh(self) -> int:
        """How many features have not joined."""
        return len(self.unseen)

    def product(self, block: Floats) -> Floats:
        """t = W' x, where `block` holds the rows of W that are active."""
        return row_total(block * self.values[:, None]) + 0.0

    def squared_norm(self) -> float:
        """||x||^2, unseen features included."""
        every = np.concatenate((self.values, self.unseen)) if len(self.unseen) else self.values
        return total(every * every)


@dataclass(slots=True)
class LookedUp(Vector):
    """A vector of a table: rows ascend; `unknown` names the features that have not joined."""

    unknown: Sequence[str] = ()


class _Index(dict[str, int]):
    """A dict whose missing names have the number -1, so that a whole vector is looked up without a Python loop."""

    __slots__ = ()

    def __missing__(self, name: str) -> int:
        return -1


class Table:
    """Features by name, in the order in which they joined, and what turns an instance into x.

    idf   x_j <- x_j (1 + (log(1 + n) - log(1 + n_j))), n events counted, n_j of them with feature j
    unit  x <- x / max|x|, then x / ||x||: squares of large numbers do not overflow, of small ones not vanish
    bias  row 0 is the constant 1, after all scaling
    """

    def __init__(self, idf: bool = False, unit: bool = False, bias: bool = False) -> None:
        self.idf, self.unit, self.bias = idf, unit, bias
        self.events = 0
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
            self._room()
        return number

    def _room(self) -> None:
        if len(self._names) > len(self._counts):
            wider = np.zeros(max(len(self._names), 2 * len(self._counts)), dtype=np.int64)
            wider[: len(self._counts)] = self._counts
            self._counts = wider

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """n_j of every feature."""
        return self._counts[: len(self._names)]

    def rows(self, names: Sequence[str]) -> Ints:
        """The row of every name, -1 for one that has not joined."""
        if len(names) < 2:  # an itemgetter of one name gives no tuple
            return np.array([self._index[name] for name in names], dtype=np.intp)
        # All look-ups in one short loop in C: memory is waited for side by side, in half the time of map's.
        return np.fromiter(itemgetter(*names)(self._index), np.intp, len(names))

    def look(self, features: Features) -> LookedUp:
        """x of the features: rows ascending, so that no result depends on the order in which they were written."""
        rows, values, unknown, rest = self._look_up(features)
        if self.idf:
            now = float(self._logs(self.events))
            values = values * (1.0 + (now - self._logs(self._counts.take(rows))))
            rest = rest * (1.0 + (now - 0.0)) if len(rest) else rest
        if self.unit:
            values, rest = _unit(values, rest)
        if self.bias:
            rows, values = np.concatenate(([0], rows)), np.concatenate(([1.0], values))
        return LookedUp(rows, values, rest, unknown)

    def _look_up(self, features: Features) -> tuple[Ints, Floats, Sequence[str], Floats]:
        names, values = features.names, features.values
        rows = self.rows(names)
        unknown: Sequence[str] = ()
        rest = EMPTY
        if values is None:  # names alone: a repeated one shows as a repeated row
            rows.sort()
            if len(rows) and rows[0] < 0:
                rows = rows[rows.searchsorted(0) :]
                unknown = list(dict.fromkeys(filterfalse(self._index.__contains__, names)))
                rest = ones(len(unknown))
            if len(rows) > 1 and np.count_nonzero(rows[1:] == rows[:-1]):
                rows = np.unique(rows)
            return rows, ones(len(rows)), unknown, rest
        order = rows.argsort(kind="stable")
        rows, values = rows[order], values[order]
        if len(rows) and rows[0] < 0:
            first = int(rows.searchsorted(0))
            unknown, rest = [names[i] for i in order[:first].tolist()], values[:first]
            rows, values = rows[first:], values[first:]
        return rows, values, unknown, rest

    def _logs(self, counts: Any) -> Any:
        """log(1 + n): one number for every count, kept."""
        if self.events < len(LOGS):
            return LOGS.take(counts)
        return elementary.log(1.0 + np.asarray(counts, dtype=np.float64))

    def join(self, x: LookedUp) -> LookedUp:
        """x with every feature known: the unknown ones join."""
        if not len(x.unseen):
            return x
        rows = [self.add(name) for name in x.unknown]
        return LookedUp(
            np.concatenate((x.rows, np.array(rows, dtype=np.intp))), np.concatenate((x.values, x.unseen))
        )

    def count(self, x: Vector) -> None:
        """One more event: n and, under idf, n_j of every feature that is not 0."""
        counts = self._counts[x.rows] + (x.values != 0.0) if self.idf else None
        self.events += 1
        if counts is not None:
            self._counts[x.rows] = counts

    def uncount(self, x: LookedUp) -> None:
        """Take the last `count` of x back."""
        self.events -= 1
        if self.idf:
            self._counts[x.rows] -= x.values != 0.0

    def forget(self, count: int) -> None:
        """The features beyond the first `count` leave."""
        self._counts[count:] = 0
        while len(self._names) > count:
            self._index.pop(self._names.pop(), None)

    def text(self) -> tuple[bytes, bytes]:
        """The bytes of all names one behind the other, and where each ends, as int64."""
        parts = [name.encode("utf-8", "surrogatepass") for name in self._names]
        return b"".join(parts), np.cumsum([len(part) for part in parts], dtype=np.int64).tobytes()

    def restore(self, text: Any, ends: Any, counts: npt.NDArray[np.int64], events: int) -> None:
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
        index = _Index(zip(names, range(len(names)), strict=True))
        # No feature is in more events than there were.
        wrong = len(counts) and (counts.min() < 0 or counts.max() > events)
        # The bias, and nothing else, has no name.
        wrong = wrong or index.get(BIAS, -1) != self.bias - 1
        if len(index) < len(names) or sorted(stops) != stops or wrong:
            raise ValueError("the names or their counts do not fit together")
        self._names, self._index, self.events = names, index, events
        self._counts = np.array(counts, dtype=np.int64)
        self._room()

    def nbytes(self) -> int:
        """Roughly the memory in use: a function of the names alone."""
        return len(self.text()[0]) + (48 if self.idf else 40) * len(self._names)


def _unit(values: Floats, rest: Floats) -> tuple[Floats, Floats]:
    every = np.concatenate((values, rest)) if len(rest) else values
    top = max(float(every.max()), -float(every.min())) if len(every) else 0.0
    if not top > 0.0:
        return values, rest
    every = every / top
    every /= math.sqrt(total(every * every))
    return every[: len(values)], every[len(values) :]
