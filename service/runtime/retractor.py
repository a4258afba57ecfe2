"""Retractions: a log entry that undoes an earlier one. The learner becomes what it would be without it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from feedrank.service.contract.faults import Conflict, NotFound, Unprocessable
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.contract.messages import RETRACT, Event, id_of, only
from feedrank.service.store import Draft, Placement, Store, Trimmed

from .amending import Amender, state_of
from .learner_state import LoadedLearner
from .memory import Memory
from .writer import Writer


class Retractor:
    """Called with a name and `{"feedback_id"}` or `{"prediction_id"}`."""

    def __init__(self, store: Store, memory: Memory, writer: Writer) -> None:
        self._store, self._memory, self._writer = store, memory, writer
        self._amend = Amender(store, memory)

    async def __call__(self, name: str, request: Body) -> JSON:
        """`{"version", "retracted", "duplicate", "state"}`: the version of the retraction, and that of the event.

        `state` is `done`, or `pending` while the learner is being folded again in the background.
        """
        field, id = event_id(request)
        async with self._memory.use(name) as learner:
            entry = await self._store.find(learner.log, f"{field[0]}:{id}")
            if entry is None:
                raise NotFound(f"{learner.title} has no event with this {field}")
            ids: dict[str, Any] = {field: id}
            event = Event(retracts=entry[0], **ids)
            return await asyncio.shield(asyncio.create_task(self._retract(learner, event)))

    async def _retract(self, learner: LoadedLearner, event: Event) -> JSON:
        append = partial(self._writer.append, learner)
        place = await self._amend(
            learner,
            lambda: append_retraction(self._store, learner.log, event.retracts, event.body(), append),
        )
        return {
            "version": place.version,
            "retracted": event.retracts,
            "duplicate": not place.fresh,
            "state": state_of(learner, place),
        }


def event_id(request: Body) -> tuple[str, str]:
    """(field, id) of the event that a request wants to be retracted."""
    only(request, RETRACT)
    ids = {field: value for field in sorted(RETRACT) if (value := id_of(request, field)) is not None}
    if len(ids) != 1:
        raise Unprocessable.at("", "one of `feedback_id` and `prediction_id` is required")
    ((field, id),) = ids.items()
    return field, id


async def append_retraction(
    store: Store,
    log: str,
    version: int,
    body: bytes,
    append: Callable[[list[Draft]], Awaitable[list[Placement]]],
) -> Placement:
    """Append the retraction of a version with the snapshot to fold from; one that was dropped meanwhile is chosen anew."""
    tried = -1
    while True:
        head = await store.head(log)
        base = max((v for v in (0, *head.snapshots) if v < version and head.floor <= v + 1), default=0)
        try:
            (place,) = await append([Draft(body, ids=(f"w:{version}",), retracts=version, base=base)])
        except Trimmed:
            if base == tried:
                raise Conflict(
                    "the log no longer reaches back to this event: it cannot be retracted"
                ) from None
            tried = base
        else:
            return place
