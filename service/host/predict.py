"""Predicting: read, decide, remember, reply."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from feedrank.learners import instances
from feedrank.learners.results import Prediction

from ..errors import StoreUnavailable
from ..gather import Gather
from ..store import Store
from . import tickets
from .events import encode
from .memory import Memory
from .requests import OPTIONS, PREDICT, SHARED, flag, instance_of, known, many, pointed, whole
from .resident import Counts, Resident
from .settings import HostSettings

JSON = dict[str, Any]


class Predict:
    """Called with a name and a request of the contract."""

    def __init__(self, store: Store, memory: Memory, settings: HostSettings, counts: Counts) -> None:
        self._store, self._memory, self._settings, self._counts = store, memory, settings, counts
        self._records: Gather[dict[str, bytes], None] = Gather(self._remember)

    async def close(self) -> None:
        """Finish what was begun."""
        await self._records.close()

    async def __call__(self, name: str, request: Mapping[str, Any]) -> JSON:
        async with self._memory.use(name) as resident:
            records: dict[str, bytes] = {}
            if isinstance(request, Mapping) and "instances" in request:
                asked = many(request, "instances", self._settings.max_batch, SHARED)
                told = [
                    await self.one(resident, one, records, f"/instances/{i}") for i, one in enumerate(asked)
                ]
                reply: JSON = {"predictions": told}
            else:
                reply = await self.one(resident, request, records, "")
            # Hundreds of small parts each, held by all who wait, would fill the processor's cache.
            del request
            await self.keep(resident, records)
            return reply

    async def keep(self, resident: Resident, records: dict[str, bytes]) -> None:
        """Have the store remember these predictions."""
        if records:
            await self._records.run(resident.listed.log, records)

    async def _remember(self, log: str, waiting: Sequence[dict[str, bytes]]) -> list[None]:
        """One write for all that waits for one learner."""
        records = {id: record for each in waiting for id, record in each.items()}
        try:
            await self._store.remember(log, records, self._settings.prediction_ttl)
        except StoreUnavailable:
            self._counts.store_errors += 1
            raise
        return [None] * len(waiting)

    async def one(self, resident: Resident, request: Any, records: dict[str, bytes], where: str) -> JSON:
        """The reply; if it is to be remembered, its record joins `records`."""
        with pointed(where):
            known(request, PREDICT)
            instance = instance_of(request, self._settings)
            found = instances.read(instance, resident.learner.kind)
            remember = flag(request, "remember", True)
            flag(request, "explain", False)
            if least := whole(request, "min_version"):
                await resident.wait(least)
            options = {option: request[option] for option in OPTIONS if option in request}
            size = len(found.names) * len(getattr(found, "ids", "1"))

            def decide() -> tuple[int, Prediction]:
                fold = resident.fold
                return fold.version, fold.learner.predict(found, **options)

            version, prediction = await resident.worker.run("predict", size, decide)
            self._counts.predictions += 1
            reply: JSON = {"learner": resident.listed.name, "version": version, **prediction.to_json()}
            if not remember:
                return reply
            record = encode({"instance": instance, "served": prediction.served(), "version": version})
        id = tickets.make(resident.listed.log, time.time())
        records[id] = record
        return {"prediction_id": id, **reply}
