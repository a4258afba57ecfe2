"""Rows of documents and counters. A function checks first and writes then."""

from __future__ import annotations

from ..interface import Document
from ..shared import seal, unseal
from ..signals import Stale
from .database import Database


def expect(db: Database, kind: str, name: str, revision: int) -> None:
    """A document is at this revision, or at none if that is 0."""
    row = db.execute("SELECT revision FROM documents WHERE kind = ? AND name = ?", (kind, name)).fetchone()
    if (row[0] if row else 0) != revision:
        raise Stale


def put(db: Database, kind: str, name: str, value: bytes, revision: int) -> int:
    expect(db, kind, name, revision)
    fresh = count(db, "revision", 1)
    if revision == 0:
        count(db, f"documents:{kind}", 1)
    db.execute(
        "INSERT INTO documents (kind, name, revision, value) VALUES (?, ?, ?, ?) ON CONFLICT (kind, name)"
        " DO UPDATE SET revision = excluded.revision, value = excluded.value",
        (kind, name, fresh, seal(value)),
    )
    changed(db, kind, name)
    return fresh


def remove(db: Database, kind: str, name: str, revision: int) -> None:
    expect(db, kind, name, revision)
    count(db, f"documents:{kind}", -1)
    db.execute("DELETE FROM documents WHERE kind = ? AND name = ?", (kind, name))
    changed(db, kind, name)


def changed(db: Database, kind: str, name: str) -> None:
    """Tell of a document."""
    if db.shared:
        db.tell("document", f"{kind}/{name}", 0)


def document(kind: str, name: str, value: bytes, revision: int) -> Document:
    return Document(unseal(value, f"the document {kind}/{name}"), revision)


def get(db: Database, kind: str, name: str) -> Document | None:
    row = db.execute(
        "SELECT value, revision FROM documents WHERE kind = ? AND name = ?", (kind, name)
    ).fetchone()
    return None if row is None else document(kind, name, *row)


def page(db: Database, kind: str, after: str, limit: int, prefix: str) -> list[tuple[str, Document]]:
    rows = db.execute(
        "SELECT name, value, revision FROM documents WHERE kind = ? AND name > ? AND name >= ? AND name < ?"
        " ORDER BY name LIMIT ?",
        (kind, after, prefix, prefix + "\U0010ffff", limit),
    )
    return [(name, document(kind, name, value, revision)) for name, value, revision in rows]


def counter(db: Database, name: str) -> int:
    row = db.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()
    return row[0] if row else 0


def count(db: Database, name: str, by: int) -> int:
    """Move a counter and give its new value."""
    (value,) = db.execute(
        "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value"
        " RETURNING value",
        (name, by),
    ).fetchone()
    return int(value)
