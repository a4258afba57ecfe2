"""Features of items from earlier clicks, computed from the experiment's log alone.

    behaviour:item    (c + K p) / (n + K)      clicks c of n looks at the item, p the clicks of all looks
    behaviour:query   (c + K i) / (n + K)      the same under this query, shrunk to the item's own rate i
    behaviour:unit    1 if this unit has clicked the item before

A look is a place down to the last click of a page, so what nobody reached counts for nothing. A unit's second click on an
item is none for the rates, and a page beyond its part (`handover`) does not count for them at all: nobody clicks an item up
by clicking it often. Counts halve with every HALF pages: an age in events, not in seconds, so equal logs give equal
features. Each table keeps the MOST names used last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from feedrank.service.contract.json_types import JSON, View

from .assignment import hashed

NAMES = ("behaviour:item", "behaviour:query", "behaviour:unit")
HALF, MOST, K, LONGEST = 10_000, 20_000, 10.0, 64


@dataclass(slots=True)
class Behaviour:
    """Clicks and looks, by item and by query and item; and who clicked what."""

    pages: int = 0
    clicks: float = 0.0
    looks: float = 0.0
    items: dict[str, list[float]] = field(default_factory=dict)
    pairs: dict[str, list[float]] = field(default_factory=dict)
    units: dict[str, int] = field(default_factory=dict)

    def take(self, seen: View, unit: object, *, rates: bool = True) -> None:
        """One page: `seen` has the ids that were looked at, those clicked, and the hash of the query."""
        self.pages += 1
        if self.pages % HALF == 0:
            self._halve()
        clicked = set(seen["clicked"])
        for id in seen["looked"]:
            hit, key = id in clicked, f"{unit}:{id}"
            if rates and not (hit and key in self.units):
                self.clicks += hit
                self.looks += 1.0
                _count(self.items, id, float(hit))
                if "query" in seen:
                    _count(self.pairs, f"{seen['query']}:{id}", float(hit))
            if hit and unit is not None:
                self.units.pop(key, None)
                self.units[key] = 1
                _trim(self.units)

    def _halve(self) -> None:
        self.clicks, self.looks = self.clicks / 2, self.looks / 2
        for table in (self.items, self.pairs):
            for row in table.values():
                row[0], row[1] = row[0] / 2, row[1] / 2

    def features(self, id: str, query: int | None, unit: object) -> list[float]:
        """The values of NAMES for an item."""
        mean = (self.clicks + 1.0) / (self.looks + 10.0)
        c, n = self.items.get(id, (0.0, 0.0))
        rate = (c + K * mean) / (n + K)
        c, n = (0.0, 0.0) if query is None else self.pairs.get(f"{query}:{id}", (0.0, 0.0))
        return [rate, (c + K * rate) / (n + K), float(f"{unit}:{id}" in self.units)]

    def extended(self, items: Any, query: int | None, unit: object) -> Any:
        """The items of a request with their behaviour; what is no list of items is left to be refused by the arms."""
        if isinstance(items, Mapping):
            if not _fits(items):
                return items
            ids, columns, rows = items["ids"], items["columns"], items["rows"]
            own = [self.features(id, query, unit) for id in ids]
            return {
                "ids": ids,
                "columns": [*columns, *NAMES],
                "rows": [[*row, *more] for row, more in zip(rows, own, strict=True)],
            }
        return items

    def to_json(self) -> JSON:
        """All of it, as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: View) -> Behaviour:
        """The inverse of `to_json`."""
        return cls(**data)


def looked(record: View, feedback: View) -> JSON | None:
    """What the fold needs of a page with clicks; None if it has none."""
    shown: Sequence[str] = record["served"]["ranking"]
    hits = [id for id in feedback.get("clicks", ()) if id in set(shown)]
    if not hits:
        return None
    last = max(shown.index(id) for id in hits)
    seen: JSON = {"looked": list(shown[: last + 1])[:LONGEST], "clicked": hits[:LONGEST]}
    return seen | ({"query": record["query"]} if "query" in record else {})


def query_hash(seed: str, query: str) -> int:
    """A query as the tables know it: without case and outer spaces."""
    return hashed(seed, "query", " ".join(query.casefold().split()))


def _fits(items: View) -> bool:
    if not all(isinstance(items.get(name), list) for name in ("ids", "columns", "rows")):
        return False
    rows = items["rows"]
    return len(items["ids"]) == len(rows) and all(isinstance(row, list) for row in rows)


def _count(table: dict[str, list[float]], key: str, hit: float) -> None:
    row = table.pop(key, None) or [0.0, 0.0]
    table[key] = [row[0] + hit, row[1] + 1.0]
    _trim(table)


def _trim(table: JSON) -> None:
    if len(table) > MOST:
        del table[next(iter(table))]
