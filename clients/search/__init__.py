"""Search results re-ranked by what people click: `Reranker`, features, clicks, and adapters of engines.

Engines: `feedrank.clients.search.fts5`, `.tantivy_index`, `.elastic` (Elasticsearch and OpenSearch); events: `.ubi`.
"""

from .clicks import EXAMINATION, examination
from .evidence import Evidence
from .features import Features
from .reranker import Counts, Reranker, spec
from .results import Reranked, Result, Shown

__all__ = [
    "EXAMINATION",
    "Counts",
    "Evidence",
    "Features",
    "Reranked",
    "Reranker",
    "Result",
    "Shown",
    "examination",
    "spec",
]
