"""Teaches the arms an experiment's events, each exactly once, under an id made from the log and the version."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from feedrank.service.contract.faults import NotFound, ServiceError, StoreUnavailable, TimedOut
from feedrank.service.contract.json_types import JSON
from feedrank.service.runtime import Host

from . import records
from .loaded import LoadedExperiment

HEALED = 64  # doubtful events taught again at once


class Teaching:
    """Between an experiment's log and its arms."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def teach(
        self, live: LoadedExperiment, events: Sequence[tuple[int, JSON]]
    ) -> list[dict[str, JSON]]:
        """Every arm (or the one that served) learns each event once, however often this is called: replies by arm."""
        lessons: dict[str, list[tuple[int, JSON]]] = {}
        for index, (version, event) in enumerate(events):
            if event.get("truth") and "record" in event:
                for name, lesson in records.lessons(live, version, event):
                    lessons.setdefault(name, []).append((index, lesson))
        # All arms are waited for, also if one fails: none is left half taught behind the reply.
        done = await asyncio.gather(
            *(self._teach(name, [one for _, one in own]) for name, own in lessons.items()),
            return_exceptions=True,
        )
        taught: list[dict[str, JSON]] = [{} for _ in events]
        for (name, own), replies in zip(lessons.items(), done, strict=True):
            if isinstance(replies, BaseException):
                raise replies
            for (index, _), reply in zip(own, replies, strict=True):
                taught[index][name] = reply
        return taught

    async def _teach(self, name: str, lessons: Sequence[JSON]) -> list[JSON]:
        """The replies of one arm, in order; its problem where it refuses."""
        try:
            if len(lessons) == 1:
                return [await self._host.feedback(name, lessons[0])]
            reply = await self._host.feedback(name, {"events": lessons})
        except (StoreUnavailable, TimedOut):
            raise
        except ServiceError as error:
            # An arm that was deleted, or is full, must not keep the others from learning.
            if len(lessons) == 1:
                return [{"problem": error.problem()}]
            return [reply for lesson in lessons for reply in await self._teach(name, [lesson])]
        results: list[JSON] = reply["results"]
        return results

    async def heal(self, live: LoadedExperiment) -> None:
        """Teach again what may not have been taught: an arm that knows it takes it for a repeat."""
        versions = live.old_doubts(HEALED)
        if versions:
            events = [
                (version, event) for version in versions if (event := await live.event(version)) is not None
            ]
            await self.teach(live, events)
            for version in versions:
                live.doubtful.pop(version, None)

    async def untaught(self, live: LoadedExperiment, versions: Sequence[int]) -> bool:
        """Have every arm retract what it learned of these events, at once; whether one is still folding again."""
        ids, pending = [records.lesson_id(live, version) for version in versions], False
        for name in (*live.plan.arms, *live.plan.shadow):
            with suppress(NotFound):  # the arm itself is gone
                pending = await self._host.retract.those_learned(name, ids) or pending
        return pending
