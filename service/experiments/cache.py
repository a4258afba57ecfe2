"""Experiments in memory: loaded on first use, and let go when nobody has asked for them for a while or others need the
room.

One document an experiment, `{"log", "definition", "specs"}`, never changed. A log is named by chance, so a name that is
used again has nothing of its past.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import orjson

from feedrank.service.contract.faults import NotFound
from feedrank.service.runtime import Host
from feedrank.service.runtime.folding import Counts
from feedrank.service.runtime.memory import Worker
from feedrank.service.store import Document

from . import plan as plans
from .loaded import LoadedExperiment

KIND = "experiment"
IDLE = 900.0  # seconds after which an experiment that nobody asks for leaves memory
TIDIED = 1.0  # seconds between two looks at who may leave
ROOM = 8  # experiments may take one part in so many of what learners may


class ExperimentUse:
    """An experiment that is being used; a class, because a generator costs as much as a small prediction."""

    __slots__ = ("_cache", "_name")

    def __init__(self, cache: ExperimentCache, name: str) -> None:
        self._cache, self._name = cache, name

    async def __aenter__(self) -> LoadedExperiment:
        return await self._cache.take(self._name)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self._cache.leave(self._name)


class ExperimentCache:
    """The experiments of a host that are in memory."""

    def __init__(self, host: Host) -> None:
        self._host, self._store = host, host.store
        self._live: OrderedDict[str, LoadedExperiment] = OrderedDict()
        self._users: dict[str, int] = {}
        self._tidied = 0.0
        self._executor = ThreadPoolExecutor(1, "feedrank-experiments")
        self._counts = Counts()

    async def close(self) -> None:
        """Save what is in memory."""
        for live in self._live.values():
            await live.close(least=1)
        self._live.clear()
        self._executor.shutdown()

    @property
    def loaded(self) -> list[str]:
        """The names of those in memory, the least recently used first."""
        return list(self._live)

    def forget(self, name: str) -> None:
        """It is being deleted."""
        self._live.pop(name, None)

    async def document(self, name: str) -> Document:
        """How an experiment is stored; NotFound if there is none."""
        document = await self._store.get(KIND, name)
        if document is None:
            self._live.pop(name, None)
            raise NotFound(f"there is no experiment {name!r}")
        return document

    def use(self, name: str) -> ExperimentUse:
        """`async with self.use(name) as live`: the experiment, in memory while it is used."""
        return ExperimentUse(self, name)

    async def take(self, name: str) -> LoadedExperiment:
        """See `ExperimentUse`."""
        self._users[name] = self._users.get(name, 0) + 1
        try:
            live = self._live.get(name)
            if live is None or await live.gone():
                live = await self._load(name)
        except BaseException:
            await self.leave(name)
            raise
        live.used = time.monotonic()
        if name in self._live:  # it may have been deleted meanwhile
            self._live.move_to_end(name)
        return live

    async def leave(self, name: str) -> None:
        """See `ExperimentUse`."""
        users = self._users[name] = self._users[name] - 1
        if users == 0:
            del self._users[name]
        if time.monotonic() - self._tidied >= TIDIED:
            self._tidied = time.monotonic()
            await self._tidy()

    async def _load(self, name: str) -> LoadedExperiment:
        value = orjson.loads((await self.document(name)).value)
        live = self._live.get(name)
        if live is None or live.log != value["log"]:
            plan = plans.read(name, value["definition"], value["specs"])
            around = self._store, Worker(self._executor), self._host.settings, self._counts
            live = self._live[name] = LoadedExperiment(name, value["log"], plan, value["specs"], *around)
        await live.ready()
        return live

    async def _tidy(self) -> None:
        """Let those go that nobody uses: idle for long, or the least recently used while all take too much room."""
        now, room = time.monotonic(), self._host.budget.limit // ROOM
        taken = sum(live.state.nbytes for live in self._live.values())
        leaving = []  # all are chosen before the first is waited for: others may tidy meanwhile
        for name, live in list(self._live.items()):
            if name in self._users:
                continue
            if taken <= room and now - live.used < IDLE:
                break
            taken -= live.state.nbytes
            leaving.append(self._live.pop(name))
        for live in leaving:
            await live.close(least=1)
