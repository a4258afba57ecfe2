"""Folding logs again, offline: `replay` under a learner's own spec or another, `verify` against what is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from feedrank import learners
from feedrank.learners.errors import InputError, SnapshotError

from .errors import NotFound, ServiceError, Unprocessable
from .host.catalogue import Catalogue, Listed
from .host.events import Event
from .host.fold import Fold
from .host.loading import base_fold
from .store import Entry, Store, Trimmed

PAGE = 500
Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Replay:
    """What a replay gave: the events from `first` to `last`, as the learner learned them and as the other would have."""

    name: str
    first: int
    last: int
    own: Fold
    other: Fold | None = None
    refused: int = 0  # events that the other spec cannot learn from (another task's truth, say)


@dataclass(slots=True)
class Report:
    """What `verify` found of one learner; sound if there are no `problems`."""

    name: str
    version: int
    problems: list[str] = field(default_factory=list)
    snapshots: int = 0


def quiet(done: int, total: int) -> None:
    """A progress that shows nothing."""


async def replay(
    store: Store,
    name: str,
    *,
    spec: Mapping[str, Any] | None = None,
    until: int | None = None,
    progress: Progress = quiet,
) -> Replay:
    """Rebuild a learner from its log, up to a version, beside one of another spec that learns from the same events.

    Withdrawn events are left out. Where the log was trimmed, the learner starts from the snapshot before its first entry
    and the other from nothing.
    """
    listed = await Catalogue(store, 0).resolve(name)
    head = await store.head(listed.log)
    last = head.version if until is None else min(until, head.version)
    base, own = await start(store, listed, last)
    try:
        other = None if spec is None else Fold(learners.build(spec))
    except InputError as error:
        raise Unprocessable.at(error.pointer, error.detail) from None
    told = Replay(listed.name, base + 1, last, own, other)
    async for entry, event in entries(store, listed, base, last):
        progress(entry.version - base, last - base)
        if event.withdraws or 0 < entry.mark <= last:
            continue
        own.apply(entry.version, event)
        if other is not None:
            try:
                other.learner.check(event.instance, event.truth)
            except InputError:
                told.refused += 1
                continue
            other.apply(entry.version, event)
    own.learner.version = last
    return told


async def start(store: Store, listed: Listed, last: int) -> tuple[int, Fold]:
    """Where a replay begins: with nothing, or with the oldest snapshot of a trimmed log."""
    head = await store.head(listed.log)
    if head.floor == 1:
        return 0, Fold(learners.build(listed.spec))
    if last < min(head.snapshots, default=last + 1):
        raise NotFound(
            f"the log of {listed.name!r} starts at version {head.floor}: nothing is kept up to {last}"
        )
    return await base_fold(store, listed, min(head.snapshots) + 1)


async def entries(store: Store, listed: Listed, after: int, last: int) -> AsyncIterator[tuple[Entry, Event]]:
    """The entries after a version, read in pages."""
    while after < last:
        page = await store.read(listed.log, after, min(PAGE, last - after))
        if not page:
            return
        for entry in page:
            yield entry, Event.read(entry)
        after = page[-1].version


async def verify(store: Store, names: list[str] | None = None, progress: Progress = quiet) -> list[Report]:
    """Check the log, every snapshot and its digest of the named learners, or of all."""
    catalogue = Catalogue(store, 0)
    listed: list[Listed] = []
    cursor: str | None = None
    while names is None:
        page, cursor = await catalogue.page(cursor, PAGE)
        listed += page
        if cursor is None:
            break
    for name in names or ():
        listed.append(await catalogue.resolve(name))
    reports: list[Report] = []
    for number, one in enumerate(listed):
        reports.append(await examine(store, one))
        progress(number + 1, len(listed))
    return reports


async def examine(store: Store, listed: Listed) -> Report:
    """One learner: its entries follow one another and can be read, its snapshots are what the entries fold to."""
    head = await store.head(listed.log)
    report = Report(listed.name, head.version)
    digests: dict[int, str] = {}
    for version in head.snapshots:
        held = await store.snapshot(listed.log, version)
        try:
            if held is None:
                raise SnapshotError("its data is missing")
            Fold.load(held.data, held.digest)
            digests[version] = held.digest
        except SnapshotError as error:
            report.problems.append(f"snapshot at version {version}: {error}")
    report.snapshots = len(digests)
    try:
        base, fold = await start(store, listed, head.version)
        await follow(store, listed, base, fold, head.version, digests, report)
    except (ServiceError, Trimmed) as error:
        report.problems.append(
            str(error) or f"the log before version {head.floor} and all snapshots are gone"
        )
    except (ValueError, KeyError, TypeError) as error:
        report.problems.append(f"the log cannot be read: {error}")
    return report


async def follow(
    store: Store,
    listed: Listed,
    base: int,
    fold: Fold,
    last: int,
    digests: Mapping[int, str],
    report: Report,
) -> None:
    """Fold as it was folded when it was written: withdrawals take effect where they stand."""
    at = base
    async for entry, event in entries(store, listed, base, last):
        if entry.version != at + 1:
            report.problems.append(f"the log jumps from version {at} to {entry.version}")
            return
        at = entry.version
        if event.withdraws:
            fold = await without(store, listed, at)
        else:
            skipped = fold.skipped
            fold.apply(at, event)
            if fold.skipped > skipped:
                report.problems.append(f"event {at} cannot be applied and has no effect")
        if at in digests and fold.dump()[0] != digests[at]:
            report.problems.append(f"snapshot at version {at} is not what the log folds to")
    if at != last:
        report.problems.append(f"the log ends at version {at} and should at {last}")


async def without(store: Store, listed: Listed, version: int) -> Fold:
    """The fold at a withdrawal."""
    base, fold = await start(store, listed, version)
    async for entry, event in entries(store, listed, base, version):
        if not event.withdraws and not 0 < entry.mark <= version:
            fold.apply(entry.version, event)
    fold.learner.version = version
    return fold
