# ruff: noqa: N818  (a name says what happened; that it is an error, the base says)
"""The Store: logs, snapshots, records and documents. All durability of the service goes through this interface.

    log        entries in one order, numbered 1, 2, ... (the version), appended once for each id; the truth
    snapshot   a fold of a log at a version, cached; the newest are kept, what they cover may be trimmed
    record     a value beside a log that waits to be taken by an entry and expires if it is not
    document   a small named value with a revision, changed by compare and set

A log is made by its first entry. A dropped log stays closed (in Redis, for thirty days): nothing can be appended to it by
a process that has not heard of the drop. When a writing method returns, what it wrote survives a kill of this process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

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
    "StoreSignal",
    "Trimmed",
]


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry to append. Known by its `ids`: a draft with an id that is already there is not appended again.

    `digest` tells whether a repeat says the same. `take` names a record that becomes part of the entry. `marks` is the
    version of an earlier entry that this one withdraws; it needs the log from after `base` on (and the snapshot at
    `base`, unless that is 0) to be there, and drops the snapshots that know of the withdrawn entry.
    """

    body: bytes
    ids: tuple[str, ...] = ()
    digest: str = ""
    take: str | None = None
    marks: int = 0
    base: int = 0


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a draft stands in the log; not `fresh` if it had been there."""

    version: int
    fresh: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a log. `taken` is the record it took; `mark` the version of the entry that withdrew it, or 0."""

    version: int
    at: float
    body: bytes
    taken: bytes | None = None
    mark: int = 0


@dataclass(frozen=True, slots=True)
class Head:
    """A log's state: its last version, the first version still kept, the versions that have snapshots."""

    version: int = 0
    floor: int = 1
    snapshots: tuple[int, ...] = ()
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A fold at `version`; `digest` identifies the state that `data` restores."""

    version: int
    digest: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Document:
    """A value and the revision to name when changing it."""

    value: bytes
    revision: int


class StoreSignal(Exception):
    """What a store says instead of a result; the caller knows what it means for the request."""


class Clash(StoreSignal):
    """Draft `index` has a known id with another digest; nothing was appended."""

    def __init__(self, index: int) -> None:
        super().__init__(f"draft {index} repeats a known id with other content")
        self.index = index


class Missing(StoreSignal):
    """The record that draft `index` wants to take is not there; nothing was appended."""

    def __init__(self, index: int) -> None:
        super().__init__(f"draft {index} takes a record that is not there")
        self.index = index


class Closed(StoreSignal):
    """The log was dropped."""


class Trimmed(StoreSignal):
    """The log no longer reaches back to what was asked for."""


class Stale(StoreSignal):
    """The document is not at the expected revision."""


class Store(Protocol):
    """One of the two implementations; both pass tests/service/test_store_laws.py."""

    notices: tuple[str, ...]  # what an operator should know, found when opening

    async def append(self, log: str, drafts: Sequence[Draft]) -> list[Placed]:
        """Append all drafts in order, or none: Clash, Missing, Trimmed (marks out of reach), Closed."""
        ...

    async def read(self, log: str, after: int, limit: int) -> list[Entry]:
        """The entries after version `after`, at most `limit`. Trimmed if the next one is no longer kept."""
        ...

    async def find(self, log: str, id: str) -> tuple[int, str] | None:
        """(version, digest) of the entry known by `id`."""
        ...

    async def head(self, log: str) -> Head:
        """State of one log; a log without entries has version 0."""
        ...

    async def versions(self, logs: Sequence[str]) -> list[int]:
        """Last versions of many logs."""
        ...

    async def outcome(self, log: str, version: int) -> bytes | None:
        """What was saved as the outcome of an entry."""
        ...

    async def save(
        self, log: str, snapshot: Snapshot, outcomes: Mapping[int, bytes], *, keep: int, floor: int
    ) -> str:
        """Save outcomes and then the snapshot; drop all but the newest `keep`, and entries before `floor`.

        Returns the digest held at this version: another than the snapshot's own means that two folds disagree, and
        nothing was changed. A snapshot beyond the end of an empty log starts the log there (a restored learner). Of a
        snapshot before the last withdrawal only the outcomes are kept. Entries after the oldest kept snapshot stay.
        """
        ...

    async def snapshot(self, log: str, version: int) -> Snapshot | None:
        """The snapshot at exactly this version."""
        ...

    async def drop(self, log: str) -> None:
        """Remove a log with all that belongs to it, and close it."""
        ...

    async def remember(self, log: str, records: Mapping[str, bytes], ttl: float) -> None:
        """Keep records, each under its key, for `ttl` seconds."""
        ...

    async def recall(self, log: str, key: str) -> bytes | None:
        """A record that is there and has not expired."""
        ...

    async def get(self, kind: str, name: str) -> Document | None: ...

    async def put(self, kind: str, name: str, value: bytes, revision: int) -> int:
        """Write over `revision` (0: it must not be there): the new revision, or Stale."""
        ...

    async def remove(self, kind: str, name: str, revision: int) -> None:
        """Remove at `revision`, or Stale."""
        ...

    async def page(self, kind: str, after: str, limit: int) -> list[tuple[str, Document]]:
        """Documents by name, the first `limit` after the name `after`."""
        ...

    async def count(self, kind: str) -> int:
        """How many documents there are."""
        ...

    def changes(self) -> AsyncIterator[tuple[str, str, int]]:
        """What other processes write: ("log", log, version), ("document", kind/name, 0), ("snapshot", log, version).

        ("lost", "", 0) says that some may have been missed, now and whenever listening starts again. A store of one
        process gives nothing and ends.
        """
        ...

    async def check(self) -> None:
        """Write something small; raise StoreUnavailable if that fails."""
        ...

    async def close(self) -> None: ...
