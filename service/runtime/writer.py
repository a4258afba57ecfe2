"""An event becomes durable: append it once, apply everything up to it, reply with what it did the first time.

There is one way for all. What a caller brings is a chunk of steps: a single call is one step, so is a batch (all its
events or none), and the lines of a stream (streams.py) are as many steps, with predictions among them.

    append   all events of the chunks that wait, in one call of the store: that fixes their versions. If one step is
             refused, each is appended by itself, so that the others go on
    walk     in order, nobody else applying meanwhile: a prediction sees the events before it and none behind it
    keep     all predictions to be remembered, in one write
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from feedrank.learners import reading
from feedrank.learners.instances import FeatureVector
from feedrank.service.contract.faults import (
    Conflict,
    Gone,
    NotFound,
    ServiceError,
    StorageFull,
    StoreUnavailable,
    Unprocessable,
)
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.contract.messages import (
    FEEDBACK,
    ErrorScope,
    Event,
    batch_of,
    encode,
    id_of,
    instance_of,
    loads,
    only,
    predicted_at,
    served_of,
    truth_digest,
    truth_of,
)
from feedrank.service.contract.settings import Settings
from feedrank.service.store import Clash, Closed, Diverged, Draft, Missing, Placement, Stale, Store
from feedrank.service.store.shared import Batcher

from .folding import Counts, Pending
from .learner_state import LoadedLearner
from .memory import Memory, affordable, read_instance
from .predictor import Predictor, Records

TURN = 64  # events of a batch that are read at a time
HEAVIEST = 2**20  # of one append, in bytes and, by the weight of an event, in events
EVENT = 1_024  # what an event weighs beside its bytes
PLAIN = frozenset({"features", "label"})
Done = list[list[JSON] | ServiceError]  # what each step gave


@dataclass(slots=True)
class Step:
    """One thing to do: a prediction, or events that are written all or none. `placements` is where they are in the log."""

    predict: JSON | None = None
    events: Sequence[Event] = ()
    drafts: Sequence[Draft] = ()
    placements: Sequence[Placement] = ()
    error: ServiceError | None = None


@dataclass(slots=True)
class Chunk:
    """What one caller brings, in order."""

    learner: LoadedLearner
    steps: Sequence[Step]


def weigh(chunk: Chunk) -> int:
    """What a chunk adds to an append."""
    return sum([EVENT + len(draft.body) for step in chunk.steps for draft in step.drafts])


class Writer:
    """Called with a name, a request of the contract, and the header that stands for `feedback_id`, if any."""

    def __init__(
        self, store: Store, memory: Memory, predictor: Predictor, settings: Settings, counts: Counts
    ) -> None:
        self._store, self._memory, self._predictor = store, memory, predictor
        self._settings, self._counts = settings, counts
        self._commits: Batcher[Chunk, Done] = Batcher(self._commit, weigh=weigh, weight=HEAVIEST)

    async def close(self) -> None:
        """Finish what was begun."""
        await self._commits.close()

    async def __call__(self, name: str, request: Body, key: str | None = None) -> JSON:
        """Learn from one event, or from all of `{"events": [...]}` or none; `key` is another name for `feedback_id`.

        In a batch, `key` stands for the whole batch: event i takes the id `key/i` if it has no id of its own.
        """
        learner = await self._memory.take(name)
        try:
            if not (isinstance(request, Mapping) and "events" in request):
                event, draft = self.plain(learner, request, key) or await self.read(learner, request, key, "")
                del request  # as a prediction does
                (result,) = await self._write(learner, Step(events=(event,), drafts=(draft,)))
                return result
            events, drafts = [], []
            for i, one in enumerate(batch_of(request, "events", self._settings.max_batch)):
                own = None if key is None else f"{key}/{i}"
                event, draft = await self.read(learner, one, own, f"/events/{i}")
                events.append(event)
                drafts.append(draft)
                if i % TURN == TURN - 1:
                    await asyncio.sleep(0)  # Others get their turn.
            return {"results": await self._write(learner, Step(events=events, drafts=drafts))}
        finally:
            self._memory.leave(learner)

    # Reading

    async def read(
        self, learner: LoadedLearner, request: Any, key: str | None, where: str
    ) -> tuple[Event, Draft]:
        """What is to be appended, checked so that it can be applied."""
        core = learner.state.learner
        with ErrorScope(where):
            only(request, FEEDBACK)
            truth = truth_of(request)
            prediction_id, feedback_id = id_of(request, "prediction_id"), id_of(request, "feedback_id")
            if key is not None:
                key = id_of({"feedback_id": key}, "feedback_id")
                if where == "" and feedback_id not in (None, key):
                    raise Unprocessable.at("/feedback_id", "differs from the header Idempotency-Key")
                feedback_id = feedback_id or (key if prediction_id is None or where == "" else None)
            event = Event(truth, feedback_id=feedback_id, prediction_id=prediction_id)
            event.weight = reading.weight(request.get("weight", 1.0))
            ids = [
                f"{letter}:{id}"
                for letter, id in (("p", prediction_id), ("f", feedback_id))
                if id is not None
            ]
            instance = instance_of(request, self._settings)
            if prediction_id is None:
                event.instance = instance
                event.parsed = await read_instance(core.spec, instance)
                event.served = served_of(request, core.form)
            elif instance:
                raise Unprocessable.at(f"/{next(iter(instance))}", "is not taken beside a prediction_id")
            else:
                await self._recall(learner, prediction_id, event)
                event.show(served_of(request, core.form))
            if event.parsed is not None:
                core.check(event.parsed, truth, weight=event.weight, served=event.served)
                self._afford(learner, event)
            body = event.body()
            if event.parsed is not None:
                event.instance = None
            draft = Draft(body, tuple(ids), truth_digest(truth, event.weight) if ids else "", prediction_id)
        return event, draft

    def plain(
        self, learner: LoadedLearner, request: Any, key: str | None = None
    ) -> tuple[Event, Draft] | None:
        """What most events are, features and a label: what the kernel has read of them leaves little to refuse.

        The same as `read` gives; None leaves it to that.
        """
        if key is not None or not learner.any_label or type(request) is not dict or request.keys() != PLAIN:
            return None
        features, label = request["features"], request["label"]
        if type(features) is not FeatureVector or type(label) is not str or not label:
            return None
        size, raw = len(features), features.json
        if size > self._settings.max_features or raw is None:
            return None
        cost = reading.cost_of_size(learner.state.learner, 0, size, (label,), 0, 2)
        affordable(cost, self._settings)
        event = Event({"label": label}, parsed=features, expected=cost.seconds)
        # `Event.body` of it, the features as they came.
        body = b'{"truth":{"label":%b},"instance":{"features":%b}}' % (encode(label), raw)
        return event, Draft(body)

    def _afford(self, learner: LoadedLearner, event: Event) -> None:
        cost = learner.state.cost(event)
        affordable(cost, self._settings)
        event.expected = cost.seconds

    async def write(self, learner: LoadedLearner, event: Event, draft: Draft) -> JSON:
        """Append and apply one event that was read before. Once begun it is finished, even if who asked has gone."""
        (reply,) = await self._write(learner, Step(events=(event,), drafts=(draft,)))
        return reply

    async def _recall(self, learner: LoadedLearner, id: str, event: Event) -> None:
        """Give the event the instance and the decision of its prediction; neither if the prediction is used up."""
        stored = await self._store.recall(learner.log, id)
        if stored is not None:
            record = loads(stored)
            event.instance, event.served = record["instance"], record["served"]
            event.parsed = await read_instance(learner.state.learner.spec, event.instance)
        elif await self._store.find(learner.log, f"p:{id}") is None:
            raise self.unknown(learner, id)

    def unknown(self, learner: LoadedLearner, id: str) -> NotFound | Gone:
        at = predicted_at(learner.log, id)
        if at is not None and at + self._settings.prediction_ttl <= time.time():
            return Gone(f"the prediction {id!r} has expired: send the instance again with the truth")
        return NotFound(f"{learner.entry.name!r} has given no prediction {id!r}")

    # Writing

    def submit(self, learner: LoadedLearner, steps: Sequence[Step]) -> asyncio.Future[Done]:
        """Have these steps done, behind all that was submitted before. Once begun they are finished."""
        learner.users += 1
        return self._commits.submit(learner.log, Chunk(learner, steps))

    async def _write(self, learner: LoadedLearner, step: Step) -> list[JSON]:
        (done,) = await self.submit(learner, (step,))
        if isinstance(done, ServiceError):
            raise done
        return done

    async def _commit(self, _: str, chunks: Sequence[Chunk]) -> list[Done]:
        """What waits for one learner."""
        learner = chunks[0].learner
        records: Records = {}
        learner.appending += 1
        try:
            async with learner.order:
                await self._append(learner, [step for chunk in chunks for step in chunk.steps if step.events])
                replies = [
                    [
                        self._walk_now(learner, step, records) or await self._walk(learner, step, records)
                        for step in each.steps
                    ]
                    for each in chunks
                ]
        finally:
            learner.appending -= 1
            learner.users -= len(chunks)
            self._memory.keep_up(learner)
        try:
            if records:
                await self._predictor.keep(learner, records)
        except ServiceError as error:
            replies = [
                [
                    error if step.predict is not None else one
                    for step, one in zip(chunk.steps, each, strict=True)
                ]
                for chunk, each in zip(chunks, replies, strict=True)
            ]
        return replies

    async def _append(self, learner: LoadedLearner, steps: Sequence[Step]) -> None:
        """Where the events of the steps are in the log, or why they are not."""
        if not steps:
            return
        try:
            learner.check_growth([event for step in steps for event in step.events])
            placements = iter(await self.append(learner, [draft for step in steps for draft in step.drafts]))
        except (Conflict, NotFound, Gone, StorageFull, Unprocessable) as refused:
            if len(steps) == 1:
                steps[0].error = refused
            else:  # One was refused, hence all: each by itself shows the one.
                for step in steps:
                    await self._append(learner, [step])
        except ServiceError as error:
            for step in steps:
                step.error = error
        else:
            for step in steps:
                step.placements = [next(placements) for _ in step.drafts]
                for event, place in zip(step.events, step.placements, strict=True):
                    if place.fresh and place.version > learner.version:
                        event.at = place.at
                        learner.pending[place.version] = Pending(event, 0, place.chain, place.previous)

    async def append(self, learner: LoadedLearner, drafts: Sequence[Draft]) -> list[Placement]:
        """Append to the log; what the store says, as what it means for the caller. Needs the learner's `order`."""
        which = "event {}: " if len(drafts) > 1 else ""
        try:
            try:
                return await self._store.append(learner.log, drafts, learner.position)
            except Diverged as error:
                await learner.forward(await learner.diverged(error))
                return await self._store.append(learner.log, drafts, learner.position)
        except Clash as clash:
            raise Conflict(f"{which.format(clash.index)}its id was seen before with another truth") from None
        except Missing as missing:
            raise self.unknown(learner, drafts[missing.index].take or "") from None
        except Stale:
            raise Conflict("the prediction has changed meanwhile: send it again") from None
        except Closed:
            self._memory.gone(learner)
            raise NotFound(f"there is no {learner.title}") from None
        except StoreUnavailable:
            self._counts.store_errors += 1
            raise

    async def _walk(self, learner: LoadedLearner, step: Step, records: Records) -> list[JSON] | ServiceError:
        """The replies of one step, those of its events or that of its prediction."""
        if step.error is not None:
            return step.error
        try:
            if step.predict is not None:
                return [await self._predictor.one(learner, step.predict, records, "")]
            await learner.forward(max(place.version for place in step.placements))
            return [
                self._reply(learner, event, place, event.outcome or await learner.outcome(place.version))
                for event, place in zip(step.events, step.placements, strict=True)
            ]
        except ServiceError as error:
            return error

    def _walk_now(
        self, learner: LoadedLearner, step: Step, records: Records
    ) -> list[JSON] | ServiceError | None:
        """The same of a plain step that has to wait for nothing; None leaves it to `_walk`."""
        if step.error is not None or not learner.loaded:
            return step.error
        try:
            if step.predict is not None:
                reply = self._predictor.plain(learner, step.predict, records)
                return None if reply is None else [reply]
            if len(step.placements) == 1 and learner.hurry(step.placements[0].version):
                (event,) = step.events
                if event.outcome is not None:
                    return [self._reply(learner, event, step.placements[0], event.outcome)]
        except ServiceError as error:
            return error
        return None

    def _reply(self, learner: LoadedLearner, event: Event, place: Placement, outcome: JSON) -> JSON:
        reply = {"version": place.version, **outcome, "duplicate": not place.fresh}
        if not place.fresh:
            self._counts.duplicates += 1
        else:
            self._counts.feedback += 1
            self._counts.mistakes += reply["mistake"]
            self._counts.loss_total += reply["loss"]
            if not event.has_id:  # nobody can ask for it again: it need not be saved with the next snapshot
                learner.outcomes.pop(place.version, None)
        return reply
