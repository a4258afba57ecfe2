"""Types for JSON objects: `JSON` is built here, `Payload` is only read. And what the typed replies add to their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JSON = dict[str, Any]
Payload = Mapping[str, Any]


class Named:
    """What stands for a `label`, or in lists for the `id` of an item."""

    __slots__ = ()
    label: str | None
    id: str | None

    @property
    def key(self) -> str:
        """The label or the id, whichever this ranking is of."""
        return self.label if self.label is not None else self.id or ""
