"""The last instance that was asked about: feedback mostly follows its prediction, and is not read and looked up again."""

from typing import Any

from .reference import Features, LookedUp, Table


class Asked:
    """`look` gives x of an instance; the same x, to the object, where it was asked about last."""

    __slots__ = ("_features", "_raw", "table", "x")

    def __init__(self, table: Table) -> None:
        self.table = table
        self.clear()

    def clear(self) -> None:
        """Forget it: names or weights have changed."""
        self._raw: list[str] | None = None  # a copy of its names, where it was a list of them
        self._features: Features | None = None
        self.x: LookedUp | None = None

    @property
    def named(self) -> bool:
        """Whether it was names alone."""
        return self._features is not None and self._features.values is None

    def look(self, instance: Any) -> LookedUp | None:
        """x of `{"features": ...}`, or of what was read of it; None where it is no list of names and was not read."""
        value = instance
        if type(instance) is dict:
            if len(instance) != 1:
                return None
            value = instance.get("features")
        elif not isinstance(instance, Features):
            return None
        last, named = self.x, type(value) is list
        if last is not None:
            same = value == self._raw if named else value is self._features or value == self._features
            if same and self.x is last:  # a name's __eq__ may have asked about another one
                return last
        if named and value:
            features = Features(value[:])
        elif isinstance(value, Features):
            features = value
        else:
            return None
        table = self.table
        count = len(table)
        self.clear()
        try:
            x = table.look(features)
        except TypeError:  # what cannot be looked up is no name
            return None
        if len(table) != count or (named and not _all_names(x, table.bias)):
            return None
        self._raw, self._features, self.x = features.names if named else None, features, x  # type: ignore[assignment]
        return x


def _all_names(x: LookedUp, bias: bool) -> bool:
    """Whether names were looked up: those that have joined are, but for the bias, which has row 0 and an empty one."""
    if bias and len(x.rows) > 1 and x.rows[1] == 0:
        return False
    unknown = x.unknown
    return not unknown or (set(map(type, unknown)) == {str} and "" not in unknown)
