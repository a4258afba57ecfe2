"""When the window of a prediction is over, appends its collected clicks, or its default reward, as one event.

Clicks, and parts of a reward, come one by one and join the record of their prediction; a `choice` without a reward gets
its default one. The record
names who made it and the truth so far:

    record   {"instance", "served", "version", "owner": ["learner", name], "truth": {...}} and the time at which it is due

Every replica sweeps. The append takes the record and expects it unchanged, so one of them wins, and clicks that come in the
same moment are either in the event or refused.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from feedrank.learners import reading
from feedrank.learners.instances import LARGEST, FeatureVector, ItemList
from feedrank.service.contract.events import Event
from feedrank.service.contract.faults import Conflict, NotFound, ServiceError, Unprocessable
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.contract.messages import (
    CLICKS,
    REWARD_PART,
    ErrorScope,
    encode,
    id_of,
    only,
    truth_digest,
)
from feedrank.service.contract.prediction_ids import predicted_at
from feedrank.service.contract.settings import Settings
from feedrank.service.store import Draft, Due, Missing, Stale, Store, StoreSignal

from .appending import unknown
from .learner_state import LoadedLearner
from .memory import Memory
from .subjects import ids_of
from .supervisor import Supervisor
from .writer import Writer

log = logging.getLogger(__name__)
EVERY = 1.0  # seconds between two looks
AT_ONCE = 256  # records of one look
LEARNER = "learner"
MOST_PARTS = 1_000  # of one reward
TASK = "sweeper"
Join = Callable[[JSON, FeatureVector | ItemList, JSON], JSON]  # spec, instance, record -> the truth so far
Sweep = Callable[
    [Due, str, bytes, JSON], Awaitable[None]
]  # what is due, its owner's name, its record, that read


class Sweeper:
    """Looks for records that are due, and has their owners append them: `owners["learner"]`, and others by their kind."""

    def __init__(
        self, store: Store, memory: Memory, writer: Writer, settings: Settings, supervisor: Supervisor
    ) -> None:
        self._store, self._memory, self._writer, self._settings = store, memory, writer, settings
        self.owners: dict[str, Sweep] = {LEARNER: self._append}
        self._supervisor = supervisor
        supervisor.keep(TASK, self._work)

    async def close(self) -> None:
        """Stop looking; what is due stays due."""
        await self._supervisor.stop(TASK)

    # Clicks

    async def clicks(self, name: str, request: Body) -> JSON:
        """Join clicks to a remembered prediction: `{"prediction_id", "clicks", "closes_at"}`, all clicks so far."""
        only(request, CLICKS)
        id = id_of(request, "prediction_id")
        if id is None or "clicks" not in request:
            raise Unprocessable.at("/prediction_id" if id is None else "/clicks", "missing field")
        clicks: Any = request["clicks"]

        def join(spec: JSON, parsed: FeatureVector | ItemList, record: JSON) -> JSON:
            reading.truth(spec, {"clicks": clicks}, parsed)
            so_far = record.get("truth", {}).get("clicks", [])
            return {"clicks": list(dict.fromkeys([*so_far, *clicks]))}

        return await self._join(name, id, join)

    async def rewards(self, name: str, request: Body) -> JSON:
        """Add a part to the reward of a remembered choice: `{"prediction_id", "reward", "closes_at"}`, the sum so far.

        A part has a name, and counts once however often it is sent.
        """
        only(request, REWARD_PART)
        id, part = id_of(request, "prediction_id"), id_of(request, "part")
        for field, value in (("prediction_id", id), ("part", part), ("reward", request.get("reward"))):
            if value is None:
                raise Unprocessable.at(f"/{field}", "missing field")
        reward = request["reward"]

        def join(spec: JSON, parsed: FeatureVector | ItemList, record: JSON) -> JSON:
            # Only the sum has to be within the range: what was given back is a part below 0.
            reading.truth({**spec, "range": [-LARGEST, LARGEST]}, {"reward": reward}, parsed)
            parts = record.setdefault("parts", {})
            if part not in parts and len(parts) >= MOST_PARTS:
                raise Unprocessable.at("/part", f"at most {MOST_PARTS} parts of one reward")
            if parts.setdefault(part, reward) != reward:
                raise Conflict(f"the part {part!r} was sent before with another reward")
            truth: JSON = {"reward": total_of(list(parts.values()))}
            reading.truth(spec, truth, parsed)
            return truth

        assert id is not None
        return await self._join(name, id, join)

    async def _join(self, name: str, id: str, join: Join) -> JSON:
        """Let something join the record of a prediction, which becomes one event with all of it."""
        async with self._memory.use(name) as learner:
            spec = learner.state.learner.spec
            while True:
                stored = await self._store.recall(learner.log, id)
                if stored is None:
                    raise await self._closed(learner, id)
                record = orjson.loads(stored)
                with ErrorScope():
                    truth = join(spec, reading.instance(spec, record["instance"]), record)
                record |= {"owner": [LEARNER, learner.entry.name], "truth": truth}
                closes = self._closes(learner, id, record)
                try:
                    await self._store.amend(learner.log, id, encode(record), stored, closes)
                except (Stale, Missing):
                    continue  # others came first: look again
                return {"prediction_id": id, **truth, "closes_at": closes}

    def _closes(self, learner: LoadedLearner, id: str, record: JSON) -> float:
        """When the window of a prediction is over; a record that expires before is not waited for."""
        wait = float(learner.state.learner.spec.get("wait", 600))
        made = predicted_at(learner.log, id) or float(record.get("at", time.time()))
        return made + min(wait, self._settings.prediction_ttl - EVERY)

    async def _closed(self, learner: LoadedLearner, id: str) -> ServiceError:
        if await self._store.find(learner.log, f"p:{id}") is None:
            return unknown(learner, id, self._settings.prediction_ttl)
        return Conflict(f"the window of the prediction {id!r} is over: its feedback is in the log")

    # Sweeping

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                while await self.sweep(time.time()) == AT_ONCE:
                    await asyncio.sleep(0)
            except (ServiceError, StoreSignal) as error:
                log.info("due predictions could not be listed: %s", error)

    async def sweep(self, now: float) -> int:
        """Append what is due now; how many records that were."""
        due = await self._store.due(now, AT_ONCE)
        for one in due:
            try:
                await self._sweep(one)
            except (ServiceError, StoreSignal) as error:
                log.warning("a due prediction of log %s is kept for later: %s", one.log, error)
        return len(due)

    async def _sweep(self, due: Due) -> None:
        stored = await self._store.recall(due.log, due.key)
        if stored is None:
            return
        record = orjson.loads(stored)
        kind, name = record["owner"]
        await self.owners[kind](due, name, stored, record)

    async def _append(self, due: Due, name: str, stored: bytes, record: JSON) -> None:
        async with self._memory.use(name) as learner:
            if learner.log != due.log:
                return  # the name was given away, and the log of the old one is being dropped
            id = due.key
            event = Event(record["truth"], record["instance"], record["served"], prediction_id=id)
            event.parsed = reading.instance(learner.state.learner.spec, record["instance"])
            digest = truth_digest(record["truth"])
            ids = (f"p:{id}", *ids_of(record.get("subject", "")))
            draft = Draft(event.body(), ids, digest, id, expects=stored)
            try:
                await self._writer.write(learner, event, draft)
            except (Conflict, NotFound):
                return  # more clicks came, or another replica was first


def total_of(parts: list[float | dict[str, float]]) -> float | dict[str, float]:
    """The sum of rewards, of slots slot by slot."""
    if not isinstance(parts[0], dict):
        return sum(part for part in parts if not isinstance(part, dict))
    total: dict[str, float] = {}
    for part in parts:
        if isinstance(part, dict):
            for slot, reward in part.items():
                total[slot] = total.get(slot, 0.0) + reward
    return total
