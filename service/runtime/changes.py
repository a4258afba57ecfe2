"""Keeps loaded learners up with what other processes write.

A message of the store only points at a log. Should messages be missed without anybody noticing, the positions of all loaded
logs are compared with the store's every `COMPARED` seconds all the same.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from feedrank.service.contract.faults import ServiceError
from feedrank.service.store import Diverged, Store

from .catalogue import KIND, Catalogue
from .learner_state import LoadedLearner
from .supervisor import Supervisor

if TYPE_CHECKING:
    from .memory import Memory

log = logging.getLogger(__name__)
COMPARED = 30.0  # seconds between two looks at the positions of all logs
SILENT = 15.0  # seconds without an answer of the store, from which a listener is taken for deaf
TASKS = ("listener", "positions")


class Changes:
    """What is heard of the store, for one memory."""

    def __init__(self, memory: Memory, store: Store, catalogue: Catalogue, supervisor: Supervisor) -> None:
        self._memory, self._store, self._catalogue = memory, store, catalogue
        self._supervisor = supervisor
        supervisor.keep("listener", self._listen)
        supervisor.check("listener", self._deaf)
        supervisor.keep("positions", self._compare_all)

    async def close(self) -> None:
        """Hear of nothing more."""
        await self._supervisor.stop(*TASKS)

    def _deaf(self) -> str:
        silent = self._store.silence()
        return "" if silent <= SILENT else f"the store has not answered on its channel for {silent:.0f} s"

    async def _listen(self) -> None:
        async for kind, name, version in self._store.changes():
            if kind == "log":
                self._heard(name, version)
            elif kind == "watched":
                self._memory.spawn(self._catch_up(name))
            elif kind == "document" and name.startswith(f"{KIND}/"):
                self._catalogue.invalidate(name.partition("/")[2])
            elif kind == "lost":
                self._catalogue.invalidate_all()
                self._memory.spawn(self._look_again())

    async def _compare_all(self) -> None:
        """Where only one process writes there is nothing to compare."""
        while self._store.shared:
            await asyncio.sleep(COMPARED)
            await self._look_again()

    def _heard(self, key: str, version: int) -> None:
        memory = self._memory
        if (learner := memory.loaded(key)) is None:
            return
        if version == 0:
            memory.gone(learner)
        elif version - learner.asked > learner.every and not learner.users and not learner.unsettled:
            # Others teach it and nobody asks here: loading it costs less than following it did.
            memory.forget(key)
        elif version > learner.newest:
            learner.newest = version
            memory.keep_up(learner)

    async def _catch_up(self, key: str) -> None:
        """Hear of what was written to a log before it was watched."""
        try:
            ((version, _),) = await self._store.positions([key])
        except ServiceError as error:
            log.info("the log %s could not be read: %s", key, error)
            return
        if version:
            self._heard(key, version)

    async def _look_again(self) -> None:
        """Look at every log: messages may have been missed, and it may have another history now."""
        keys = self._memory.keys()
        try:
            positions = await self._store.positions(keys)
            for key, position in zip(keys, positions, strict=True):
                learner = self._memory.loaded(key)
                if learner is None or position == learner.position:
                    continue
                if position.version > learner.version:
                    self._heard(key, position.version)
                    if (
                        self._memory.loaded(key) is learner
                    ):  # it may have been heard of before, and not followed
                        self._memory.keep_up(learner)
                elif learner.loaded:
                    async with learner.order:
                        await self._compare(learner)
        except ServiceError as error:
            log.info("logs could not be read: %s", error)

    async def _compare(self, learner: LoadedLearner) -> None:
        """A log that is not ahead of its state: was it dropped, or has it another history?"""
        if (await self._store.head(learner.log)).closed:
            self._memory.gone(learner)
            return
        try:
            await self._store.read(learner.log, learner.version, 1, learner.chain or None)
        except Diverged as error:
            await learner.forward(await learner.diverged(error))
