"""An event becomes durable: append it once, apply everything up to it, reply with what it did the first time.

There is one way for all. What a caller brings is a chunk of steps: a single call is one step, so is a batch (all its
events or none), and the lines of a stream (streams.py) are as many steps, with predictions among them.

    append   all events of the chunks that wait, in one call of the store: that fixes their versions. If one step is
             refused, each is appended by itself, so that the others go on
    walk     in order, nobody else applying meanwhile: a prediction sees the events before it and none behind it
    keep     all predictions to be remembered, in one write

While some chunks are walked, the next ones are appended, unless predictions stand in them: the log's order decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from feedrank.learners import reading
from feedrank.learners.instances import FeatureVector
from feedrank.service.contract.faults import (
    Conflict,
    Gone,
    NotFound,
    ServiceError,
    StorageFull,
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
    served_of,
    truth_digest,
    truth_of,
)
from feedrank.service.contract.settings import Settings
from feedrank.service.store import Closed, Diverged, Draft, Placement, Position, Store, StoreSignal
from feedrank.service.store.shared import Batcher, Waiter

from .folding import Counts, Pending
from .learner_state import LoadedLearner
from .memory import Memory, affordable, read_instance
from .plain_rounds import PlainRounds
from .predictor import Predictor, Records
from .steps import Chunk, Done, Step, refusal, unknown

TURN = 64  # events of a batch that are read at a time
HEAVIEST = 2**20  # of one append, in bytes and, by the weight of an event, in events
EVENT = 1_024  # what an event weighs beside its bytes
PLAIN = frozenset({"features", "label"})


def weigh(chunk: Chunk) -> int:
    """What a chunk adds to an append."""
    return sum([EVENT + len(draft.body) for step in chunk.steps for draft in step.drafts])


def last_of(learner: LoadedLearner) -> Position | None:
    """Where the log is, as far as the learner knows: behind what waits to be applied."""
    for version in reversed(learner.pending):
        return Position(version, learner.pending[version].chain)
    return learner.position


class Writer:
    """Called with a name, a request of the contract, and the header that stands for `feedback_id`, if any."""

    def __init__(
        self, store: Store, memory: Memory, predictor: Predictor, settings: Settings, counts: Counts
    ) -> None:
        self._store, self._memory, self._predictor = store, memory, predictor
        self._settings, self._counts = settings, counts
        self._commits: Batcher[Chunk, Done] = Batcher(
            self._commit, ahead=self._append_ahead, weigh=weigh, weight=HEAVIEST
        )

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
                plain = None if key is not None else self.plain(learner, request)
                event, draft = plain or await self.read(learner, request, key, "")
                del request  # as a prediction does
                return await self.write(learner, event, draft)
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
            weight = reading.weight(request.get("weight", 1.0))
            event = Event(truth, feedback_id=feedback_id, prediction_id=prediction_id, weight=weight)
            ids = [
                f"{kind}:{id}" for kind, id in (("p", prediction_id), ("f", feedback_id)) if id is not None
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
                affordable(cost := learner.state.cost(event), self._settings)
                event.expected = cost.seconds
            digest = truth_digest(truth, event.weight) if ids else ""
            draft = Draft(event.body(), tuple(ids), digest, prediction_id)
            event.instance = event.instance if event.parsed is None else None
        return event, draft

    def plain(self, learner: LoadedLearner, request: Any) -> tuple[Event, Draft] | None:
        """What most events are, features and a label: what the kernel has read of them leaves little to refuse.

        The same as `read` gives; None leaves it to that.
        """
        if not learner.any_label or type(request) is not dict or request.keys() != PLAIN:
            return None
        features, label = request["features"], request["label"]
        if type(features) is not FeatureVector or type(label) is not str or not label:
            return None
        size, raw = len(features), features.json
        cost = learner.state.vector_cost(size)
        if raw is None or size > self._settings.max_features or not self._predictor.affords(cost):
            return None
        event = Event({"label": label}, parsed=features, expected=cost.seconds)
        # `Event.body` of it, the features as they came.
        body = b'{"truth":{"label":%b},"instance":{"features":%b}}' % (encode(label), raw)
        return event, Draft(body)

    async def write(self, learner: LoadedLearner, event: Event, draft: Draft) -> JSON:
        """Append and apply one event that was read before. Once begun it is finished, even if who asked has gone."""
        return (await self._write(learner, Step(events=(event,), drafts=(draft,))))[0]

    async def _recall(self, learner: LoadedLearner, id: str, event: Event) -> None:
        """Give the event the instance and the decision of its prediction; neither if the prediction is used up."""
        if (stored := await self._store.recall(learner.log, id)) is not None:
            record = loads(stored)
            event.instance, event.served = record["instance"], record["served"]
            event.parsed = await read_instance(learner.state.learner.spec, event.instance)
        elif await self._store.find(learner.log, f"p:{id}") is None:
            raise unknown(learner, id, self._settings.prediction_ttl)

    # Writing

    def offer(self, learner: LoadedLearner, event: Event, draft: Draft, waiter: Waiter[Done]) -> None:
        """Have what `plain` gave written, and tell `waiter` what came of it."""
        step = Step(events=(event,), drafts=(draft,))
        self._commits.add(learner.log, self._chunk(learner, step), waiter)

    def submit(self, learner: LoadedLearner, steps: Sequence[Step]) -> asyncio.Future[Done]:
        """Have these steps done, behind all that was submitted before. Once begun they are finished."""
        return self._commits.submit(learner.log, self._chunk(learner, *steps))

    def _chunk(self, learner: LoadedLearner, *steps: Step) -> Chunk:
        learner.users += 1
        learner.appending += 1
        return Chunk(learner, steps)

    async def _write(self, learner: LoadedLearner, step: Step) -> list[JSON]:
        (done,) = await self.submit(learner, (step,))
        if isinstance(done, ServiceError):
            raise done
        return done

    async def _append_ahead(self, _: str, chunks: Sequence[Chunk]) -> bool:
        """Append the events of chunks that predict nothing, whoever applies others meanwhile."""
        learner, steps = chunks[0].learner, [step for chunk in chunks for step in chunk.steps]
        if any(step.predict is not None for step in steps):
            return False
        try:
            await self._append(learner, steps, ordered=False)
        except Diverged:  # left to who has the learner's `order`
            return False
        except BaseException:
            self._leave(learner, len(chunks))
            raise
        return True

    async def _commit(self, _: str, chunks: Sequence[Chunk]) -> list[Done]:
        """What waits for one learner."""
        learner, records = chunks[0].learner, Records()
        steps = [step for chunk in chunks for step in chunk.steps]
        try:
            async with learner.order:
                await self._append(learner, steps, ordered=True)
                done = await self._walk_all(learner, steps, records)
        finally:
            self._leave(learner, len(chunks))
        try:
            if records:
                await self._predictor.keep(learner, records)
        except ServiceError as error:
            done = [error if step.predict is not None else one for step, one in zip(steps, done, strict=True)]
        replies = iter(done)
        return [list(islice(replies, len(chunk.steps))) for chunk in chunks]

    def _leave(self, learner: LoadedLearner, chunks: int) -> None:
        learner.appending -= chunks
        learner.users -= chunks
        self._memory.keep_up(learner)

    async def _append(self, learner: LoadedLearner, steps: Sequence[Step], *, ordered: bool) -> None:
        """Where the events of the steps are in the log, or why they are not, for those that are not there yet."""
        steps = [step for step in steps if step.events and not step.placements and step.error is None]
        if not steps:
            return
        try:
            learner.check_growth([event for step in steps for event in step.events])
            drafts = [draft for step in steps for draft in step.drafts]
            placements = iter(await self.append(learner, drafts, ordered=ordered))
        except (Conflict, NotFound, Gone, StorageFull, Unprocessable) as refused:
            if len(steps) == 1:
                steps[0].error = refused
            else:  # One was refused, hence all: each by itself shows the one.
                for step in steps:
                    await self._append(learner, [step], ordered=ordered)
        except ServiceError as error:
            for step in steps:
                step.error = error
        else:
            for step in steps:
                step.placements = list(islice(placements, len(step.drafts)))
                for event, place in zip(step.events, step.placements, strict=True):
                    if place.fresh and place.version > learner.version:
                        event.at = place.at
                        learner.pending[place.version] = Pending(event, 0, place.chain, place.previous)

    async def append(
        self, learner: LoadedLearner, drafts: Sequence[Draft], *, ordered: bool = True
    ) -> list[Placement]:
        """Append to the log; what the store says, as what it means for the caller.

        Another history than the learner's is Diverged, but for who has the learner's `order`: it is then folded again.
        """
        try:
            try:
                return await self._store.append(learner.log, drafts, last_of(learner))
            except Diverged as error:
                if not ordered:
                    raise
                await learner.forward(await learner.diverged(error))
                return await self._store.append(learner.log, drafts, last_of(learner))
        except StoreSignal as signal:
            if isinstance(signal, Closed):
                self._memory.gone(learner)
            raise refusal(signal, learner, drafts, self._settings.prediction_ttl) or signal from None

    async def _walk_all(self, learner: LoadedLearner, steps: Sequence[Step], records: Records) -> Done:
        done: Done = []
        while len(done) < len(steps):
            await learner.worker.pause()
            if not (len(steps) > 1 and learner.loaded and self._walk_now(learner, steps, done, records)):
                done.append(await self._walk(learner, steps[len(done)], records))
        return done

    async def _walk(self, learner: LoadedLearner, step: Step, records: Records) -> list[JSON] | ServiceError:
        """The replies of one step, those of its events or that of its prediction."""
        if step.error is not None:
            return step.error
        try:
            if step.predict is not None:
                return [await self._predictor.one(learner, step.predict, records, "")]
            last = max(place.version for place in step.placements)
            if not (learner.loaded and learner.hurry(last)):
                await learner.forward(last)
            return [
                self._reply(learner, event, place, event.outcome or await learner.outcome(place.version))
                for event, place in zip(step.events, step.placements, strict=True)
            ]
        except ServiceError as error:
            return error

    def _walk_now(self, learner: LoadedLearner, steps: Sequence[Step], done: Done, records: Records) -> bool:
        """Plain steps, behind those that are done, that have to wait for nothing; whether there were any."""
        rounds, begun = PlainRounds(learner, self._predictor, records), len(done)
        for step in islice(steps, begun, None):
            if step.error is not None or not rounds.add(step.predict, step.events, step.placements):
                break
        failed = rounds.run()
        for step, gave in zip(islice(steps, begun, None), rounds.done, strict=False):
            if step.predict is None:
                done.append([self._reply(learner, step.events[0], step.placements[0], gave)])
            else:
                done.append([gave])
        done += [] if failed is None else [failed]
        return len(done) > begun

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
