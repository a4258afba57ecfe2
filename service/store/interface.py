"""The Store: logs, snapshots, records and documents. All durability of the service goes through this interface.

    log        entries in one order, numbered 1, 2, ... (the version), appended once for each id; the truth
    snapshot   a fold of a log at a version, cached; the newest are kept, what they cover may be trimmed
    record     a value beside a log that waits to be taken by an entry, may fall due, and expires if it is not taken
    document   a small named value with a revision, changed by compare and set

Each entry has a chain, the checksum of itself and of all entries before it (see shared.py): two processes that have the
same (version, chain) have seen the same history. A log is made by its first entry. A dropped log stays closed (in
Redis, for thirty days): nothing can be appended to it by a process that has not heard of the drop. When a writing
method returns, what it wrote survives a kill of this process. The signals of a store are in signals.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple, Protocol

LAST = 2**32 - 2  # the last version of a log: keys and records have four bytes for it


class Position(NamedTuple):
    """A version of a log and the chain there."""

    version: int
    chain: str


@dataclass(slots=True)
class Draft:
    """An entry to append. Identified by its `ids`: a draft with an id that is already there is not appended again.

    `digest` tells whether a repeat says the same. `take` names a record that becomes part of the entry; with `expects`
    it must still have this value (Stale). `retracts` is the version of an earlier entry that this one retracts; it
    needs the log from after `base` on (and the snapshot at `base`, unless that is 0), and drops the snapshots that
    contain the retracted entry. An entry that `revises` changes how others are to be read, before it and after: it needs
    `base` as well, and drops the snapshots behind it.
    """

    body: bytes
    ids: tuple[str, ...] = ()
    digest: str = ""
    take: str | None = None
    expects: bytes | None = None
    retracts: int = 0
    base: int = 0
    revises: bool = False


@dataclass(slots=True)
class Placement:
    """Where a draft is in the log. If it was there before, it is not `fresh` and its chains and its time are empty.

    `previous` is the chain of the entry before: whoever applies its own entry without reading it compares it with its
    state's. `at` is the entry's time.
    """

    version: int
    fresh: bool
    chain: str = ""
    previous: str = ""
    at: float = 0.0


@dataclass(slots=True)
class Entry:
    """One entry of a log, checked against its chain.

    `taken` is the record it took; `retracts` the version of the entry that it retracts and `retracted` that of the
    entry that retracted it, or 0. `at` never goes back within a log, even if the clock does. Of an entry that was
    `erased`, this holds the checksums of its body and of the record it took, or "-", and both are gone.
    """

    version: int
    at: float
    body: bytes
    taken: bytes | None = None
    retracted: int = 0
    retracts: int = 0
    chain: str = ""
    previous: str = ""
    erased: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """A log's state: its last version and the chain there, the first version kept, the versions that have snapshots.

    `retracted` is the version of the newest retraction or revision, and no snapshot contains an entry that was retracted
    up to then; `revisions` are the versions of all entries that revise.
    """

    version: int = 0
    floor: int = 1
    snapshots: tuple[int, ...] = ()
    closed: bool = False
    chain: str = ""
    retracted: int = 0
    revisions: tuple[int, ...] = ()

    @property
    def position(self) -> Position:
        return Position(self.version, self.chain)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A fold at `version` of the history `chain`; `digest` identifies the state that `data`, bytes or a file, restores.

    Without a chain it is taken on trust, and starts an empty log at its version (a restored learner). What was
    retracted up to version `without` is left out, even if the retraction comes after the snapshot's own version.
    """

    version: int
    digest: str
    data: bytes | BinaryIO
    chain: str = ""
    without: int = 0


@dataclass(slots=True)
class Record:
    """A record to remember. `digest`, not empty, identifies the request it answers; `due` is when `Store.due` shows it.

    `rank` is its place among those that wait for an answer (`Store.waiting`), the lowest first, and `mark` a number by
    which they are counted (`Store.open`); both end when it is taken or expires.
    """

    value: bytes
    digest: str = ""
    due: float | None = None
    rank: float | None = None
    mark: float | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A record that waits for an answer."""

    key: str
    rank: float
    value: bytes


@dataclass(frozen=True, slots=True)
class Due:
    """A record that has fallen due."""

    log: str
    key: str
    at: float


@dataclass(frozen=True, slots=True)
class Document:
    """A value and the revision to name when changing it."""

    value: bytes
    revision: int


class Store(Protocol):
    """One of the implementations, all of which pass tests/service/test_store_*.py. All that reads may raise Damaged."""

    notices: tuple[str, ...]  # what an operator should know about this store, from opening it
    shared: bool  # whether other processes may write to it meanwhile

    @property
    def failures(self) -> int:
        """Calls that it did not answer or take, so far."""
        ...

    async def append(
        self, log: str, drafts: Sequence[Draft], expected: Position | None = None
    ) -> list[Placement]:
        """Append all drafts in order, or none: Clash, Missing, Stale, Trimmed (a retraction or revision out of reach),
        Closed, Gone (an id was erased), StorageFull (a log ends at version `LAST`).

        With `expected`, the writer's own position, nothing is appended to another history: Diverged.
        """
        ...

    async def read(self, log: str, after: int, limit: int, chain: str | None = None) -> list[Entry]:
        """The entries after version `after`, at most `limit`. Trimmed if the next one is no longer kept.

        With `chain`, the reader's own at `after`: Diverged if the log has another one there, or ends before.
        """
        ...

    async def find(self, log: str, id: str) -> tuple[int, str] | None:
        """(version, digest) of the entry with this id, unless it was forgotten; Gone if it was erased."""
        ...

    async def search(self, log: str, id: str, text: bytes) -> tuple[list[int], list[str]]:
        """Versions of the entries with ids that begin with `id`, and keys of the records that contain `text`."""
        ...

    async def erase(
        self, log: str, versions: Sequence[int], records: Sequence[str] = (), ids: Sequence[str] = ()
    ) -> list[str]:
        """Erase entries that were retracted, with their outcomes and what retracted them, and records: for good.

        Checksums take the place of the bodies: the chain stays what it was. Gives those of the entries. Their ids, the
        keys of the records and further `ids` are kept as salted hashes, as long as ids are: an entry or a record (with a
        digest) under one of them is Gone. When this returns, no file or key of the store has a byte of it. Closed, Trimmed.
        """
        ...

    async def head(self, log: str) -> Head:
        """State of one log; a log without entries has version 0."""
        ...

    async def positions(self, logs: Sequence[str]) -> list[Position]:
        """Last versions of many logs, with their chains; (0, "") for a log without entries."""
        ...

    async def outcome(self, log: str, version: int) -> bytes | None:
        """What was saved as the outcome of an entry, unless it was forgotten."""
        ...

    async def keep_outcomes(self, log: str, outcomes: Mapping[int, bytes]) -> None:
        """Save outcomes without a snapshot, by version; the first outcome of an entry stays. Closed."""
        ...

    async def save(
        self,
        log: str,
        snapshot: Snapshot,
        outcomes: Mapping[int, bytes],
        *,
        keep: int,
        floor: int,
        forget: int = 0,
    ) -> str:
        """Save outcomes and then the snapshot; drop all but the newest `keep`, and entries before `floor`.

        Ids and outcomes of entries up to version `forget` are forgotten, some at each call: an id that comes again
        later is new. Returns the digest stored at this version: another than the snapshot's own means that two folds
        disagree, and nothing was changed. Diverged if the log has another chain at this version, or ends before. Of a
        snapshot before the last retraction only the outcomes are kept, and it is not compared, unless it is `without` what
        was retracted. Entries after the oldest kept snapshot stay.
        """
        ...

    async def snapshot(self, log: str, version: int, out: BinaryIO | None = None) -> Snapshot | None:
        """The snapshot at exactly this version. With `out`, its data is written there, part by part."""
        ...

    async def drop(self, log: str) -> None:
        """Remove a log with all that belongs to it, and close it. A full store still takes this."""
        ...

    async def discard(self, kind: str, name: str, revision: int, log: str) -> None:
        """Remove a document at `revision`, or Stale, and drop its log.

        The log's end is what counts: should this fail or be killed on the way, either nothing has happened or the log is
        closed (for good, until the document is removed as well), and a document whose log is closed counts as removed.
        """
        ...

    async def remember(self, log: str, records: Mapping[str, bytes | Record], ttl: float) -> dict[str, bytes]:
        """Keep records, each under its key, for `ttl` seconds: all, or none and Clash.

        The first record of a key stays. Returns those that were there before, by key: a repeat has the digest of the
        first or is a Clash. What an entry has taken since counts, as long as the record would have lived; its value is
        empty if the entry is no longer kept.
        """
        ...

    async def recall(self, log: str, key: str) -> bytes | None:
        """A record that is there, was not taken and has not expired."""
        ...

    async def amend(
        self, log: str, key: str, value: bytes, expected: bytes, due: float | None = None
    ) -> None:
        """Change a record from the value `expected`, else Stale; Missing(0) if it is gone. `due` stays if None."""
        ...

    async def due(self, now: float, limit: int) -> list[Due]:
        """Records that are due at `now` and not taken, earliest first, of all logs; they stay until taken or expired."""
        ...

    async def waiting(self, log: str, after: float, limit: int) -> list[Waiting]:
        """Records with a rank above `after` that are not taken and that nobody has a lease of, by rank."""
        ...

    async def lease(self, log: str, records: Sequence[str], seconds: float) -> list[str]:
        """Hide records from `waiting` for so long; those of them that nobody else had hidden, each given to one caller."""
        ...

    async def open(self, log: str, mark: float, most: int) -> int:
        """How many records with this mark are not taken, or `most` if there are more."""
        ...

    async def get(self, kind: str, name: str) -> Document | None: ...

    async def put(self, kind: str, name: str, value: bytes, revision: int) -> int:
        """Write over `revision` (0: it must not be there): the new revision, or Stale."""
        ...

    async def remove(self, kind: str, name: str, revision: int) -> None:
        """Remove at `revision`, or Stale. A full store still takes this."""
        ...

    async def page(self, kind: str, after: str, limit: int, prefix: str = "") -> list[tuple[str, Document]]:
        """Documents by name, the first `limit` after the name `after` among those that begin with `prefix`."""
        ...

    async def count(self, kind: str) -> int:
        """How many documents there are."""
        ...

    async def examine(self, log: str) -> list[str]:
        """What is damaged among all that is stored for a log, down to each byte; nothing if it is sound."""
        ...

    def watch(self, log: str) -> None:
        """Have `changes` tell of this log too: ("watched", log, 0) says from when on, unless ("lost", "", 0) does."""
        ...

    def unwatch(self, log: str) -> None:
        """Have `changes` no longer tell of this log."""
        ...

    def changes(self) -> AsyncIterator[tuple[str, str, int]]:
        """What is written: ("document", kind/name, 0), and of logs that are watched ("log", log, version), 0 if it was
        dropped, and ("snapshot", log, version). Of several that come together only the newest of a log is told.

        ("lost", "", 0) says that some may have been missed, now and whenever listening starts again. A store of one
        process gives nothing and ends.
        """
        ...

    def silence(self) -> float:
        """Seconds since whoever listens to `changes` has proved that it would hear; 0 in a store of one process."""
        ...

    def sizes(self) -> Mapping[str, float]:
        """Bytes that this process can see: `store_bytes`, `wal_bytes` and `free_bytes` of its disk; nothing elsewhere."""
        ...

    async def check(self) -> None:
        """Write as much as an event may need; raise StoreUnavailable if that fails."""
        ...

    async def close(self) -> None: ...
