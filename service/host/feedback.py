"""Feedback: read and check, append once, apply everything up to it, reply with what it did the first time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import orjson

from feedrank.learners import instances

from ..errors import (
    Conflict,
    Gone,
    NotFound,
    ServiceError,
    StorageFull,
    StoreUnavailable,
    Unprocessable,
)
from ..gather import Gather
from ..store import Clash, Closed, Draft, Missing, Placed, Store, Trimmed
from . import tickets
from .events import Event, digest
from .memory import Memory
from .requests import FEEDBACK, RETRACT, id_of, instance_of, known, many, pointed, served_of, truth_of
from .resident import Counts, Resident, growth
from .settings import HostSettings

JSON = dict[str, Any]
Waiting = tuple[Resident, Sequence[Event], Sequence[Draft]]
TURN = 64  # events of a batch that are read at a time


class Feedback:
    """Called with a name, a request of the contract, and the header that stands for `feedback_id`, if any."""

    def __init__(self, store: Store, memory: Memory, settings: HostSettings, counts: Counts) -> None:
        self._store, self._memory, self._settings, self._counts = store, memory, settings, counts
        self._commits: Gather[Waiting, list[JSON]] = Gather(self._commit)

    async def close(self) -> None:
        """Finish what was begun."""
        await self._commits.close()

    async def __call__(self, name: str, request: Mapping[str, Any], key: str | None) -> JSON:
        async with self._memory.use(name) as resident:
            if not (isinstance(request, Mapping) and "events" in request):
                event, draft = await self.read(resident, request, key, "")
                del request  # as a prediction does
                self.limit(resident, [event])
                (result,) = await self._learn(resident, [event], [draft])
                return result
            asked = many(request, "events", self._settings.max_batch)
            pairs = []
            for i, one in enumerate(asked):
                pairs.append(
                    await self.read(resident, one, None if key is None else f"{key}/{i}", f"/events/{i}")
                )
                if i % TURN == TURN - 1:
                    await asyncio.sleep(0)  # Others get their turn.
            events, drafts = zip(*pairs, strict=True)
            self.limit(resident, events)
            return {"results": await self._learn(resident, events, drafts)}

    # Reading

    async def read(
        self, resident: Resident, request: Any, key: str | None, where: str
    ) -> tuple[Event, Draft]:
        """What is to be appended, checked so that it can be applied."""
        with pointed(where):
            known(request, FEEDBACK)
            truth = truth_of(request)
            prediction_id, feedback_id = id_of(request, "prediction_id"), id_of(request, "feedback_id")
            if key is not None:
                key = id_of({"feedback_id": key}, "feedback_id")
                if where == "" and feedback_id not in (None, key):
                    raise Unprocessable.at("/feedback_id", "differs from the header Idempotency-Key")
                feedback_id = feedback_id or (key if prediction_id is None or where == "" else None)
            event = Event(truth, feedback_id=feedback_id, prediction_id=prediction_id)
            ids = [
                f"{letter}:{id}"
                for letter, id in (("p", prediction_id), ("f", feedback_id))
                if id is not None
            ]
            instance = instance_of(request, self._settings)
            if prediction_id is None:
                event.instance = instance
                event.found = instances.read(instance, resident.learner.kind)
                event.served = served_of(request, resident.learner.task)
            elif instance:
                raise Unprocessable.at(f"/{next(iter(instance))}", "is not taken beside a prediction_id")
            else:
                await self._recall(resident, prediction_id, event)
                event.show(served_of(request, resident.learner.task))
            if event.found is not None:
                resident.learner.check(event.found, truth)
            body = event.body()
            if event.found is not None:
                event.instance = None
            draft = Draft(body, tuple(ids), digest(truth) if ids else "", prediction_id)
        return event, draft

    async def _recall(self, resident: Resident, id: str, event: Event) -> None:
        """Give the event the instance and the decision of its prediction; neither if the prediction is used up."""
        record = await self._store.recall(resident.listed.log, id)
        if record is not None:
            told = orjson.loads(record)
            event.instance, event.served = told["instance"], told["served"]
            event.found = instances.read(event.instance, resident.learner.kind)
        elif await self._store.find(resident.listed.log, f"p:{id}") is None:
            raise self._unknown(resident, id)

    def _unknown(self, resident: Resident, id: str) -> NotFound | Gone:
        given = tickets.given_at(resident.listed.log, id)
        if given is not None and given + self._settings.prediction_ttl <= time.time():
            return Gone(f"the prediction {id!r} has expired: send the instance again with the truth")
        return NotFound(f"{resident.listed.name!r} has given no prediction {id!r}")

    def limit(self, resident: Resident, events: Sequence[Event]) -> None:
        """Refuse what would grow the learner beyond its limits; names are only counted where one is near."""
        learner, settings = resident.learner, self._settings
        by_label = learner.kind == "features"
        labels = {name for event in events for name in named(event.truth)} if by_label else set()
        features = sum(len(event.found.names) for event in events if event.found is not None)
        if (
            len(learner.labels) + len(labels) <= settings.max_labels
            and resident.bytes + growth(learner, features, len(labels)) <= settings.max_learner_bytes
        ):
            return
        labels.difference_update(learner.labels)
        if len(learner.labels) + len(labels) > settings.max_labels:
            raise Unprocessable.at("", f"a learner has at most {settings.max_labels} labels")
        known_ones = learner.features
        new = {
            name for event in events if event.found for name in event.found.names if name not in known_ones
        }
        if (new or labels) and resident.bytes + growth(
            learner, len(new), len(labels)
        ) > settings.max_learner_bytes:
            raise StorageFull(
                f"{resident.listed.name!r} takes {resident.bytes} bytes of memory and may not grow beyond "
                f"{settings.max_learner_bytes}; feedback on known features and labels is still taken"
            )

    # Writing

    async def _learn(
        self, resident: Resident, events: Sequence[Event], drafts: Sequence[Draft]
    ) -> list[JSON]:
        """Append and apply. Once begun it is finished, even if the one who asked has gone."""
        resident.users += 1
        return await self._commits.run(resident.listed.log, (resident, events, drafts))

    async def _commit(self, _: str, waiting: Sequence[Waiting]) -> list[list[JSON] | Exception]:
        """What waits for one learner."""
        resident = waiting[0][0]
        try:
            return await self._together(resident, [(events, drafts) for _, events, drafts in waiting])
        finally:
            resident.users -= len(waiting)

    async def _together(
        self, resident: Resident, requests: Sequence[tuple[Sequence[Event], Sequence[Draft]]]
    ) -> list[list[JSON] | Exception]:
        """One append for all that these requests bring; the replies to each, or why there are none."""
        events = [event for each, _ in requests for event in each]
        drafts = [draft for _, each in requests for draft in each]
        try:
            placed = await self.append(resident, events, drafts)
        except (Conflict, NotFound, Gone) as refused:
            if len(requests) == 1:
                return [refused]
            # One was refused, hence all: each by itself finds the one.
            return [result for one in requests for result in await self._together(resident, [one])]
        except StoreUnavailable as error:
            return [error] * len(requests)
        try:
            await resident.advance(max(place.version for place in placed))
        except ServiceError as error:
            return [error] * len(requests)
        places = iter(placed)
        return [await self._replies(resident, each, islice(places, len(each))) for each, _ in requests]

    async def _replies(
        self, resident: Resident, events: Sequence[Event], placed: Iterable[Placed]
    ) -> list[JSON] | Exception:
        try:
            return [await self.tell(resident, *pair) for pair in zip(events, placed, strict=True)]
        except ServiceError as error:
            return error

    async def tell(self, resident: Resident, event: Event, place: Placed) -> JSON:
        """The reply for an applied event; counts it."""
        outcome = event.outcome or await resident.outcome(place.version)
        result = {"version": place.version, **outcome, "duplicate": not place.fresh}
        self._count(result)
        return result

    async def append(
        self, resident: Resident, events: Sequence[Event], drafts: Sequence[Draft]
    ) -> list[Placed]:
        """Append, and put the fresh events where `advance` finds them."""
        resident.appending += 1
        try:
            placed = await self._store.append(resident.listed.log, drafts)
        except Clash as clash:
            which = f"event {clash.index}: " if len(drafts) > 1 else ""
            raise Conflict(f"{which}its id was seen before with another truth") from None
        except Missing as missing:
            raise self._unknown(resident, drafts[missing.index].take or "") from None
        except Closed:
            self._memory.gone(resident)
            raise NotFound(f"there is no learner {resident.listed.name!r}") from None
        except StoreUnavailable:
            self._counts.store_errors += 1
            raise
        finally:
            resident.appending -= 1
        for event, place in zip(events, placed, strict=True):
            if place.fresh and place.version > resident.version:
                resident.pending[place.version] = event
        return placed

    # Withdrawing

    async def retract(self, name: str, request: Mapping[str, Any]) -> JSON:
        """See `Host.retract`."""
        known(request, frozenset(RETRACT))
        given = {field: value for field in RETRACT if (value := id_of(request, field)) is not None}
        if len(given) != 1:
            raise Unprocessable.at("", "give one id: feedback_id or prediction_id")
        ((field, id),) = given.items()
        async with self._memory.use(name) as resident:
            found = await self._store.find(resident.listed.log, f"{field[0]}:{id}")
            if found is None:
                raise NotFound(f"no event of {resident.listed.name!r} is known by this {field}")
            event = Event(
                withdraws=found[0],
                feedback_id=given.get("feedback_id"),
                prediction_id=given.get("prediction_id"),
            )
            return await asyncio.shield(asyncio.create_task(self._withdraw(resident, event)))

    async def _withdraw(self, resident: Resident, event: Event) -> JSON:
        resident.users += 1
        try:
            place = await self._mark(resident, event)
            await resident.advance(place.version)
        finally:
            resident.users -= 1
        return {"version": place.version, "withdrawn": event.withdraws, "duplicate": not place.fresh}

    async def _mark(self, resident: Resident, event: Event) -> Placed:
        """Append the withdrawal, naming the snapshot to fold from; one that was let go meanwhile is chosen anew."""
        tried = -1
        while True:
            head = await self._store.head(resident.listed.log)
            bases = [v for v in (0, *head.snapshots) if v < event.withdraws and head.floor <= v + 1]
            base = max(bases, default=0)
            draft = Draft(event.body(), ids=(f"w:{event.withdraws}",), marks=event.withdraws, base=base)
            try:
                (place,) = await self.append(resident, [event], [draft])
            except Trimmed:
                if base == tried:
                    raise Conflict(
                        "the log no longer reaches back to this event: it cannot be withdrawn"
                    ) from None
                tried = base
            else:
                return place

    def _count(self, result: JSON) -> None:
        if result["duplicate"]:
            self._counts.duplicates += 1
            return
        self._counts.feedback += 1
        self._counts.mistakes += result["mistake"]
        self._counts.loss_total += result["loss"]


def named(truth: JSON | None) -> Any:
    """The labels of a truth."""
    told = truth or {}
    return told.get("labels") or told.get("relevance") or ([told["label"]] if "label" in told else ())
