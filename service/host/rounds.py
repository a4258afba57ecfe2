"""Many rounds of one learner in order: what the single calls would reply, with one append for all the feedback.

    append   all events of a run, in order: that fixes their versions before anything is applied
    walk     in order, nobody else applying meanwhile: a prediction sees the events before it and none behind it
    keep     all predictions to be remembered, in one write

What a run cannot hold is done as a single call between two runs: batches, a wait for a version. If one event of a run
is refused, by the store or a limit, the run is done call by call, so that the others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ..errors import (
    Conflict,
    Gone,
    NotFound,
    ServiceError,
    StorageFull,
    StoreUnavailable,
    Unprocessable,
)
from ..store import Draft, Placed
from .events import Event
from .feedback import Feedback
from .memory import Memory
from .predict import Predict
from .resident import Resident

JSON = dict[str, Any]
Line = tuple[str, JSON]
Reply = JSON | ServiceError
ALONE = frozenset({"instances", "events", "min_version"})


class Rounds:
    """Called with a name and lines of `("predict" | "feedback", request)`."""

    def __init__(self, memory: Memory, predict: Predict, feedback: Feedback) -> None:
        self._memory = memory
        self._predict, self._feedback = predict, feedback

    async def __call__(self, name: str, lines: Sequence[Line]) -> list[Reply]:
        async with self._memory.use(name):
            replies: list[Reply] = []
        start = 0
        while start < len(lines):
            stop = start
            while stop < len(lines) and ALONE.isdisjoint(lines[stop][1]):
                stop += 1
            if stop > start:
                replies += await self._run(name, lines[start:stop])
            if stop < len(lines):
                replies.append(await self._single(name, lines[stop]))
            start = stop + 1
        return replies

    async def _single(self, name: str, line: Line) -> Reply:
        kind, request = line
        try:
            if kind == "predict":
                return await self._predict(name, request)
            return await self._feedback(name, request, None)
        except ServiceError as error:
            return error

    async def _run(self, name: str, lines: Sequence[Line]) -> list[Reply]:
        try:
            async with self._memory.use(name) as resident:
                # Once begun it is finished, even if the one who asked has gone.
                return await asyncio.shield(asyncio.create_task(self._together(resident, lines)))
        except (Conflict, NotFound, Gone, StorageFull, Unprocessable):
            pass  # One event was refused, hence all: each by itself finds the one.
        except ServiceError as error:
            return [error] * len(lines)
        return [await self._single(name, line) for line in lines]

    async def _together(self, resident: Resident, lines: Sequence[Line]) -> list[Reply]:
        records: dict[str, bytes] = {}
        resident.users += 1
        try:
            events, refused = await self._read(resident, lines)
            async with resident.order:
                placed = await self._append(resident, events, refused)
                replies = [
                    refused[i] if i in refused else await self._one(resident, line, placed.get(i), records)
                    for i, line in enumerate(lines)
                ]
        finally:
            resident.users -= 1
        try:
            await self._predict.keep(resident, records)
        except ServiceError as error:
            return [
                error if isinstance(reply, dict) and "prediction_id" in reply else reply for reply in replies
            ]
        return replies

    async def _read(
        self, resident: Resident, lines: Sequence[Line]
    ) -> tuple[dict[int, tuple[Event, Draft]], dict[int, ServiceError]]:
        """The events by line, and the refusals of those that are none."""
        events: dict[int, tuple[Event, Draft]] = {}
        refused: dict[int, ServiceError] = {}
        for i, (kind, request) in enumerate(lines):
            if kind == "feedback":
                try:
                    events[i] = await self._feedback.read(resident, request, None, "")
                except ServiceError as error:
                    refused[i] = error
        return events, refused

    async def _append(
        self,
        resident: Resident,
        events: dict[int, tuple[Event, Draft]],
        refused: dict[int, ServiceError],
    ) -> dict[int, tuple[Event, Placed]]:
        """Where the events stand in the log; without a store they are refused, and predictions go on."""
        if not events:
            return {}
        told, drafts = zip(*events.values(), strict=True)
        self._feedback.limit(resident, told)
        try:
            placed = await self._feedback.append(resident, told, drafts)
        except StoreUnavailable as error:
            refused.update(dict.fromkeys(events, error))
            return {}
        return dict(zip(events, zip(told, placed, strict=True), strict=True))

    async def _one(
        self, resident: Resident, line: Line, event: tuple[Event, Placed] | None, records: dict[str, bytes]
    ) -> Reply:
        try:
            if event is None:
                return await self._predict.one(resident, line[1], records, "")
            await resident.forward(event[1].version)
            return await self._feedback.tell(resident, *event)
        except ServiceError as error:
            return error
