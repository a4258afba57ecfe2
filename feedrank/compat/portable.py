"""Shared parts of the adapters: a learner that is copied and pickled as its snapshot, and rows of mixed values."""

import math
from collections.abc import Hashable, Mapping
from numbers import Real
from typing import TypeVar

from feedrank import learners

Key = TypeVar("Key", bound=Hashable)


class Portable:
    """A learner that travels as bytes. Copies are exact: `load(dump(learner))` is the learner, bit for bit."""

    def __init__(self, spec: Mapping[str, object]) -> None:
        self.learner = learners.build(spec)

    def __getstate__(self) -> bytes:
        return learners.dump(self.learner)

    def __setstate__(self, data: bytes) -> None:
        self.learner = learners.load(data)

    def __deepcopy__(self, memo: object) -> "Portable":
        copy = object.__new__(type(self))
        copy.__setstate__(self.__getstate__())
        return copy


def features_of(row: Mapping[Key, object]) -> dict[str, float]:
    """A row of mixed values as features: a number by its column's name, text and other values as `column=value`.

    What is missing (None, NaN) is left out, and so teaches nothing. Names are in order, so that nothing depends on that of
    the row: features join in the order in which they are given.
    """
    features: dict[str, float] = {}
    for name, value in row.items():
        if isinstance(value, Real):
            number = float(value)
            if math.isfinite(number):
                features[str(name)] = number
        elif value is not None:
            features[f"{name}={value}"] = 1.0
    return dict(sorted(features.items()))


class LabelNames:
    """Labels of any hashable kind and the names they have in the learner, both ways.

    A name is the label's own text, so that a snapshot reads well; two labels of one text (1 and "1") are told apart.
    """

    def __init__(self) -> None:
        self.names: dict[Hashable, str] = {}
        self.labels: dict[str, Hashable] = {}

    def name(self, label: Hashable) -> str:
        """The name of a label, given now if it is new."""
        name = self.names.get(label)
        if name is None:
            name = str(label) or "(empty)"
            while name in self.labels:
                name += "'"
            self.names[label], self.labels[name] = name, label
        return name
