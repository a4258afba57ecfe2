"""A warm start: learn from logs of searches before the first live search.

Lines of JSON of three kinds, in any files and any order:

    UBI query     {"query_id", "user_query", "query_response_hit_ids", ...}, inside `_source` or bare
    UBI event     {"query_id", "action_name", "event_attributes": {...}, ...}, inside `_source` or bare
    plain         {"query", "results": [{"id", "score", "fields"}, ...], "clicks": [ids], "id"?, "page"?}

UBI holds ids only: the fields of documents come from lines `{"id", ...fields}` or `{"_id", "_source"}` of their own. A log
knows no scores then, so a hit scores by its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from ..payloads import JSON, Payload
from . import ubi
from .features import Features
from .hits import Result

__all__ = ["Skipped", "documents", "lessons"]


@dataclass(slots=True)
class Skipped:
    """Why lines or pages taught nothing, and how often."""

    reasons: dict[str, int] = field(default_factory=dict)

    def add(self, reason: str) -> None:
        """One more."""
        self.reasons[reason] = self.reasons.get(reason, 0) + 1


def documents(lines: Iterable[str], skipped: Skipped) -> dict[str, Payload]:
    """Fields by id."""
    parsed: dict[str, Payload] = {}
    for record in _objects(lines, skipped):
        inner = record.get("_source")
        fields = inner if isinstance(inner, Mapping) else record
        id = record.get("_id", fields.get("id"))
        if id is None:
            skipped.add("documents without an id")
        else:
            parsed[str(id)] = fields
    return parsed


def lessons(
    lines: Iterable[str],
    features: Features,
    skipped: Skipped,
    fields: Mapping[str, Payload] | None = None,
    page: int = 10,
) -> Iterator[JSON]:
    """Events for a learner's feedback: the page, and what was clicked on it. Their ids make a second import harmless."""
    queries: list[JSON] = []
    events: list[JSON] = []
    for record in _objects(lines, skipped):
        inner = record.get("_source")
        source = inner if isinstance(inner, dict) else record
        if isinstance(source.get("results"), list):
            yield from _plain(source, features, skipped, page)
        elif "action_name" in source:
            events.append(source)
        elif "query_response_hit_ids" in source or "user_query" in source:
            queries.append(source)
        else:
            skipped.add("lines of no known kind")
    documents = fields or {}
    for visit in ubi.visits(events, queries).values():
        shown = visit.page(page)
        results = [
            Result(id, float(len(shown) - place), documents.get(id, {})) for place, id in enumerate(shown)
        ]
        if not documents:
            skipped.add("UBI pages without documents: name their fields with --documents")
            continue
        yield from _lesson(f"ubi:{visit.query_id}", visit.query, results, visit.clicked, features, skipped)


def _plain(record: JSON, features: Features, skipped: Skipped, page: int) -> Iterator[JSON]:
    results: list[Result] = []
    size, clicks = record.get("page", page), record.get("clicks") or []
    if type(size) is not int or size < 1 or not isinstance(clicks, list):
        skipped.add("searches with an odd `page` or `clicks`")
        return
    for one in record["results"]:
        if not isinstance(one, dict) or not isinstance(one.get("id"), str):
            skipped.add("results without a text id")
            return
        own = one.get("fields")
        score = one.get("score")
        results.append(
            Result(
                one["id"],
                float(score)
                if isinstance(score, int | float)
                else float(len(record["results"]) - len(results)),
                own if isinstance(own, dict) else {},
            )
        )
    digest = sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:32]
    id = str(record.get("id") or digest)
    yield from _lesson(
        f"log:{id}", str(record.get("query", "")), results[:size], list(map(str, clicks)), features, skipped
    )


def _lesson(
    id: str, query: str, shown: list[Result], clicks: list[str], features: Features, skipped: Skipped
) -> Iterator[JSON]:
    ids = [one.id for one in shown]
    hits = [each for each in dict.fromkeys(clicks) if each in ids]
    if not hits:
        skipped.add("pages without a click on them")
    elif len(set(ids)) < len(ids):
        skipped.add("pages with duplicate ids")
    else:
        yield {
            "items": features.table(query, shown),
            "relevance": dict.fromkeys(hits, 1),
            "feedback_id": f"import:{id}"[:500],
        }


def _objects(lines: Iterable[str], skipped: Skipped) -> Iterator[JSON]:
    for line in lines:
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if isinstance(record, dict) and "index" in record and len(record) == 1:
            continue  # the action lines of a bulk file
        if isinstance(record, dict):
            yield record
        else:
            skipped.add("lines that are not JSON objects")
