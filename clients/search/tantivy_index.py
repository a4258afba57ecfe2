"""Tantivy as an engine: searches an index that the caller has opened; needs the package `tantivy`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .features import words
from .hits import Result

if TYPE_CHECKING:
    import tantivy

__all__ = ["search"]


def search(
    index: tantivy.Index, query: str, fields: Sequence[str], *, id: str = "id", limit: int = 100
) -> list[Result]:
    """The best `limit` documents for the words of `query` in any of `fields`; `id` is the stored field that names them.

    Only words reach the parser, so nothing typed is read as an operator. Only stored fields come back.
    """
    wanted = " ".join(words(query))
    if not wanted:
        return []
    searcher = index.searcher()
    hits = searcher.search(index.parse_query(wanted, list(fields)), limit).hits
    results = []
    for score, address in hits:
        stored = searcher.doc(address).to_dict()
        plain = {name: values[0] if len(values) == 1 else values for name, values in stored.items()}
        results.append(Result(str(plain[id]), score, plain))
    return results
