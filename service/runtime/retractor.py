"""Retractions: a log entry that undoes an earlier one. The learner becomes what it would be without it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from feedrank.service.contract.events import Event
from feedrank.service.contract.faults import Conflict, NotFound, Unprocessable
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.contract.messages import RETRACT, id_of, only
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
                raise no_event(learner.title, field)
            ids: dict[str, Any] = {field: id}
            event = Event(retracts=entry[0], **ids)
            return await asyncio.shield(asyncio.create_task(self._retract(learner, event)))

    async def _retract(self, learner: LoadedLearner, event: Event) -> JSON:
        append = partial(self._writer.append, learner)
        (place,) = await self._amend(
            learner,
            lambda: append_retractions(self._store, learner.log, {event.retracts: event.body()}, append),
        )
        return {
            "version": place.version,
            "retracted": event.retracts,
            "duplicate": not place.fresh,
            "state": state_of(learner, place),
        }


def no_event(title: str, field: str) -> NotFound:
    """The log of this title has no event with this id."""
    return NotFound(f"{title} has no event with this {field}")


def event_id(request: Body) -> tuple[str, str]:
    """(field, id) of the event that a request wants to be retracted."""
    only(request, RETRACT)
    ids = {field: value for field in sorted(RETRACT) if (value := id_of(request, field)) is not None}
    if len(ids) != 1:
        raise Unprocessable.at("", "one of `feedback_id` and `prediction_id` is required")
    ((field, id),) = ids.items()
    return field, id


async def append_retractions(
    store: Store,
    log: str,
    bodies: Mapping[int, bytes],
    append: Callable[[list[Draft]], Awaitable[list[Placement]]],
) -> list[Placement]:
    """Append what retracts these versions, with the snapshot to fold from; chosen anew if it is dropped meanwhile."""
    first, tried = min(bodies), -1
    while True:
        head = await store.head(log)
        base = max((v for v in (0, *head.snapshots) if v < first and head.floor <= v + 1), default=0)
        try:
            return await append(
                [
                    Draft(body, ids=(f"w:{version}",), retracts=version, base=base)
                    for version, body in bodies.items()
                ]
            )
        except Trimmed:
            if base == tried:
                raise Conflict(
                    "the log no longer reaches back to this event: it cannot be retracted"
                ) from None
            tried = base
