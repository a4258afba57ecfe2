"""Elasticsearch and OpenSearch as engines: the JSON to send to `/INDEX/_search`, and their replies as results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..payloads import JSON, Payload
from .hits import Result

__all__ = ["ReplyError", "request", "results"]


class ReplyError(ValueError):
    """A reply that is not that of a search."""


def request(
    query: str,
    fields: Sequence[str],
    *,
    size: int = 100,
    source: Sequence[str] | None = None,
    filters: Sequence[Payload] = (),
    ubi: Payload | None = None,
) -> JSON:
    """The body of a search for what a person typed: `multi_match` over `fields` (with boosts, `title^3`).

    `source` are the fields to return (all of them if left out), `filters` clauses that do not score, and `ubi` the
    extension of User Behavior Insights, e.g. `{"query_id": ..., "client_id": ...}`.
    """
    wanted: JSON = {"multi_match": {"query": query, "fields": list(fields)}}
    if filters:
        wanted = {"bool": {"must": [wanted], "filter": [dict(one) for one in filters]}}
    body: JSON = {"query": wanted, "size": size}
    if source is not None:
        body["_source"] = list(source)
    if ubi is not None:
        body["ext"] = {"ubi": {"user_query": query, **ubi}}
    return body


def results(reply: Payload, *, id: str | None = None) -> list[Result]:
    """The hits in order. Their id is `_id`, or the field `id` of the source; `_index` and highlights are left behind.

    A hit without a score (sorted by something else) scores by its place, so that the order stays the engine's.
    """
    try:
        hits = reply["hits"]["hits"]
        parsed = []
        for place, hit in enumerate(hits):
            source = dict(hit.get("_source") or {})
            source |= {name: _first(values) for name, values in (hit.get("fields") or {}).items()}
            score = hit.get("_score")
            parsed.append(
                Result(
                    str(hit["_id"] if id is None else source[id]),
                    float(len(hits) - place if score is None else score),
                    source,
                )
            )
    except (KeyError, TypeError, AttributeError) as error:
        reason = reply.get("error") if isinstance(reply, Mapping) else None
        raise ReplyError(f"this is not the reply of a search: {reason or error!r}") from error
    return parsed


def _first(values: Any) -> Any:
    """The `fields` of a hit are lists, of one value mostly."""
    return values[0] if isinstance(values, list) and len(values) == 1 else values
