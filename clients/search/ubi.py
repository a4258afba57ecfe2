"""User Behavior Insights (the open schema o19s/ubi 1.x, and OpenSearch's plugin): its events as clicks, and ours as events.

The plugin's own `query_id` is the prediction id of the page: hand it to `rerank`, and what was shown is remembered by the
service. `query_response_hit_ids` are the hits in the engine's order, not the page. An event says which action
(`action_name`) met which object (`event_attributes.object`) at which place (`event_attributes.position.ordinal`).

Read as they are stored: inside `_source` or bare, `object` one or a list, ids text or numbers, `ordinal` a number, digits,
or an object that holds one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ..payloads import JSON, Payload
from .hits import Reranked

__all__ = ["CLICKS", "Visit", "click_event", "hits", "query_id", "query_record", "visits"]

CLICKS = ("click", "click_through", "add_to_cart", "purchase")
"""Actions that say `this one`; impressions, hovers and the rest only show that a place was looked at."""


@dataclass(slots=True)
class Visit:
    """What happened on one page: the hits in the engine's order, places that events name, and the ids acted on, by time."""

    query_id: str
    query: str = ""
    unit: str | None = None
    engine: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    clicked: list[str] = field(default_factory=list)

    def page(self, size: int) -> list[str]:
        """The ids that were shown, for a log without predictions: whole pages of hits, or else by the places of events."""
        if not self.engine:
            return sorted(self.places, key=self.places.__getitem__)[:size]
        first = min(self.places.values(), default=1)
        last = max([size, *(place - min(first, 1) + 1 for place in self.places.values())])
        return self.engine[: -(-last // size) * size]


def query_id(reply: Payload) -> str | None:
    """The id that the plugin gave a search: `ext.ubi.query_id` of its reply."""
    ext = reply.get("ext")
    ubi = ext.get("ubi") if isinstance(ext, Mapping) else None
    id = ubi.get("query_id") if isinstance(ubi, Mapping) else None
    return str(id) if id else None


def hits(reply: Payload) -> list[Payload]:
    """The records in the reply of a search of `ubi_queries` or `ubi_events`."""
    outer = reply.get("hits")
    inner = outer.get("hits") if isinstance(outer, Mapping) else None
    return [one for one in inner if isinstance(one, Mapping)] if isinstance(inner, list) else []


def visits(
    events: Iterable[Payload],
    queries: Iterable[Payload] = (),
    actions: Sequence[str] = CLICKS,
) -> dict[str, Visit]:
    """The pages by query id. Events without a query id or an object are not about results; each object counts once."""
    parsed: dict[str, Visit] = {}
    for record in map(_source, queries):
        if record.get("query_id"):
            visit = parsed.setdefault(str(record["query_id"]), Visit(str(record["query_id"])))
            visit.query = str(record.get("user_query") or "")
            visit.unit = _unit(record)
            listed = record.get("query_response_hit_ids")
            visit.engine = list(dict.fromkeys(map(str, listed))) if isinstance(listed, list) else []
    for event in sorted(map(_source, events), key=lambda event: str(event.get("timestamp", ""))):
        if not event.get("query_id"):
            continue
        attributes = _mapping(event.get("event_attributes"))
        objects = _objects(attributes.get("object"))
        if not objects:
            continue
        visit = parsed.setdefault(str(event["query_id"]), Visit(str(event["query_id"])))
        # An object may be named by a field of its own and by the engine's id: the hits say which of the two they are.
        ids = [next((id for id in named if id in visit.engine), named[0]) for named in objects]
        visit.unit = visit.unit or _unit(event)
        place = _ordinal(attributes.get("position"))
        for id in ids:
            if place is not None and len(ids) == 1:
                visit.places[id] = place
            if event.get("action_name") in actions and id not in visit.clicked:
                visit.clicked.append(id)
    return parsed


def _source(record: Payload) -> Payload:
    inner = record.get("_source")
    return inner if isinstance(inner, Mapping) else record


def _mapping(value: object) -> Payload:
    return value if isinstance(value, Mapping) else {}


def _unit(record: Payload) -> str | None:
    id = record.get("client_id") or record.get("user_id") or record.get("session_id")
    return str(id) if id else None


def _objects(value: object) -> list[list[str]]:
    """The names, `object_id` first, of one object or of each in a list."""
    listed = value if isinstance(value, list) else [value]
    every = [[_mapping(one).get(name) for name in ("object_id", "internal_id")] for one in listed]
    named = [
        [str(id) for id in pair if isinstance(id, str | int) and not isinstance(id, bool) and str(id)]
        for pair in every
    ]
    return [names for names in named if names]


def _ordinal(value: object) -> int | None:
    """The place in `position`, however deep it lies."""
    if isinstance(value, Mapping):
        for name in ("ordinal", "value", "index"):
            if name in value:
                return _ordinal(value[name])
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value != int(value):
        return None
    return int(value)


def query_record(
    page: Reranked, query: str, *, client_id: str, application: str = "", now: datetime | None = None
) -> JSON:
    """The record of a page for `ubi_queries`, hits in the engine's order as the plugin writes them."""
    return {
        "application": application,
        "query_id": page.prediction_id,
        "client_id": client_id,
        "user_query": query,
        "query_response_hit_ids": list(page.page.engine),
        "timestamp": (now or datetime.now(UTC)).isoformat(),
    }


def click_event(
    page: Reranked, id: str, *, client_id: str, application: str = "", now: datetime | None = None
) -> JSON:
    """The event of a click on a page for `ubi_events`; places count from 1."""
    return {
        "application": application,
        "action_name": "click",
        "query_id": page.prediction_id,
        "client_id": client_id,
        "timestamp": (now or datetime.now(UTC)).isoformat(),
        "event_attributes": {
            "object": {"object_id": id, "object_id_field": "id"},
            "position": {"ordinal": list(page.page.shown).index(id) + 1},
        },
    }
