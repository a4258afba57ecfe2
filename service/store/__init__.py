"""Stores: one interface, on SQLite for one process and on Redis for many."""

from .base import (
    Clash,
    Closed,
    Document,
    Draft,
    Entry,
    Head,
    Missing,
    Placed,
    Snapshot,
    Stale,
    Store,
    Trimmed,
)
from .open import open_store

__all__ = [
    "Clash",
    "Closed",
    "Document",
    "Draft",
    "Entry",
    "Head",
    "Missing",
    "Placed",
    "Snapshot",
    "Stale",
    "Store",
    "Trimmed",
    "open_store",
]
