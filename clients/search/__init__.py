"""Re-ranks search results by clicks: `Reranker`, features, clicks, and adapters of engines.

Engines: `feedrank.clients.search.fts5`, `.tantivy_index`, `.elastic` (Elasticsearch and OpenSearch); events: `.ubi`.
"""

from .features import Features
from .hits import Reranked, Result, Shown
from .reranker import Counts, Reranker, prepare, spec

__all__ = [
    "Counts",
    "Features",
    "Reranked",
    "Reranker",
    "Result",
    "Shown",
    "prepare",
    "spec",
]
