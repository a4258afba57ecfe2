"""The interfaces that a follower needs to turn a log into a state: the state, its events, and what runs them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, BinaryIO, Final, Generic, NamedTuple, Protocol, TypeVar

from feedrank.service.contract.json_types import JSON
from feedrank.service.store import Entry, Store

T = TypeVar("T")
log = logging.getLogger(__name__)
AGAIN = 0.5  # seconds after which a task that goes on is cancelled once more
SMALL = 64  # events that are cheaper to apply again than to save
FIRST, PAGE, PAGE_BYTES = 16, 128, 2**22  # entries read at once: at first, at most, and by weight
LARGE = 2**18  # bytes of entries from which they are parsed in a thread
NOTHING: JSON = {"loss": 0.0, "mistake": False, "updated": False, "served_loss": None}


class Later(Enum):
    """The answer of who would have to wait."""

    LATER = 0


LATER: Final = Later.LATER


class FoldEvent(Protocol):
    """One entry of a log, read."""

    outcome: JSON | None

    @property
    def retracts(self) -> int: ...
    @property
    def revises(self) -> bool: ...
    @property
    def has_id(self) -> bool: ...
    @property
    def size(self) -> int: ...


class FoldState(Protocol):
    """What a log folds to: the same entries give the same state, bit for bit."""

    version: int
    skipped: int
    outdated: (
        bool  # loaded from what an earlier release saved, which would have made another state of the same log
    )

    @property
    def nbytes(self) -> int: ...

    def apply(self, version: int, event: Any) -> JSON:
        """Take in the event at `version`; its outcome. What it refuses has no effect and counts as skipped."""
        ...

    def seconds(self, event: Any) -> float:
        """What it will take to apply the event, roughly and on the safe side."""
        ...

    def dump(self, out: BinaryIO) -> str:
        """Write all of it; its digest."""
        ...


class Runner(Protocol):
    """Where the work of one state runs, one piece at a time: see `memory.Worker`."""

    async def run(self, kind: str, size: int, work: Callable[[], T], expected: float = 0.0) -> T:
        """The result of `work`; `kind` names what is alike in cost, `size` what it grows with, `expected` its seconds."""
        ...

    def attempt(
        self, kind: str, size: int, expected: float, work: Callable[..., T], *arguments: object
    ) -> T | Later:
        """What `work` gives, without waiting; LATER, and nothing done, if it is long or somebody has or awaits a turn."""
        ...

    def room(self, kind: str) -> int:
        """The size of what is done in one attempt at most; 0 if none would be made now."""
        ...

    async def pause(self) -> None:
        """Let others have their turn, if it is time."""
        ...

    def turned(self) -> None:
        """Others have had their turn."""
        ...


S = TypeVar("S", bound=FoldState)
E = TypeVar("E", bound=FoldEvent)


def unrevised(state: S, _: Sequence[E]) -> S:
    """Of a log without entries that revise others."""
    return state


@dataclass(frozen=True, slots=True)
class Recipe(Generic[S, E]):
    """How a log is folded: the state before the first entry, a state out of a snapshot, an event out of an entry.

    `revise` gives the state, of either kind, for a log in which these entries that revise others hold from the start.
    """

    fresh: Callable[[], S]
    load: Callable[[BinaryIO, str], S]
    read: Callable[[Entry], E]
    revise: Callable[[S, Sequence[E]], S] = unrevised


class Pending(NamedTuple, Generic[E]):
    """An event at hand that was not applied yet. `chain` is that of its entry, `previous` that of the one before."""

    event: E
    retracted: int = 0  # by the entry at this version
    chain: str = ""
    previous: str = ""


@dataclass(slots=True)
class Counts:
    """What happened, for metrics; `faults` is what an operator must look at, by log.

    `waits` counts the calls of predict and feedback that had to wait before they could be read or decided, by reason.
    """

    faults: dict[str, str] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)
    divergences: int = 0
    accidents: int = 0
    snapshots: int = 0
    skipped_events: int = 0
    predictions: int = 0
    feedback: int = 0
    duplicates: int = 0
    mistakes: int = 0
    loss_total: float = 0.0


async def stopped(task: asyncio.Task[None]) -> None:
    """Cancel a task until it has ended: code that waits for a socket may lose one cancellation (redis-py does, seldom)."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=AGAIN)
    if not task.cancelled() and (error := task.exception()) is not None:
        background_failed(error)


def background_failed(error: BaseException) -> None:
    """Say what nobody waited for."""
    log.error("something in the background failed", exc_info=error)


def timed(work: Callable[..., T], *arguments: object) -> tuple[T, float]:
    """The result, and the seconds of processor time of this thread that it took."""
    start = time.thread_time()
    result = work(*arguments)
    return result, time.thread_time() - start


async def finished(running: asyncio.Future[T]) -> T:
    """The result; who is cancelled meanwhile still waits: a thread cannot be stopped, and the lock must outlive it."""
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return running.result()


class LogPages(Generic[E]):
    """Of one log; `read` gives the event of an entry."""

    def __init__(self, store: Store, log: str, read: Callable[[Entry], E]) -> None:
        self._store, self._log, self._read = store, log, read
        self._page = FIRST

    async def after(self, version: int, chain: str) -> list[tuple[Entry, E]]:
        """The next entries, of the history that has this chain at the version; none at the end of the log."""
        entries = await self._store.read(self._log, version, self._page, chain or None)
        if not entries:
            return []
        size = sum([len(entry.body) + len(entry.taken or b"") for entry in entries])
        self._page = max(1, min(PAGE, 2 * self._page, PAGE_BYTES * len(entries) // max(1, size)))
        if size > LARGE:
            return await asyncio.to_thread(self._events, entries)
        return self._events(entries)

    def _events(self, entries: list[Entry]) -> list[tuple[Entry, E]]:
        read = self._read
        return [(entry, read(entry)) for entry in entries]
