"""The learners in memory: loaded on first use, kept up with what other processes write, the least recently used let go."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..errors import ServiceError
from ..store import Store
from .catalogue import KIND, Catalogue, Listed
from .loading import load_fold
from .resident import Counts, Resident
from .settings import HostSettings
from .work import Worker

log = logging.getLogger(__name__)
OVERHEAD = 16_384  # bytes of an empty learner with all that stands around it
THREADS = 4


class Use:
    """A learner that is being used. A class, because a generator would cost as much as all else on the way to it."""

    __slots__ = ("_memory", "_name", "_resident")

    def __init__(self, memory: Memory, name: str) -> None:
        self._memory, self._name = memory, name

    async def __aenter__(self) -> Resident:
        self._resident = await self._memory.take(self._name)
        return self._resident

    async def __aexit__(self, *_: object) -> None:
        self._memory.leave(self._resident)


class Memory:
    """Residents by their log, the most recently used last."""

    def __init__(self, store: Store, catalogue: Catalogue, settings: HostSettings, counts: Counts) -> None:
        self._store, self._catalogue, self._settings, self._counts = store, catalogue, settings, counts
        self._residents: OrderedDict[str, Resident] = OrderedDict()
        self._loading: dict[str, asyncio.Task[Resident]] = {}
        self._background: set[asyncio.Task[Any]] = set()
        self._executor = ThreadPoolExecutor(THREADS, "feedrank-work")
        self.bytes = 0
        self._listener = asyncio.create_task(self._listen())

    def __len__(self) -> int:
        return len(self._residents)

    @property
    def lag(self) -> int:
        """Events that are known to be in logs and not yet applied here."""
        return sum(resident.known - resident.version for resident in self._residents.values())

    def use(self, name: str) -> Use:
        """`async with memory.use(name) as resident`: the learner of a name or alias, in memory while it is used."""
        return Use(self, name)

    async def take(self, name: str) -> Resident:
        """See `use`."""
        listed = await self._catalogue.resolve(name)
        resident = self._residents.get(listed.log) or await self._load(listed)
        resident.users += 1
        return resident

    def leave(self, resident: Resident) -> None:
        """See `use`."""
        resident.users -= 1
        if resident.listed.log in self._residents:
            self._residents.move_to_end(resident.listed.log)
            self._weigh(resident)

    async def _load(self, listed: Listed) -> Resident:
        """Load once, however many ask at the same time."""
        task = self._loading.get(listed.log)
        if task is None:
            task = self._loading[listed.log] = asyncio.create_task(self._fold(listed))
            task.add_done_callback(lambda _: self._loading.pop(listed.log, None))
        return await asyncio.shield(task)

    async def _fold(self, listed: Listed) -> Resident:
        fold = await load_fold(self._store, listed)
        worker = Worker(self._executor)
        resident = Resident(listed, fold, self._store, self._settings, worker, self._counts)
        (head,) = await self._store.versions([listed.log])
        await resident.advance(head)
        self._residents[listed.log] = resident
        self._weigh(resident)
        return resident

    def _weigh(self, resident: Resident) -> None:
        """Bring the sum up to date and let the least recently used go while it is above the cap."""
        self.bytes += resident.bytes + OVERHEAD - resident.counted
        resident.counted = resident.bytes + OVERHEAD
        if self.bytes <= self._settings.memory:
            return
        for key in list(self._residents):
            old = self._residents[key]
            if old is not resident and not old.users:
                self.forget(key)
                self.spawn(old.close())
            if self.bytes <= self._settings.memory:
                return

    def forget(self, key: str) -> None:
        """Let a learner go without saving it."""
        resident = self._residents.pop(key, None)
        if resident is not None:
            self.bytes -= resident.counted

    def gone(self, resident: Resident) -> None:
        """Its log was dropped: read anew what its name stands for."""
        self.forget(resident.listed.log)
        self._catalogue.forget(resident.listed.name)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run in the background; `close` waits for it."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # What other processes write

    async def _listen(self) -> None:
        async for kind, name, version in self._store.changes():
            if kind == "log":
                self._heard(name, version)
            elif kind == "document":
                what, _, which = name.partition("/")
                if what == KIND:
                    self._catalogue.forget(which)
            elif kind == "lost":
                self._catalogue.doubt()
                self.spawn(self._sweep())

    def _heard(self, key: str, version: int) -> None:
        resident = self._residents.get(key)
        if resident is None:
            return
        if version == 0:
            self.gone(resident)
        elif version > resident.known:
            resident.known = version
            # A request that is appending applies what it wrote, and all before it, by itself.
            if not resident.appending and not resident.following:
                self.spawn(self._follow(resident))

    async def _follow(self, resident: Resident) -> None:
        resident.following = True
        try:
            while resident.version < resident.known:
                await resident.advance(resident.known)
        except ServiceError as error:
            self._counts.store_errors += 1
            log.warning("%s could not follow its log: %s", resident.listed.name, error)
        finally:
            resident.following = False

    async def _sweep(self) -> None:
        """Look at every log again: messages may have been missed."""
        keys = list(self._residents)
        try:
            versions = await self._store.versions(keys)
        except ServiceError as error:
            log.warning("logs could not be looked at: %s", error)
            return
        for key, version in zip(keys, versions, strict=True):
            resident = self._residents.get(key)
            if resident is not None and (version > 0 or resident.version > 0):
                self._heard(key, version)

    async def close(self) -> None:
        """Save what is in memory and wait for all that runs."""
        self._listener.cancel()
        await asyncio.gather(self._listener, return_exceptions=True)
        for resident in self._residents.values():
            self.spawn(resident.close(least=1))
        while self._background:
            for result in await asyncio.gather(*self._background, return_exceptions=True):
                if isinstance(result, BaseException):
                    log.error("something in the background failed", exc_info=result)
        self._residents.clear()
        self._executor.shutdown()
