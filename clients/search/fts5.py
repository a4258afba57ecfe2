"""SQLite FTS5 as an engine: a table's rows as results, best by bm25 first."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from .features import words
from .hits import Result

__all__ = ["match", "search"]


def match(query: str, *, every: bool = False, prefix: bool = True) -> str:
    """A MATCH expression of what a person typed: its words, any of them or `every` one; the last may be a beginning.

    Words are quoted, so nothing typed is read as an operator. Empty if there is no word.
    """
    terms = [f'"{word}"' for word in words(query)]
    if terms and prefix:
        terms[-1] += "*"
    return (" AND " if every else " OR ").join(terms)


def search(
    connection: sqlite3.Connection,
    table: str,
    query: str,
    *,
    id: str = "rowid",
    limit: int = 100,
    weights: Sequence[float] = (),
    every: bool = False,
) -> list[Result]:
    """The best `limit` rows of a full-text table; `fields` are its columns, `weights` those of bm25, one a column."""
    wanted = match(query, every=every)
    if not wanted:
        return []
    name = _quoted(table)
    rank = f"bm25({', '.join([name, *(str(float(weight)) for weight in weights)])})"
    cursor = connection.execute(
        f"SELECT {_quoted(id)}, {rank}, * FROM {name} WHERE {name} MATCH ? ORDER BY 2 LIMIT ?",  # noqa: S608
        (wanted, limit),
    )
    names = [column[0] for column in cursor.description][2:]
    # FTS5 gives better rows smaller numbers, all of them negative.
    return [Result(str(row[0]), -row[1], dict(zip(names, row[2:], strict=True))) for row in cursor]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
