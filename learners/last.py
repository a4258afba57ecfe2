"""The last prediction of a learner, kept for the feedback that often follows it at once. It is no state: a change drops it.

What was asked is kept as a copy: a caller may change its own lists and arrays.
"""

from dataclasses import dataclass

import numpy as np

from . import reading
from .instances import PLAIN, FeatureVector, ItemList
from .lessons import Look
from .registry import Spec

# Lists with more numbers are read and scored again: what is kept takes some times their memory.
LARGEST_LIST = 1 << 16
# Longer texts are read again: the features of one take some times its memory.
LONGEST_TEXT = 1 << 16

Raw = list[str] | dict[str, float] | tuple[list[str], list[str], str] | tuple[str]


@dataclass(slots=True)
class Last:
    """What was asked, and the answer. `raw` is a copy of the instance where that is quick to compare."""

    raw: Raw | None
    parsed: FeatureVector | ItemList
    loss: str | None
    look: Look

    def reading_of(self, instance: object) -> FeatureVector | ItemList | None:
        """What an instance is read to, if it is the last one again."""
        return self.parsed if self.raw is not None and raw_of(instance) == self.raw else None

    def answers(self, parsed: FeatureVector | ItemList, loss: str | None) -> bool:
        """Whether this was asked."""
        own = self.parsed
        if self.loss != loss or isinstance(own, ItemList) != isinstance(parsed, ItemList):
            return False
        if isinstance(own, ItemList) and isinstance(parsed, ItemList):
            return own is parsed or same_list(own, parsed)
        return own is parsed or bool(own == parsed)


def last_of(instance: object, parsed: FeatureVector | ItemList, loss: str | None, look: Look) -> Last | None:
    """What to keep of a prediction."""
    if isinstance(parsed, ItemList):
        values, size = parsed.values, parsed.features * len(parsed.ids)
        if parsed.context is not None or not isinstance(values, np.ndarray) or size > LARGEST_LIST:
            return None
        # Numbered features are one shared tuple, which is looked up once.
        names = parsed.names if isinstance(parsed.names, tuple) else list(parsed.names)
        vectors = None if parsed.vectors is None else parsed.vectors.copy()
        parsed = ItemList(list(parsed.ids), names, values.copy(), vectors=vectors, index=parsed.index)
    return Last(raw_of(instance), parsed, loss, look)


def same_list(one: ItemList, other: ItemList) -> bool:
    """Whether two lists have the same items, features and numbers, and no context."""
    own, values = one.values, other.values
    return (
        other.context is None
        and isinstance(own, np.ndarray)
        and isinstance(values, np.ndarray)
        and list(one.ids) == list(other.ids)
        and (one.names is other.names or list(one.names) == list(other.names))
        and np.array_equal(own, values)
        and one.width == other.width
        and (one.vectors is other.vectors or np.array_equal(one.vectors, other.vectors))  # type: ignore[arg-type]
    )


def raw_of(instance: object) -> Raw | None:
    """A copy of names alone, of plain numbers by name, a text, a table in base64: equal ones are read to the same."""
    if type(instance) is not dict or len(instance) != 1:
        return None
    text = instance.get("text")
    if type(text) is str:
        return (text,) if len(text) <= LONGEST_TEXT else None
    features = instance.get("features")
    if type(features) is dict and PLAIN.issuperset(map(type, features.values())):
        return dict(features)
    if type(features) is list and features and type(features[0]) is str:
        return features[:]
    items = instance.get("items")
    if type(items) is dict and len(items) == 3 and type(items.get("rows")) is str:
        ids, columns = items.get("ids"), items.get("columns")
        if type(ids) is list and type(columns) is list:
            return ids[:], columns[:], items["rows"]
    return None


class LastText:
    """The last text that was read: once for its prediction and its feedback."""

    __slots__ = ("_parsed", "_raw")

    def __init__(self) -> None:
        self._raw: Raw | None = None
        self._parsed: FeatureVector | ItemList | None = None

    def features_of(self, spec: Spec, instance: object) -> object:
        """What is read to features, as these, so that it goes their way; features as they are."""
        if type(instance) is not dict or (len(instance) == 1 and "features" in instance):
            return instance
        raw = raw_of(instance)
        if raw is not None and raw == self._raw and self._parsed is not None:
            return self._parsed
        parsed = reading.instance(spec, instance)
        self._raw, self._parsed = raw, None if raw is None else parsed
        return parsed
