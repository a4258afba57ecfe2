"""Predicting: read, decide, remember, reply. Written once, for who waits in a task and for who has none (at_once.py)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import orjson

from feedrank.learners.errors import InputError
from feedrank.learners.results import Prediction
from feedrank.service.contract.budget import ENTRY, Lease
from feedrank.service.contract.faults import (
    Conflict,
    Gone,
    NotFound,
    Unprocessable,
    being_rebuilt,
)
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.contract.messages import (
    DEFERRED,
    SHARED,
    batch_of,
    encode,
    no_object,
    placed,
    request_digest,
)
from feedrank.service.contract.settings import Settings
from feedrank.service.store import Clash, Record, Store
from feedrank.service.store.shared import Batcher, Waiter

from . import questions
from .assuring import assure
from .at_once import waits
from .certainty import place
from .folding import LATER, Counts
from .learner_state import LoadedLearner
from .memory import Memory
from .questions import TOO_MANY, Question, read_question
from .replies import OBJECTS, ReplyForm

T = TypeVar("T")
TURN = 8  # instances of a batch that are read and answered in one turn of the loop
WRITTEN = 4_000  # entries of a batch that are made into bytes in one turn
Ranking = Callable[[Prediction], object] | None


class Remembered(NamedTuple):
    """A prediction to be remembered; under an id of the caller, with the reply that may become the first one's."""

    record: Record
    reply: JSON | None = None


class Answered(NamedTuple):
    """Predictions that are to be remembered, and the reply that is given when they are."""

    records: dict[str, Remembered]
    made: object = None


Records = dict[str, Remembered]


def entries_of(reply: JSON) -> int:
    """Entries and contributions of a prediction."""
    ranking = reply["ranking"]
    if not ranking or "contributions" not in ranking[0]:
        return len(ranking)
    return sum([1 + len(entry["contributions"]) for entry in ranking])


class Predictor:
    """Called with a name and a request of the contract.

    It keeps nothing of the request alive while it waits for the store; nor should who calls it: hundreds of small parts
    each, kept by all who wait, would fill the processor's cache.
    """

    def __init__(self, store: Store, memory: Memory, settings: Settings, counts: Counts) -> None:
        self._store, self._memory, self._settings, self._counts = store, memory, settings, counts
        self._records: Batcher[Answered, Any] = Batcher(self._remember)

    async def close(self) -> None:
        """Finish what was begun."""
        await self._records.close()

    async def __call__(self, name: str, request: Body) -> JSON:
        """Decide on one instance, or on each of `{"instances": [...]}`."""
        return await self.replied(name, request, OBJECTS)

    async def replied(self, name: str, request: Body, form: ReplyForm[T]) -> T:
        """The same, the reply in another form."""
        reply: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        begun = self.offer(name, request, reply, form)
        del request
        await begun
        return await reply

    async def offer(self, name: str, request: Body, waiter: Waiter[T], form: ReplyForm[T]) -> None:
        """The same; `waiter` gets the reply, at once or when what is remembered is durable. Raises what is refused."""
        learner = await self._memory.take(name)
        try:
            learner.worker.turned()
            records: Records = {}
            if type(request) is not dict and not isinstance(request, Mapping):
                raise no_object()
            if "instances" in request:
                waiter.set_result(await self._batch(learner, request, records, form))
                return
            question = await read_question(learner, request, self._settings)
            reply = await self._answered(learner, question, records, form.ranking)
            if question.digest:
                await self.keep(learner, records)
                records = {}
            made = form.one(reply)
            if records:
                self._records.add(learner.log, Answered(records, made), waiter)
            else:
                waiter.set_result(made)
        except InputError as error:
            raise placed(error) from None
        finally:
            self._memory.leave(learner)

    async def _batch(self, learner: LoadedLearner, request: Body, records: Records, form: ReplyForm[T]) -> T:
        with self._memory.budget.lease() as lease:
            return await self._batch_within(lease, learner, request, records, form)

    async def _batch_within(
        self, lease: Lease, learner: LoadedLearner, request: Body, records: Records, form: ReplyForm[T]
    ) -> T:
        """The replies to a batch; what their entries take is counted as they are made."""
        replies, entries = [], 0
        for i, one in enumerate(batch_of(request, "instances", self._settings.max_batch, SHARED)):
            question = await read_question(learner, one, self._settings, f"/instances/{i}")
            if question.digest and question.id in records:
                raise Unprocessable.at(f"/instances/{i}/prediction_id", "stands for one instance")
            try:
                replies.append(await self._answered(learner, question, records, None))
            except InputError as error:
                raise placed(error, f"/instances/{i}") from None
            entries += entries_of(replies[-1])
            if i % TURN == TURN - 1:
                lease.resize(ENTRY * entries)
                await waits("batch")
                await asyncio.sleep(0)  # others get their turn
            if entries > questions.MOST_ENTRIES:
                raise Unprocessable.at("/instances", TOO_MANY)
        if records:
            await self.keep(learner, records)
        parts, entries = [], 0
        for reply in replies:
            entries += entries_of(reply)
            parts.append(form.part(reply))
            if entries > WRITTEN:
                entries = 0
                await waits("batch")
                await asyncio.sleep(0)
        return form.many("predictions", parts)

    async def _answered(
        self, learner: LoadedLearner, question: Question, records: Records, ranking: Ranking
    ) -> JSON:
        """The reply; if it is to be remembered, its record joins `records`."""
        worker, size, seconds = learner.worker, question.size, question.cost.seconds
        reply = worker.attempt("predict", size, seconds, self.answer, learner, question, records, ranking)
        if reply is LATER:
            await waits("work")
            reply = await worker.run(
                "predict", size, lambda: self.answer(learner, question, records, ranking), seconds
            )
        self._counts.predictions += 1
        return reply

    def answer(
        self, learner: LoadedLearner, question: Question, records: Records, ranking: Ranking = None
    ) -> JSON:
        """The reply by the weights as they are, without waiting; `ranking` gives its entries as the caller wants them."""
        if not learner.loaded:
            raise being_rebuilt(learner.title)
        core, id = learner.state.learner, question.id
        prediction = core.predict(question.parsed, **question.options)
        assured: JSON | None = None
        promised, mark = dict[str, Any](), None
        if question.bound is not None:
            unseen = [one.record.mark for one in records.values()]
            promised, assured, mark = assure(learner, question.bound, prediction, id, unseen)
        reply: JSON = {"prediction_id": id} if question.remember else {}
        reply["learner"] = learner.entry.name
        reply["version"] = version = core.version
        reply |= prediction.to_json(None if ranking is None else ranking(prediction))
        reply |= promised
        if question.covers:
            names = set(question.parsed.names)
            known = sum(name in core.features for name in names)
            reply["coverage"] = {"features": len(names), "known": known}
        if question.remember:
            record: JSON = {
                "instance": question.instance,
                "served": prediction.served(),
                "version": version,
            }
            if question.subject:
                record["subject"] = question.subject
            due = None if id.startswith(DEFERRED) else _default_reward(learner, record, self._settings)
            waits_for = None
            if not core.form.items:
                waits_for, sure = place(prediction, id)
                record |= {"at": time.time(), "sure": sure}
            if question.digest:
                record |= {"at": time.time(), "reply": reply}
            if assured is not None:
                record["assured"] = assured
            kept = Record(encode(record), question.digest, due, waits_for, mark)
            records[id] = Remembered(kept, reply if question.digest else None)
        return reply

    async def keep(self, learner: LoadedLearner, records: Records) -> None:
        """Have the store remember these predictions; a reply to a request that came before becomes the first reply."""
        await waits("remembering")
        chosen = {id: one for id, one in records.items() if one.record.digest}
        if chosen:
            await self._keep_chosen(learner, chosen)
            records = {id: one for id, one in records.items() if id not in chosen}
        if records:
            await self._records.submit(learner.log, Answered(records))

    async def _keep_chosen(self, learner: LoadedLearner, chosen: Records) -> None:
        """Predictions under ids of the caller, all or none."""
        by_id = {id: one.record for id, one in chosen.items()}
        try:
            first = await self._store.remember(learner.log, by_id, self._settings.prediction_ttl)
        except Clash as clash:
            id = list(chosen)[clash.index]
            raise Conflict(f"the prediction_id {id!r} was used for another request") from None
        for id, stored in first.items():
            if not stored:
                raise Gone(f"the prediction {id!r} is no longer kept")
            if (reply := chosen[id].reply) is not None:
                reply.clear()
                reply.update(orjson.loads(stored)["reply"])

    async def _remember(self, log: str, waiting: Sequence[Answered]) -> list[object]:
        """One write for all that waits for one learner."""
        records: dict[str, bytes | Record] = {}
        made = []
        for each in waiting:
            made.append(each.made)
            for id, one in each.records.items():
                records[id] = one.record
        await self._store.remember(log, records, self._settings.prediction_ttl)
        return made

    async def activate(self, name: str, deferred: str, id: str) -> None:
        """Remember a record under another id, as if it had been predicted now; the first one under it stays."""
        async with self._memory.use(name) as learner:
            stored = await self._store.recall(learner.log, deferred)
            if stored is None:
                raise NotFound(f"{learner.entry.name!r} keeps no prediction {deferred!r}")
            record = orjson.loads(stored)
            record["at"] = time.time()
            due = _default_reward(learner, record, self._settings)
            kept = Record(encode(record), request_digest({"activated": deferred}), due)
            await self._store.remember(learner.log, {id: kept}, self._settings.prediction_ttl)


def _default_reward(learner: LoadedLearner, record: JSON, settings: Settings) -> float | None:
    """When a choice without a reward gets the default one, which then joins its record; None if there is none."""
    spec = learner.state.learner.spec
    if spec.get("default_reward") is None:
        return None
    reward, slots = spec["default_reward"], record["instance"].get("slots")
    record |= {
        "owner": ["learner", learner.entry.name],
        "truth": {"reward": {slot["id"]: reward for slot in slots} if slots else reward},
    }
    return time.time() + min(float(spec["wait"]), settings.prediction_ttl - 1.0)
