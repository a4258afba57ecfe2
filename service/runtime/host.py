"""The Host: all calls on learners, with plain JSON values, on any Store.

All methods raise `contract.faults` and nothing else on purpose. A name may be an alias wherever a learner is read,
asked or taught; the reply carries the learner's own name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import BinaryIO

from feedrank import learners
from feedrank.learners import reading
from feedrank.learners.codec import ARITHMETIC
from feedrank.learners.errors import SnapshotError
from feedrank.learners.learner import Learner
from feedrank.learners.spec import asks_for
from feedrank.service.contract.budget import Budget, available_memory
from feedrank.service.contract.faults import (
    Conflict,
    NotFound,
    NotReady,
    StorageFull,
    StoreUnavailable,
    Unprocessable,
    name_taken,
)
from feedrank.service.contract.json_types import JSON, View
from feedrank.service.contract.messages import ErrorScope
from feedrank.service.contract.name_lengths import check_spec
from feedrank.service.contract.naming import check_limit, every_name, spec_members
from feedrank.service.contract.settings import Settings
from feedrank.service.store import LAST, Closed, Snapshot, Store, open_store
from feedrank.service.store.shared import spool

from .catalogue import Catalogue
from .checkpoints import no_room
from .cursors import Cursors
from .eraser import Eraser
from .folding import Counts
from .learner_state import LearnerState
from .memory import Memory
from .predictor import Predictor
from .questions import affordable
from .renamer import Renamer
from .retractor import Retractor
from .review import Review
from .streams import Stream
from .supervisor import Supervisor
from .sweeper import Sweeper
from .views import Views
from .writer import Writer

MANY = 1_000  # labels or numbers of a spec from which it is read in a thread


class Host:
    """Learners by name. Open with `async with Host.open(url, settings) as host`.

    `predict(name, request)`, `feedback(name, request, key)`, `clicks(name, request)`, `retract(name, request)` and
    `rename(name, request)` are the calls of a round, `stream(name)` takes many of the first two. What is only looked at is
    in views.py.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.settings = settings
        self.notices = store.notices
        self.cursors = Cursors(store)
        self._store_fault = ""  # what the last check of the store said
        self._counts = Counts()
        self.waits = self._counts.waits
        self._catalogue = Catalogue(store, settings.max_learners)
        self._supervisor = Supervisor()
        self.budget = Budget(settings.memory or available_memory())
        self._memory = Memory(store, self._catalogue, settings, self._counts, self._supervisor, self.budget)
        self._predictor = Predictor(store, self._memory, settings, self._counts)
        self._writer = Writer(store, self._memory, self._predictor, settings, self._counts)
        self.predict, self.feedback = self._predictor, self._writer
        self.retract = Retractor(store, self._memory, self._writer, settings.max_batch)
        self.rename = Renamer(store, self._memory, self._writer)
        self.erase = Eraser(store, self._catalogue, self._memory, self._writer, settings, self._supervisor)
        self.subjects = self.erase.subjects
        self.sweeper = Sweeper(store, self._memory, self._writer, settings, self._supervisor)
        self.clicks, self.rewards = self.sweeper.clicks, self.sweeper.rewards
        self.queue = Review(store, self._memory)
        views = Views(store, self._catalogue, self._memory)
        self.events, self.history, self.labels = views.events, views.history, views.labels
        self.reliability, self.weights = views.reliability, views.weights

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, settings: Settings | None = None) -> AsyncIterator[Host]:
        """Open the store at `url` and host its learners; on leaving, snapshots are written and the store is closed.

        Raises StoreRefused when the store cannot be used at all; its `detail` is the one line to print. `notices` is
        what an operator should be warned of.
        """
        settings = settings or Settings()
        store = await open_store(
            url, replicas=settings.redis_replicas, replica_wait=settings.redis_wait, arithmetic=ARITHMETIC
        )
        host = cls(store, settings)
        try:
            yield host
        finally:
            try:
                await host.close()
            finally:
                await store.close()

    async def close(self) -> None:
        """End what runs by itself, and save what is worth it; the store stays open."""
        for part in (self.erase, self.sweeper, self._predictor, self._writer, self._memory):
            await part.close()

    # Learners

    async def create(self, name: str, spec: View) -> tuple[JSON, bool]:
        """Make a learner: (info, True); (info, False) if it is there with an equal spec; Conflict if with another."""
        check_spec(spec)
        with ErrorScope():
            built = await self.build(spec)
            full = built.spec
            affordable(reading.cost_of_labels(built), self.settings)
        entry, fresh = await self._catalogue.create(name, full)
        if not fresh and not asks_for(spec, entry.spec):
            raise Conflict(f"there is a learner {name!r} with another spec, and a spec never changes")
        return await self.info(name), fresh

    async def build(self, spec: object) -> Learner:
        """A fresh learner of a spec within the limits; many labels are read in a thread."""
        members = spec_members(spec, self.settings)
        return await asyncio.to_thread(learners.build, spec) if members > MANY else learners.build(spec)

    async def info(self, name: str) -> JSON:
        """Spec, version, labels, features, bytes, progress, certificate; what is still being retracted, and was renamed."""
        async with self._memory.use(name) as learner:
            core = learner.state.learner
            description = await learner.worker.run("describe", 1, core.describe)
            pending = {retracted for at, retracted in learner.unsettled.items() if retracted != at}
            renamed = {"renames": core.renames} if core.renames else {}
            return {
                "name": learner.entry.name,
                **description,
                "spec": learner.entry.spec,
                "retracting": sorted(pending | learner.erasing),
                **renamed,
            }

    async def stream(self, name: str) -> Stream:
        """Many predicts and feedbacks in order; NotFound if there is no such learner now."""
        async with self._memory.use(name):
            return Stream(name, self._memory, self._predictor, self._writer, self.settings)

    async def renames(self, name: str) -> JSON:
        """The labels of a learner that were renamed, and what they are called now."""
        async with self._memory.use(name) as learner:
            return learner.state.learner.renames

    async def spec(self, name: str) -> JSON:
        """The full spec of a learner."""
        return (await self._catalogue.resolve(name)).spec

    async def log_of(self, name: str) -> str | None:
        """The log of the learner that a name stands for, if there is one."""
        try:
            entry = self._catalogue.live.get(name) or await self._catalogue.resolve(name)
            return entry.log
        except NotFound:
            return None

    async def activate(self, name: str, deferred: str, id: str) -> None:
        """Let a prediction that was kept aside stand under its id from now on; NotFound if there is none."""
        await self._predictor.activate(name, deferred, id)

    async def list(
        self, limit: int = 100, cursor: str | None = None, reaches: Callable[[str], bool] = every_name
    ) -> JSON:
        """`{"learners": [{"name", "task", "algorithm", "version"}], "next"}` in order of name."""
        check_limit(limit)
        after = await self.cursors.open("learners", cursor)
        page, last = await self._catalogue.page(after, limit, reaches)
        positions = await self.store.positions([entry.log for entry in page])
        shown = [
            {
                "name": entry.name,
                "task": entry.spec["task"],
                "algorithm": entry.spec["algorithm"],
                "version": position.version,
            }
            for entry, position in zip(page, positions, strict=True)
        ]
        return {"learners": shown, "next": await self.cursors.seal("learners", last)}

    async def delete(self, name: str) -> None:
        """Remove a learner (or only the alias, if `name` is one) and all that belongs to it."""
        key = await self._catalogue.delete(name)
        if key is not None:
            self._memory.forget(key)

    async def alias(self, name: str, learner: str) -> JSON:
        """Let `name` stand for `learner` from now on: `{"name", "learner"}`; Conflict if `name` is a learner."""
        await self._catalogue.alias(name, learner)
        return {"name": name, "learner": learner}

    async def aliases(
        self, limit: int = 100, cursor: str | None = None, reaches: Callable[[str], bool] = every_name
    ) -> JSON:
        """`{"aliases": [{"name", "learner"}], "next"}` in order of name."""
        check_limit(limit)
        after = await self.cursors.open("aliases", cursor)
        page, last = await self._catalogue.aliases(after, limit, reaches)
        shown = [{"name": one.name, "learner": one.learner} for one in page]
        return {"aliases": shown, "next": await self.cursors.seal("aliases", last)}

    # Moving

    async def export(self, name: str) -> bytes:
        """The whole learner as one portable file: what `feedrank.learners.load` reads."""
        with spool() as out:
            await self.write(name, out)
            out.seek(0)
            return out.read()

    async def write(self, name: str, out: BinaryIO) -> None:
        """The same, written to a file: of a large learner there is no second one in memory."""
        async with self._memory.use(name) as learner:
            core = learner.state.learner
            with no_room():
                await learner.worker.run("dump", learner.state.nbytes, lambda: write_pieces(core, out))

    async def restore(self, name: str, data: bytes | BinaryIO) -> JSON:
        """Make a learner of such a file: its info; Conflict if the name is taken, Unprocessable if damaged."""
        try:
            learner = await asyncio.to_thread(learners.load, data)  # a large one takes long to check
        except SnapshotError as error:
            raise Unprocessable.at("", str(error)) from None
        except MemoryError:
            raise StorageFull("there is not enough memory for this learner") from None
        if learner.nbytes() > self.settings.max_learner_bytes:
            raise StorageFull(f"a learner may take {self.settings.max_learner_bytes} bytes of memory at most")
        if learner.version > LAST:
            raise Unprocessable.at(
                "", f"a learner has at most {LAST} events, and this one has {learner.version}"
            )
        entry, fresh = await self._catalogue.create(name, learner.spec, active=False)
        if not fresh:
            raise Conflict(f"there is a learner {name!r}: restore under another name, or delete it first")
        if learner.version:
            state = LearnerState(learner)
            state.begin()
            with no_room(), spool() as image:
                digest = await asyncio.to_thread(state.dump, image)
                snapshot = Snapshot(learner.version, digest, image)
                try:
                    await self.store.save(entry.log, snapshot, {}, keep=1, floor=1)
                except Closed:  # whoever took the name has cleared what was there
                    raise name_taken(name) from None
        await self._catalogue.activate(entry)
        # Loaded again, there would be two of it in memory.
        description = await asyncio.to_thread(learner.describe)
        return {"name": name, **description, "retracting": []}

    # Operating

    async def ready(self) -> dict[str, str]:
        """The names of all checks, each "ok", if the process can serve now, else NotReady with the reasons."""
        try:
            await self.store.check()
            self._store_fault = ""
        except StoreUnavailable as error:
            self._store_fault = error.detail
            raise NotReady(self._checks()) from None
        checks = self._checks()
        if any(checks.values()):
            raise NotReady(checks)
        return dict.fromkeys(checks, "ok")

    def _checks(self) -> dict[str, str]:
        """Why each check fails, if it does; of the store, what it said last."""
        faults = next(iter(self._counts.faults.values()), "")
        return {"store": self._store_fault, "logs": faults, **self._supervisor.checks()}

    def stats(self) -> dict[str, float]:
        """For metrics: what is loaded, log_lag, what `Counts` counts, and for each check `ready:NAME`, 1 or 0."""
        return {
            "loaded_learners": len(self._memory),
            "loaded_bytes": self._memory.bytes,
            "memory_limit": self.budget.limit,
            "flight_bytes": self.budget.flight,
            "memory_refusals": self.budget.refused,
            "log_lag": self._memory.lag,
            **{name: count for name, count in asdict(self._counts).items() if isinstance(count, int | float)},
            "store_errors": self.store.failures,
            **self.store.sizes(),
            "log_faults": len(self._counts.faults),
            "restarts": self._supervisor.restarts,
            **{f"ready:{name}": float(not reason) for name, reason in self._checks().items()},
        }


def write_pieces(learner: Learner, out: BinaryIO) -> None:
    """Write by write: of many at once a spool sees only at their end that they are too many for memory."""
    for piece in learners.pieces(learner):
        out.write(piece)
