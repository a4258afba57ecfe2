"""An event becomes durable: append it once, apply everything up to it, reply with what it did the first time.

There is one way for all. What a caller brings is a chunk of steps: a single call is one step, so is a batch (all its
events or none), and the lines of a stream (streams.py) are as many steps, with questions among them.

    append   all events of the chunks that wait, in one call of the store: that fixes their versions. If one step is
             refused, each is appended by itself, so that the others go on
    walk     in order, nobody else applying meanwhile: a question sees the events before it and none behind it; what is
             at hand and short is one piece of work, and what has to be waited for is waited for in its place
    keep     all predictions to be remembered, in one write

While some chunks are walked, the next ones are appended, unless questions stand in them: the log's order decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from feedrank.learners.errors import InputError
from feedrank.service.contract.events import Event
from feedrank.service.contract.faults import (
    Conflict,
    Gone,
    NotFound,
    ServiceError,
    StorageFull,
    Unprocessable,
)
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.contract.messages import batch_of, no_object, placed
from feedrank.service.contract.settings import Settings
from feedrank.service.store import Closed, Diverged, Draft, Placement, Store
from feedrank.service.store.shared import Batcher, Waiter

from .appending import append, hand_over
from .applying import Run
from .at_once import waits
from .feedback import FeedbackReader
from .folding import Counts
from .learner_state import LoadedLearner
from .memory import Memory
from .predictor import Predictor, Records
from .replies import OBJECTS, ReplyForm, ranking_json
from .steps import Chunk, Step, replies_of, steps_of, weigh

TURN = 64  # events of a batch that are read at a time
HEAVIEST = 2**20  # of one append, in bytes and, by the weight of an event, in events
T = TypeVar("T")


def single_reply(form: ReplyForm[T], steps: Sequence[Step]) -> T:
    """The reply to one event."""
    return form.one(replies_of(steps[0])[0])


def batch_reply(form: ReplyForm[T], steps: Sequence[Step]) -> T:
    """The reply to the events of one batch."""
    return form.many("results", [form.part(reply) for reply in replies_of(steps[0])])


def all_steps(steps: Sequence[Step]) -> Sequence[Step]:
    """For who looks at each."""
    return steps


class Writer:
    """Called with a name, a request of the contract, and the header that stands for `feedback_id`, if any."""

    def __init__(
        self, store: Store, memory: Memory, predictor: Predictor, settings: Settings, counts: Counts
    ) -> None:
        self._store, self._memory, self._predictor = store, memory, predictor
        self._settings, self._counts = settings, counts
        self.read = FeedbackReader(store, settings)
        self._commits: Batcher[Chunk, Any] = Batcher(
            self._commit, ahead=self._append_ahead, weigh=weigh, weight=HEAVIEST
        )

    async def close(self) -> None:
        """Finish what was begun."""
        await self._commits.close()

    async def __call__(self, name: str, request: Body, key: str | None = None) -> JSON:
        """Learn from one event, or from all of `{"events": [...]}` or none; `key` is another name for `feedback_id`.

        In a batch, `key` stands for the whole batch: event i takes the id `key/i` if it has no id of its own.
        """
        return await self.replied(name, request, OBJECTS, key)

    async def replied(self, name: str, request: Body, form: ReplyForm[T], key: str | None = None) -> T:
        """The same, the reply in another form."""
        reply: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        begun = self.offer(name, request, reply, form, key)
        del request  # as a prediction does
        await begun
        return await reply

    async def offer(
        self, name: str, request: Body, waiter: Waiter[T], form: ReplyForm[T], key: str | None = None
    ) -> None:
        """The same; `waiter` gets the reply when the events are durable and applied. Raises what is refused."""
        learner = await self._memory.take(name)
        try:
            learner.worker.turned()
            if type(request) is not dict and not isinstance(request, Mapping):
                raise no_object()
            if "events" in request:
                step, made = await self._read_batch(learner, request, key), partial(batch_reply, form)
            else:
                event, draft = await self.read(learner, request, key)
                step, made = Step(events=(event,), drafts=(draft,)), partial(single_reply, form)
        except BaseException:
            self._memory.leave(learner)
            raise
        self._hand_over(Chunk(learner, (step,), made), waiter)

    async def _read_batch(self, learner: LoadedLearner, request: Body, key: str | None) -> Step:
        events, drafts = [], []
        for i, one in enumerate(batch_of(request, "events", self._settings.max_batch)):
            own = None if key is None else f"{key}/{i}"
            event, draft = await self.read(learner, one, own, f"/events/{i}")
            events.append(event)
            drafts.append(draft)
            if i % TURN == TURN - 1:
                await waits("batch")
                await asyncio.sleep(0)  # Others get their turn.
        return Step(events=events, drafts=drafts)

    async def write(self, learner: LoadedLearner, event: Event, draft: Draft) -> JSON:
        """Append and apply one event that was read before. Once begun it is finished, even if who asked has gone."""
        learner.users += 1
        (step,) = await self.submit(learner, (Step(events=(event,), drafts=(draft,)),))
        return replies_of(step)[0]

    def submit(self, learner: LoadedLearner, steps: Sequence[Step]) -> asyncio.Future[Sequence[Step]]:
        """Have these steps done, behind all that was submitted before. Once begun they are finished.

        The caller's use of the learner ends with them.
        """
        done: asyncio.Future[Sequence[Step]] = asyncio.get_running_loop().create_future()
        self._hand_over(Chunk(learner, steps, all_steps), done)
        return done

    def _hand_over(self, chunk: Chunk, waiter: Waiter[Any]) -> None:
        chunk.learner.appending += 1
        self._commits.add(chunk.learner.log, chunk, waiter)

    async def _append_ahead(self, _: str, chunks: Sequence[Chunk]) -> bool:
        """Append the events of chunks that ask nothing, whoever applies others meanwhile."""
        learner, steps = chunks[0].learner, steps_of(chunks)
        for step in steps:
            if step.question is not None:
                return False
        try:
            await self._append(learner, steps, ordered=False)
        except Diverged:  # left to who has the learner's `order`
            return False
        except BaseException:
            self._leave(learner, len(chunks))
            raise
        return True

    async def _commit(self, _: str, chunks: Sequence[Chunk]) -> list[object]:
        """What waits for one learner."""
        learner, records = chunks[0].learner, Records()
        steps = steps_of(chunks)
        try:
            async with learner.order:
                await self._append(learner, steps, ordered=True)
                await self._walk(learner, steps, records)
        finally:
            self._leave(learner, len(chunks))
        if records:
            try:
                await self._predictor.keep(learner, records)
            except ServiceError as error:
                for step in steps:
                    if step.question is not None:
                        step.error = error
        results: list[object] = []
        for chunk in chunks:
            try:
                results.append(chunk.form(chunk.steps))
            except Exception as error:
                results.append(error)
        return results

    def _leave(self, learner: LoadedLearner, chunks: int) -> None:
        learner.appending -= chunks
        learner.users -= chunks - 1
        self._memory.leave(learner)
        self._memory.keep_up(learner)

    async def _append(self, learner: LoadedLearner, steps: Sequence[Step], *, ordered: bool) -> None:
        """Where the events of the steps are in the log, or why they are not, for those that are not there yet."""
        waiting: list[Step] = []
        events: list[Event] = []
        drafts: list[Draft] = []
        for step in steps:
            if step.events and not step.placements and step.error is None:
                waiting.append(step)
                events += step.events
                drafts += step.drafts
        if not waiting:
            return
        steps = waiting
        try:
            learner.check_growth(events)
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
                for place in step.placements:
                    step.last = max(step.last, place.version)
                hand_over(learner, step.events, step.placements)

    async def append(
        self, learner: LoadedLearner, drafts: Sequence[Draft], *, ordered: bool = True
    ) -> list[Placement]:
        """See `appending.append`; a learner that is gone is let go."""
        try:
            return await append(self._store, learner, drafts, self._settings.prediction_ttl, ordered=ordered)
        except NotFound as error:
            if isinstance(error.__cause__, Closed):
                self._memory.gone(learner)
            raise

    async def _walk(self, learner: LoadedLearner, steps: Sequence[Step], records: Records) -> None:
        """Give each step its replies, or its error, in order."""
        asks, at = False, 0
        for step in steps:
            asks = asks or step.question is not None
        while at < len(steps):
            await learner.worker.pause()
            at = await self._settle(learner, steps, at)
            if at == len(steps):
                return
            try:
                if not (learner.loaded and self._do_ready(learner, steps, at, records, asks)):
                    await self._wait_for(learner, steps[at], records)
            except ServiceError as error:
                at = await self._settle(learner, steps, at)
                if at < len(steps):
                    steps[at].error = error

    def _do_ready(
        self, learner: LoadedLearner, steps: Sequence[Step], at: int, records: Records, asks: bool
    ) -> bool:
        """Do what is at hand, from the step `at` on, as much as is short; whether that was anything."""
        run = Run(learner, "round" if asks else "learn")
        for step in islice(steps, at, None):
            if step.error is not None:
                continue
            if (question := step.question) is not None:
                if not run.ask(question.size, question.cost.seconds, self._answer, learner, step, records):
                    break
                continue
            while run.version < step.last and run.event():
                pass
            if run.version < step.last:
                break
        return run.done()

    async def _wait_for(self, learner: LoadedLearner, step: Step, records: Records) -> None:
        """Do a step that is long, or whose events are not at hand."""
        if (question := step.question) is None:
            await learner.forward(step.last)
            return
        await learner.worker.run(
            "predict", question.size, lambda: self._answer(learner, step, records), question.cost.seconds
        )

    def _answer(self, learner: LoadedLearner, step: Step, records: Records) -> None:
        assert step.question is not None
        try:
            step.replies = (self._predictor.answer(learner, step.question, records, ranking_json),)
            self._counts.predictions += 1
        except InputError as error:
            step.error = placed(error)
        except Exception as error:  # what one asks does not fail the others
            step.error = error

    async def _settle(self, learner: LoadedLearner, steps: Sequence[Step], at: int) -> int:
        """Give the steps that are done, from `at` on, their replies; the first that is not."""
        version = learner.version
        for step in islice(steps, at, None):
            if step.error is None and not step.replies:
                if step.question is not None or version < step.last:
                    break
                try:
                    replies = []
                    for event, place in zip(step.events, step.placements, strict=True):
                        outcome = event.outcome or await learner.outcome(place.version)
                        replies.append(self._reply(learner, event, place, outcome))
                    step.replies = replies
                except ServiceError as error:
                    step.error = error
            at += 1
        return at

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
