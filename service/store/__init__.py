"""Stores: one interface, on SQLite for one process, on PostgreSQL and Redis for many."""

from .interface import (
    LAST,
    Document,
    Draft,
    Due,
    Entry,
    Head,
    Placement,
    Position,
    Record,
    Snapshot,
    Store,
    Waiting,
)
from .open import open_store
from .signals import Clash, Closed, Damaged, Diverged, Missing, Stale, StoreSignal, Trimmed

__all__ = [
    "LAST",
    "Clash",
    "Closed",
    "Damaged",
    "Diverged",
    "Document",
    "Draft",
    "Due",
    "Entry",
    "Head",
    "Missing",
    "Placement",
    "Position",
    "Record",
    "Snapshot",
    "Stale",
    "Store",
    "StoreSignal",
    "Trimmed",
    "Waiting",
    "open_store",
]
