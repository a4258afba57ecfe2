"""User Behavior Insights (OpenSearch's open schema): its queries and events as feedback, and ours as its events.

A page's prediction id is its `query_id`. An event says which action (`action_name`) met which object
(`event_attributes.object.object_id`) at which place (`event_attributes.position.ordinal`); the query it belongs to
lists what was shown (`query_response_hit_ids`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from .results import Reranked, Shown

__all__ = ["CLICKS", "Visit", "click_event", "query_record", "visits"]

CLICKS = ("click", "click_through", "add_to_cart", "purchase")
"""Actions that say `this one`; impressions, hovers and the rest only show that a place was looked at."""


@dataclass(slots=True)
class Visit:
    """What happened on one page: the ids of a query's hits as shown, and those acted on, in order of time."""

    query_id: str
    shown: list[str] = field(default_factory=list)
    clicked: list[str] = field(default_factory=list)

    @property
    def page(self) -> Shown:
        """What `Reranker.clicked` takes, with `clicked`."""
        return Shown(self.query_id, self.shown, ())


def visits(
    events: Iterable[Mapping[str, Any]],
    queries: Iterable[Mapping[str, Any]] = (),
    actions: Sequence[str] = CLICKS,
) -> dict[str, Visit]:
    """The pages by query id. What was shown is taken from the query's record, else from the places in its events.

    Events without a query id or an object are not about results, and are passed over; each object counts once.
    """
    found: dict[str, Visit] = {}
    for record in queries:
        if record.get("query_id"):
            visit = found.setdefault(str(record["query_id"]), Visit(str(record["query_id"])))
            visit.shown = [str(id) for id in record.get("query_response_hit_ids") or ()]
    listed = {id for id, visit in found.items() if visit.shown}
    placed: dict[str, dict[str, int]] = {}
    for event in sorted(events, key=lambda event: str(event.get("timestamp", ""))):
        attributes = event.get("event_attributes") or {}
        thing = attributes.get("object") or {}
        query_id, object_id = event.get("query_id"), thing.get("object_id")
        if not query_id or object_id is None:
            continue
        visit = found.setdefault(str(query_id), Visit(str(query_id)))
        ordinal = (attributes.get("position") or {}).get("ordinal")
        if isinstance(ordinal, int):
            placed.setdefault(visit.query_id, {})[str(object_id)] = ordinal
        if event.get("action_name") in actions and str(object_id) not in visit.clicked:
            visit.clicked.append(str(object_id))
    for id, places in placed.items():
        if id not in listed:
            found[id].shown = sorted(places, key=places.__getitem__)
    return found


def query_record(
    page: Reranked, query: str, *, client_id: str, application: str = "", now: datetime | None = None
) -> dict[str, Any]:
    """The record of a page for `ubi_queries`."""
    return {
        "application": application,
        "query_id": page.prediction_id,
        "client_id": client_id,
        "user_query": query,
        "query_response_hit_ids": list(page.page.shown),
        "timestamp": (now or datetime.now(UTC)).isoformat(),
    }


def click_event(
    page: Reranked, id: str, *, client_id: str, application: str = "", now: datetime | None = None
) -> dict[str, Any]:
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
