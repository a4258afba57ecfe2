"""Rebuilds learners from their logs: `replay` with their own or another spec, `verify` against stored snapshots."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from feedrank import learners
from feedrank.learners.errors import InputError, OutdatedSnapshotError, SnapshotError
from feedrank.service.contract.events import Event
from feedrank.service.contract.faults import NotFound, ServiceError, Unprocessable
from feedrank.service.contract.json_types import JSON, View
from feedrank.service.contract.settings import Settings
from feedrank.service.store import Store, Trimmed, open_store
from feedrank.service.store.shared import spool

from .catalogue import CatalogEntry, Catalogue
from .checkpoints import load_state
from .folding import NOTHING, PAGE, Counts, Recipe
from .follower import Follower
from .learner_state import LearnerState, recipe
from .memory import Worker
from .trials import Job, key_of

OnProgress = Callable[[int, int], None]
LearnerFollower = Follower[LearnerState, Event]


@dataclass(slots=True)
class Replay:
    """What a replay gave: the events from `first` to `last`, as the learner learned them and as the other would have."""

    name: str
    first: int
    last: int
    own: LearnerState
    other: LearnerState | None = None
    refused: int = 0  # events that the other spec cannot learn from (another task's truth, say)

    def summary(self) -> JSON:
        """What it gave without the states, as plain JSON; a fingerprint stands for every bit of a learner."""
        folds = {"its own": self.own} | ({"the other": self.other} if self.other is not None else {})
        return {
            "name": self.name,
            "first": self.first,
            "last": self.last,
            "refused": self.refused,
            "folds": {
                whose: {
                    "algorithm": fold.learner.spec["algorithm"],
                    **fold.learner.progress.to_json(),
                    "fingerprint": learners.fingerprint(fold.learner),
                }
                for whose, fold in folds.items()
            },
        }


@dataclass(slots=True)
class Report:
    """What `verify` says of one learner; sound if there are no `problems`."""

    name: str
    version: int
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what is sound and may surprise
    snapshots: int = 0


class TrialState(LearnerState):
    """A learner of another spec: what it cannot learn from, it leaves out."""

    refused = 0

    def apply(self, version: int, event: Event) -> JSON:
        try:
            self.learner.check(event.instance, event.truth)
        except InputError:
            self.refused += 1
            self.version = version
            return NOTHING
        return super().apply(version, event)


def quiet(done: int, total: int) -> None:
    """A progress that shows nothing."""


@asynccontextmanager
async def following(
    store: Store, entry: CatalogEntry, how: Recipe[LearnerState, Event]
) -> AsyncIterator[LearnerFollower]:
    """A follower that saves nothing."""
    executor = ThreadPoolExecutor(1, "feedrank-replay")
    try:
        yield Follower(
            entry.log,
            f"learner {entry.name!r}",
            how,
            store,
            Worker(executor),
            Settings(),
            Counts(),
            saves=False,
        )
    finally:
        executor.shutdown()


async def replay(
    store: Store,
    name: str,
    *,
    spec: View | None = None,
    until: int | None = None,
    progress: OnProgress = quiet,
) -> Replay:
    """Rebuild a learner from its log, up to a version, beside one of another spec that learns from the same events.

    Retracted events are left out. Where the log was trimmed, the learner starts from the snapshot before its first entry
    and the other from nothing.
    """
    entry = await Catalogue(store, 0).resolve(name)
    head = await store.head(entry.log)
    last = head.version if until is None else min(until, head.version)
    if head.floor > 1 and last < min(head.snapshots, default=last + 1):
        raise NotFound(
            f"the log of {entry.name!r} starts at version {head.floor}: nothing is kept up to {last}"
        )
    async with following(store, entry, recipe(entry.spec)) as own:
        await own.rewind(until=last)
        base = own.version
        await walk(own, base, last, progress)
    result = Replay(entry.name, base + 1, last, own.state)
    if spec is not None:
        try:
            trial = TrialState(learners.build(spec, own.state.learner.renames))
        except InputError as error:
            raise Unprocessable.at(error.pointer, error.detail) from None
        trial.version = base
        async with following(store, entry, recipe(entry.spec)) as other:
            await other.rewind(until=last)
            other.state = trial
            await walk(other, base, last, progress)
        result.other, result.refused = trial, trial.refused
    return result


async def replay_job(
    store: Store, url: str, name: str, spec: JSON | None = None, until: int | None = None
) -> Job:
    """A replay up to now for any worker that can open the store at `url`; it gives the `summary`."""
    entry = await Catalogue(store, 0).resolve(name)
    head = await store.head(entry.log)
    last = head.version if until is None else min(until, head.version)
    log = {"log": entry.log, "version": head.version, "chain": head.chain, "floor": head.floor}
    return Job(
        key_of("replay", entry.name, entry.spec, log, spec, last),
        replay_in_process,
        (url, entry.name, spec, last),
    )


def replay_in_process(url: str, name: str, spec: JSON | None, last: int) -> JSON:
    async def main() -> JSON:
        store = await open_store(url, read_only=True)
        try:
            return (await replay(store, name, spec=spec, until=last)).summary()
        finally:
            await store.close()

    return asyncio.run(main())


async def walk(follower: LearnerFollower, base: int, last: int, progress: OnProgress) -> None:
    """Go to the end in pages, showing how far it is."""
    while follower.version < last:
        await follower.advance(min(last, follower.version + PAGE))
        progress(follower.version - base, last - base)


async def verify(store: Store, names: list[str] | None = None, progress: OnProgress = quiet) -> list[Report]:
    """Check the log, every snapshot and its digest of the named learners, or of all."""
    catalogue = Catalogue(store, 0)
    entries: list[CatalogEntry] = []
    after: str | None = ""
    while names is None and after is not None:
        page, after = await catalogue.page(after, PAGE)
        entries += page
    for name in names or ():
        entries.append(await catalogue.resolve(name))
    reports: list[Report] = []
    for number, entry in enumerate(entries):
        reports.append(await examine(store, entry))
        progress(number + 1, len(entries))
    return reports


async def examine(store: Store, entry: CatalogEntry) -> Report:
    """One learner: its entries follow one another and can be read, its snapshots are what the entries fold to."""
    head = await store.head(entry.log)
    report = Report(entry.name, head.version, await store.examine(entry.log))
    if report.problems:
        return report
    digests: dict[int, str] = {}
    for version in head.snapshots:
        try:
            loaded = await load_state(store, entry.log, version, LearnerState.load)
            if loaded is None:
                raise SnapshotError("its data is missing")
            # As this release writes it: an older one may have named fewer parameters of the same learner.
            with spool() as out:
                digests[version] = await asyncio.to_thread(loaded[0].dump, out)
        except OutdatedSnapshotError:
            report.notes.append(f"snapshot at version {version} is of an older release and is not used")
        except SnapshotError as error:
            report.problems.append(f"snapshot at version {version}: {error}")
    report.snapshots = len(digests)
    try:
        async with following(store, entry, recipe(entry.spec)) as follower:
            await follower.rewind()
            await compare(follower, head.version, digests, report)
    except (ServiceError, Trimmed) as error:
        report.problems.append(
            str(error) or f"the log before version {head.floor} and all snapshots are gone"
        )
    except (ValueError, KeyError, TypeError) as error:
        report.problems.append(f"the log cannot be read: {error}")
    return report


async def compare(follower: LearnerFollower, last: int, digests: Mapping[int, str], report: Report) -> None:
    """Fold to the end, looking at every snapshot on the way."""
    while follower.version < last:
        at = follower.version + 1
        skipped = follower.state.skipped
        await follower.advance(at)
        if follower.state.skipped > skipped:
            report.problems.append(f"event {at} cannot be applied and has no effect")
        if at in digests:
            with spool() as out:
                if follower.state.dump(out) != digests[at]:
                    report.problems.append(f"snapshot at version {at} is not what the log folds to")
