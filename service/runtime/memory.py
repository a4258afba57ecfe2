"""Loaded learners: kept up to date with other processes, unloaded when memory is short; limits on the cost of a call."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from feedrank.service.contract.budget import Budget
from feedrank.service.contract.faults import NotFound, ServiceError
from feedrank.service.contract.headroom import HEADROOM
from feedrank.service.contract.settings import Settings
from feedrank.service.store import Store

from .at_once import waits
from .catalogue import CatalogEntry, Catalogue
from .changes import Changes
from .folding import LATER, Counts, Later, background_failed, finished, timed
from .learner_state import LoadedLearner
from .supervisor import Supervisor

T = TypeVar("T")
log = logging.getLogger(__name__)
OVERHEAD = 16_384  # bytes of an empty learner with all that stands around it
THREADS = 4
SAVING = 32  # learners saved at a time at the end: a store has only so many connections
SHORT = 0.002  # seconds that the loop may be kept busy
FIRST = 2e-7  # seconds for each feature, before anything was measured
SURE = 5  # an estimate of so many times `SHORT` is believed against what smaller pieces took
DOUBTS = 8  # pieces of work timed by the processor after one that took long by the clock
TURN = 0.002  # seconds of short work after which others get their turn


class Memory:
    """Loaded learners by their log, the most recently used last.

    A learner is here before its log is read: what is written meanwhile is heard of. No log is here twice, and who has one
    counts as a user from the same moment on, so that it is not let go.
    """

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        settings: Settings,
        counts: Counts,
        supervisor: Supervisor,
        budget: Budget,
    ) -> None:
        self._store, self._catalogue, self._settings, self._counts = store, catalogue, settings, counts
        self.budget = budget
        self._learners: OrderedDict[str, LoadedLearner] = OrderedDict()
        self._background: set[asyncio.Task[object]] = set()
        self.executor = ThreadPoolExecutor(THREADS, "feedrank-work")
        self.bytes = 0
        self._changes = Changes(self, store, catalogue, supervisor)

    def __len__(self) -> int:
        return len(self._learners)

    def loaded(self, key: str) -> LoadedLearner | None:
        """The learner of a log, if it is here."""
        return self._learners.get(key)

    def keys(self) -> list[str]:
        """The logs of all that are here."""
        return list(self._learners)

    @property
    def lag(self) -> int:
        """Events that are known to be in logs and not yet applied here."""
        return sum(learner.newest - learner.version for learner in self._learners.values())

    @asynccontextmanager
    async def use(self, name: str) -> AsyncIterator[LoadedLearner]:
        """`async with memory.use(name) as learner`: the learner of a name or alias, in memory while it is used."""
        learner = await self.take(name)
        try:
            yield learner
        finally:
            self.leave(learner)

    async def take(self, name: str) -> LoadedLearner:
        """See `use`."""
        HEADROOM.admit()
        entry = self._catalogue.live.get(name) or await self._catalogue.resolve(name)
        learner = self._learners.get(entry.log) or self._register(entry)
        learner.users += 1
        if not learner.loaded:
            try:
                await waits("loading")
                await learner.ready()
            except BaseException as error:
                self.leave(learner)
                if isinstance(error, NotFound):
                    self.gone(learner)
                raise
        return learner

    def leave(self, learner: LoadedLearner) -> None:
        """See `use`."""
        learner.users -= 1
        if self._learners.get(learner.log) is not learner:
            return
        if learner.loaded:
            learner.asked = learner.state.learner.version
            self._learners.move_to_end(learner.log)
            self._weigh(learner)
        elif not learner.users:
            self.forget(learner.log)

    def _register(self, entry: CatalogEntry) -> LoadedLearner:
        self._make_room(None)
        if self.bytes > self.budget.limit:  # all that is left is in use
            raise self.budget.full()
        learner = LoadedLearner(entry, self._store, Worker(self.executor), self._settings, self._counts)
        self._learners[entry.log] = learner
        self._store.watch(entry.log)
        return learner

    def _weigh(self, learner: LoadedLearner) -> None:
        """Bring the sum up to date and let others go while it is above the cap."""
        taken = learner.state.nbytes + OVERHEAD
        self.bytes += taken - learner.counted
        learner.counted = taken
        if self.bytes > self.budget.learners:
            self._make_room(learner)

    def _make_room(self, wanted: LoadedLearner | None) -> None:
        """Let the least recently used go, but for who is wanted or at work, while all take more than they may."""
        for key in list(self._learners) if self.bytes > self.budget.learners else ():
            old = self._learners[key]
            if old is not wanted and not old.users and not old.unsettled:
                self.forget(key)
                self.spawn(old.close())
            if self.bytes <= self.budget.learners:
                return

    def forget(self, key: str) -> None:
        """Let a learner go without saving it."""
        if (learner := self._learners.pop(key, None)) is not None:
            self.bytes -= learner.counted
            self._store.unwatch(key)

    def gone(self, learner: LoadedLearner) -> None:
        """Its log was dropped: read anew what its name stands for."""
        self.forget(learner.log)
        self._catalogue.forget(learner.entry.name)

    def spawn(self, work: Coroutine[object, object, object]) -> None:
        """Run in the background; `close` waits for it."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def keep_up(self, learner: LoadedLearner) -> None:
        """Follow what was heard of, unless somebody is about to: who appends applies all before it by itself."""
        ready = learner.loaded and not (learner.appending or learner.following)
        if ready and learner.version < learner.newest:
            self.spawn(self._follow(learner))

    async def _follow(self, learner: LoadedLearner) -> None:
        learner.following = True
        try:
            while learner.version < learner.newest:
                await learner.advance(learner.newest)
        except ServiceError as error:
            log.info("%s could not follow its log: %s", learner.title, error)
        finally:
            learner.following = False

    async def close(self) -> None:
        """Save what is in memory and wait for all that runs."""
        await self._changes.close()
        gate = asyncio.Semaphore(SAVING)

        async def save(learner: LoadedLearner) -> None:
            async with gate:
                await learner.close(least=1)

        for learner in self._learners.values():
            self.spawn(save(learner))
        while self._background:
            for result in await asyncio.gather(*self._background, return_exceptions=True):
                if isinstance(result, BaseException):
                    background_failed(result)
        self._learners.clear()
        self.executor.shutdown()


class Worker:
    """Runs the work of one learner, one piece at a time, so that nobody reads weights while they change.

    On the event loop if it is short, since a thread costs more, else in a thread. How long it will take is learned from the
    time it took, in proportion to the size of the instance; the first of its kind, and what the core expects to be long
    whatever was measured before, by the estimate of the core. What is short by the clock is short; what is not may have
    waited for others: then the processor's time decides, which can cost more to ask for than short work takes.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._lock = asyncio.Lock()
        self._rates: dict[str, float] = {}
        self._busy, self._doubts = 0.0, 0

    async def run(self, kind: str, size: int, work: Callable[[], T], expected: float = 0.0) -> T:
        """See `Runner`; `expected` decides alone until something was measured."""
        if not self._is_short(kind, size, expected):
            async with self._lock:
                running = asyncio.get_running_loop().run_in_executor(self._executor, timed, work)
                result, took = await finished(running)
                self._learn(kind, size, took)
                return result
        await self.pause()
        if self._lock.locked():
            async with self._lock:
                return self._now(kind, size, work)
        return self._now(kind, size, work)

    def _is_short(self, kind: str, size: int, expected: float) -> bool:
        rate = self._rates.get(kind)
        if rate is None:
            return FIRST * size <= SHORT and expected <= SHORT
        return rate * size <= SHORT and expected <= SURE * SHORT

    async def pause(self) -> None:
        """See `Runner`."""
        if self._busy > TURN:
            self._busy = 0.0
            await asyncio.sleep(0)

    def turned(self) -> None:
        """See `Runner`."""
        self._busy = 0.0

    def room(self, kind: str) -> int:
        """See `Runner`."""
        return 0 if self._busy > TURN or self._lock.locked() else int(SHORT / self._rates.get(kind, FIRST))

    def attempt(
        self, kind: str, size: int, expected: float, work: Callable[..., T], *arguments: object
    ) -> T | Later:
        """See `Runner`."""
        if self._busy > TURN or self._lock.locked() or not self._is_short(kind, size, expected):
            return LATER
        return self._now(kind, size, work, *arguments)

    def _now(self, kind: str, size: int, work: Callable[..., T], *arguments: object) -> T:
        if self._doubts:
            self._doubts -= 1
            result, took = timed(work, *arguments)
        else:
            start = time.perf_counter()
            result = work(*arguments)
            took = time.perf_counter() - start
            if took > SHORT:  # long, or the machine was busy: the next ones are timed by the processor
                self._doubts, self._busy = DOUBTS, self._busy + took
                return result
        self._busy += took
        self._learn(kind, size, took)
        return result

    def _learn(self, kind: str, size: int, took: float) -> None:
        rate = self._rates.get(kind, FIRST)
        # One that took unusually long (arrays that grew) must not send the next ones to threads;
        # work that is always long gets there after three.
        each = took / size if size > 1 else took
        self._rates[kind] = 0.8 * rate + 0.2 * (each if each < 30 * rate else 30 * rate)
