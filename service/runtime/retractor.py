"""Retractions: a log entry that undoes an earlier one. The learner becomes what it would be without it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from feedrank.service.contract.events import Event
from feedrank.service.contract.faults import Conflict, NotFound, Unprocessable
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.contract.messages import RETRACT, ErrorScope, batch_of, id_of, only
from feedrank.service.store import Draft, Placement, Store, Trimmed

from .amending import Amender, state_of
from .folding import E, S
from .follower import Follower
from .learner_state import LoadedLearner
from .memory import Memory
from .writer import Writer


class Retractor:
    """Called with a name and `{"feedback_id"}` or `{"prediction_id"}`, or with many of these in `events`."""

    def __init__(self, store: Store, memory: Memory, writer: Writer, most: int) -> None:
        self._store, self._memory, self._writer, self._most = store, memory, writer, most
        self._amend = Amender(store, memory)

    async def __call__(self, name: str, request: Body) -> JSON:
        """`{"version", "retracted", "duplicate", "state"}`: the version of the retraction, and that of the event.

        `state` is `done`, or `pending` while the learner is being folded again in the background. Of `events` all are
        retracted or none, the learner is folded again once, and the reply has `results` and the `state` of all.
        """
        async with self._memory.use(name) as learner:
            events = await events_to_retract(self._store, learner.log, learner.title, request, self._most)
            results = await self._shielded(learner, events)
        return retract_reply(request, results)

    async def those_learned(self, name: str, feedback_ids: Sequence[str]) -> bool:
        """Retract those of these events that the learner has; whether it is still being folded again."""
        async with self._memory.use(name) as learner:
            events = []
            for id in feedback_ids:
                if (entry := await self._store.find(learner.log, f"f:{id}")) is not None:
                    events.append(Event(retracts=entry[0], feedback_id=id))
            results = await self._shielded(learner, events) if events else []
        return any(result["state"] == "pending" for result in results)

    async def _shielded(self, learner: LoadedLearner, events: Sequence[Event]) -> list[JSON]:
        """Once begun it is finished, even if the one who asked has gone."""
        return await asyncio.shield(asyncio.create_task(self._retract(learner, events)))

    async def _retract(self, learner: LoadedLearner, events: Sequence[Event]) -> list[JSON]:
        append = partial(self._writer.append, learner)
        bodies = {event.retracts: event.body() for event in events}
        places = await self._amend(
            learner, lambda: append_retractions(self._store, learner.log, bodies, append)
        )
        of = dict(zip(bodies, places, strict=True))
        return [retraction(learner, event.retracts, of[event.retracts]) for event in events]


def retraction(follower: Follower[S, E], version: int, place: Placement) -> JSON:
    """What is said of the retraction of the event at `version`."""
    return {
        "version": place.version,
        "retracted": version,
        "duplicate": not place.fresh,
        "state": state_of(follower, place),
    }


def retract_reply(request: Body, results: Sequence[JSON]) -> JSON:
    """The reply to one retraction, or to many: `results`, and the `state` of the whole."""
    if "events" not in request:
        return results[0]
    pending = any(result["state"] == "pending" for result in results)
    return {"results": list(results), "state": "pending" if pending else "done"}


async def events_to_retract(store: Store, log: str, title: str, request: Body, most: int) -> list[Event]:
    """What a request wants to be retracted, by its versions in the log; NotFound if one of it is not there."""
    batch = batch_of(request, "events", most) if "events" in request else [request]
    events = []
    for number, one in enumerate(batch):
        with ErrorScope(f"/events/{number}" if "events" in request else ""):
            field, id = event_id(one)
        entry = await store.find(log, f"{field[0]}:{id}")
        if entry is None:
            raise no_event(title, field)
        ids: dict[str, Any] = {field: id}
        events.append(Event(retracts=entry[0], **ids))
    return events


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
