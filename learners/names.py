"""Names in the order they joined: labels, features."""

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

import numpy as np
import numpy.typing as npt


class Index(dict[str, int]):
    """A dict whose missing names have the number -1, so that a whole vector is looked up without a Python loop."""

    __slots__ = ()

    def __missing__(self, name: str) -> int:
        return -1


class Names:
    """An index that only grows: a name keeps the number it got when it joined."""

    __slots__ = ("index", "names")

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []  # in order; to be read only
        self.index: Index = Index()
        for name in names:
            self.add(name)

    def add(self, name: str) -> int:
        """The number of `name`, given now if it is new."""
        number = self.index.get(name)
        if number is None:
            number = len(self.names)
            self.names.append(name)  # first, so that `forget` sees it whatever fails
            self.index[name] = number
        return number

    def numbers(self, names: Sequence[str]) -> npt.NDArray[np.intp]:
        """The number of every name, -1 for one that has not joined."""
        if len(names) < 2:  # an itemgetter of one name gives no tuple
            return np.array([self.index[name] for name in names], dtype=np.intp)
        # All look-ups in one short loop in C: memory is waited for side by side, in half the time of map's.
        return np.fromiter(itemgetter(*names)(self.index), np.intp, len(names))

    def forget(self, count: int) -> None:
        """The names beyond the first `count` leave."""
        while len(self.names) > count:
            self.index.pop(self.names.pop(), None)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __getitem__(self, number: int) -> str:
        return self.names[number]

    def __contains__(self, name: object) -> bool:
        return name in self.index

    def nbytes(self) -> int:
        """Roughly what the names take in memory: the text and its place in the index."""
        return sum(map(len, self.names)) + 150 * len(self.names)
