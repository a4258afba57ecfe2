"""Predicting: read, decide, remember, reply."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import orjson

from feedrank.learners import kernel, reading
from feedrank.learners.instances import FeatureVector, ItemList
from feedrank.learners.results import Prediction
from feedrank.service.contract.faults import (
    Conflict,
    Gone,
    NotFound,
    StateDropped,
    Unprocessable,
)
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.contract.messages import (
    DEFERRED,
    LONGEST_PREDICTION_ID,
    OPTIONS,
    PREDICT,
    SHARED,
    ErrorScope,
    batch_of,
    chance_of,
    encode,
    excluded,
    flag,
    id_of,
    instance_of,
    new_prediction_id,
    only,
    request_digest,
    size_of,
    whole,
)
from feedrank.service.contract.settings import Settings
from feedrank.service.store import Clash, Record, Store
from feedrank.service.store.shared import Batcher, Waiter

from .folding import LATER, Counts
from .learner_state import LoadedLearner
from .memory import Memory, affordable, read_instance

T = TypeVar("T")
PLAIN = frozenset({"features", "top", "remember"})


class Remembered(NamedTuple):
    """A prediction to be remembered; under an id of the caller, with the reply that may become the first one's."""

    record: Record
    reply: JSON | None = None


Records = dict[str, Remembered]


class Question(NamedTuple):
    """A plain request for a prediction."""

    features: FeatureVector
    top: int | None
    remember: bool


# A short request must not have an endless reply: every label, for each instance, with every feature's part.
MOST_ENTRIES = 1_000_000
TURN = 8  # instances of a batch that are read and answered in one turn of the loop
TOO_MANY = f"the reply would have more than {MOST_ENTRIES} entries and contributions: ask for the `top` ones, or for fewer"


Ranked = Callable[[Prediction], object]


def as_json(prediction: Prediction) -> orjson.Fragment | None:
    """The ranking of a prediction as the kernel writes it; None leaves it to orjson."""
    if kernel.ranking_json is None:
        return None
    written = kernel.ranking_json(prediction.form.entry, prediction.ranking, prediction.probabilities)
    return None if written is None else orjson.Fragment(written)


def entries_of(reply: JSON) -> int:
    """Entries and contributions of a prediction."""
    ranking = reply["ranking"]
    if not ranking or "contributions" not in ranking[0]:
        return len(ranking)
    return sum([1 + len(entry["contributions"]) for entry in ranking])


class Predictor:
    """Called with a name and a request of the contract.

    It keeps nothing of the request alive while it waits for the store; nor should who calls it.
    """

    def __init__(self, store: Store, memory: Memory, settings: Settings, counts: Counts) -> None:
        self._store, self._memory, self._settings, self._counts = store, memory, settings, counts
        self._records: Batcher[Records, None] = Batcher(self._remember)

    async def close(self) -> None:
        """Finish what was begun."""
        await self._records.close()

    async def __call__(self, name: str, request: Body) -> JSON:
        """Decide on one instance, or on each of `{"instances": [...]}`."""
        return await self.formed(name, request, lambda reply: reply)

    async def formed(self, name: str, request: Body, form: Callable[[JSON], T]) -> T | JSON:
        """The same, the reply on one instance as `form` makes it: in a plain case, before the store is waited for."""
        learner = await self._memory.take(name)
        try:
            records: Records = {}
            if isinstance(request, Mapping) and "instances" in request:
                batch = batch_of(request, "instances", self._settings.max_batch, SHARED)
                replies, entries = [], 0
                for i, one in enumerate(batch):
                    replies.append(await self.one(learner, one, records, f"/instances/{i}"))
                    entries += entries_of(replies[-1])
                    if i % TURN == TURN - 1:
                        await asyncio.sleep(0)  # others get their turn
                    if entries > MOST_ENTRIES:
                        raise Unprocessable.at("/instances", TOO_MANY)
                if records:
                    await self.keep(learner, records)
                return {"predictions": replies}
            # Hundreds of small parts each, kept by all who wait, would fill the processor's cache.
            if (reply := self.plain(learner, request, records)) is not None:
                made = form(reply)
                if records:
                    del request, reply
                    await self._records.submit(learner.log, records)
                return made
            reply = await self.one(learner, request, records, "")
            del request
            if records:
                await self.keep(learner, records)
            return form(reply)
        finally:
            self._memory.leave(learner)

    def offer(self, learner: LoadedLearner, records: Records, waiter: Waiter[None]) -> None:
        """Have the store remember what `plain` gave, and tell `waiter` when it has."""
        self._records.add(learner.log, records, waiter)

    async def keep(self, learner: LoadedLearner, records: Records) -> None:
        """Have the store remember these predictions; a reply to a request that came before becomes the first reply."""
        chosen = {id: one for id, one in records.items() if one.record.digest}
        if chosen:
            await self._keep_chosen(learner, chosen)
            records = {id: one for id, one in records.items() if id not in chosen}
        if records:
            await self._records.submit(learner.log, records)

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

    async def _remember(self, log: str, waiting: Sequence[Records]) -> list[None]:
        """One write for all that waits for one learner."""
        records = {id: one.record for each in waiting for id, one in each.items()}
        await self._store.remember(log, records, self._settings.prediction_ttl)
        return [None] * len(waiting)

    def plain(
        self, learner: LoadedLearner, request: Any, records: Records, write: Ranked | None = None
    ) -> JSON | None:
        """What most requests are, features as the kernel has read them and little else, answered without waiting.

        The same as `one` gives, the ranking as `write` gives it; None leaves it to that, with all that may be wrong.
        """
        question = self.question(learner, request)
        if question is None:
            return None
        size = len(question.features)
        cost = learner.state.vector_cost(size)
        if not self.affords(cost):
            return None
        reply = learner.worker.attempt(
            "predict", size, cost.seconds, lambda: self.answer(learner, question, records, write)
        )
        return None if reply is LATER else reply

    def question(self, learner: LoadedLearner, request: Any) -> Question | None:
        """A plain request, read; None if it is another, or wrong."""
        if type(request) is not dict or not request.keys() <= PLAIN:
            return None
        features, top, remember = request.get("features"), request.get("top"), request.get("remember", True)
        if (
            type(features) is not FeatureVector
            or not learner.any_vector
            or not learner.loaded
            or (remember is not False and features.json is None)  # which copies it
            or len(features) > self._settings.max_features
            or not (top is None or (type(top) is int and top > 0))
            or type(remember) is not bool
        ):
            return None
        return Question(features, top, remember)

    def affords(self, cost: reading.Cost) -> bool:
        """Whether `affordable` would take it."""
        limits = self._settings
        return cost.seconds <= limits.max_event_seconds and cost.bytes <= limits.max_event_bytes

    def answer(
        self,
        learner: LoadedLearner,
        question: Question,
        records: Records,
        write: Ranked | None = None,
    ) -> JSON:
        """The reply to a plain request, at once; `write` gives the ranking as the caller wants it."""
        core, features = learner.state.learner, question.features
        prediction = core.predict(features, top=question.top)
        self._counts.predictions += 1
        ranking = None if write is None else write(prediction)
        reply: JSON = {
            "learner": learner.entry.name,
            "version": core.version,
            **prediction.to_json(ranking),
        }
        if not question.remember:
            return reply
        id = new_prediction_id(learner.log, time.time())
        reply = {"prediction_id": id, **reply}
        # The features as they came: `question` takes no others.
        record = (features.json or b"", encode(prediction.served()), core.version)
        data = b'{"instance":{"features":%b},"served":%b,"version":%d}' % record
        records[id] = Remembered(Record(data))
        return reply

    async def one(self, learner: LoadedLearner, request: Any, records: Records, where: str) -> JSON:
        """The reply; if it is to be remembered, its record joins `records`."""
        with ErrorScope(where):
            only(request, PREDICT)
            instance = instance_of(request, self._settings)
            parsed = await read_instance(learner.state.learner.spec, instance)
            remember = flag(request, "remember", True)
            if "explain" in request and flag(request, "explain", False):
                core, top = learner.state.learner, request.get("top")
                shown = len(parsed.ids) if isinstance(parsed, ItemList) else len(core.labels)
                shown = min(shown, top) if isinstance(top, int) else shown
                if shown * len(parsed.names) > MOST_ENTRIES:
                    raise Unprocessable.at("/explain", TOO_MANY)
            covers = "coverage" in request and flag(request, "coverage", False)
            id = id_of(request, "prediction_id", LONGEST_PREDICTION_ID)
            if id is not None and (not remember or id in records):
                raise Unprocessable.at("/prediction_id", "needs `remember`, and stands for one instance")
            if "min_version" in request and (least := whole(request, "min_version")):
                await learner.wait(least)
            options = {option: request[option] for option in OPTIONS if option in request}
            chosen_by_caller = id is not None
            form = learner.state.learner.form
            if id is None:
                id = new_prediction_id(learner.log, time.time()) if remember or form.chooses else ""
            if form.chooses or "exclude" in request:
                options |= {"exclude": excluded(request, form), "chance": chance_of(learner.log, id)}

            def decide() -> tuple[int, Prediction]:
                if not learner.loaded:
                    raise StateDropped(f"{learner.title} is being rebuilt: send it again")
                core = learner.state.learner
                return core.version, core.predict(parsed, **options)

            cost = reading.cost(learner.state.learner, parsed, grades=1)
            affordable(cost, self._settings)
            version, prediction = await learner.worker.run("predict", size_of(parsed), decide, cost.seconds)
            self._counts.predictions += 1
            reply: JSON = {"learner": learner.entry.name, "version": version, **prediction.to_json()}
            if covers:
                names = set(parsed.names)
                known = sum(name in learner.state.learner.features for name in names)
                reply["coverage"] = {"features": len(names), "known": known}
            if not remember:
                return reply
            record: JSON = {"instance": instance, "served": prediction.served(), "version": version}
            digest = ""
            due = None if id.startswith(DEFERRED) else self._default_reward(learner, record)
            if chosen_by_caller:
                digest = request_digest(request)
                reply = {"prediction_id": id, **reply}
                record |= {"at": time.time(), "reply": reply}
            data = encode(record)
        reply = {"prediction_id": id, **reply}
        records[id] = Remembered(Record(data, digest, due), reply if digest else None)
        return reply

    async def activate(self, name: str, deferred: str, id: str) -> None:
        """Remember a record under another id, as if it had been predicted now; the first one under it stays."""
        async with self._memory.use(name) as learner:
            stored = await self._store.recall(learner.log, deferred)
            if stored is None:
                raise NotFound(f"{learner.entry.name!r} keeps no prediction {deferred!r}")
            record = orjson.loads(stored)
            record["at"] = time.time()
            due = self._default_reward(learner, record)
            kept = Record(encode(record), request_digest({"activated": deferred}), due)
            await self._store.remember(learner.log, {id: kept}, self._settings.prediction_ttl)

    def _default_reward(self, learner: LoadedLearner, record: JSON) -> float | None:
        """When a choice without a reward gets the default one, which then joins its record; None if there is none."""
        spec = learner.state.learner.spec
        if spec.get("default_reward") is None:
            return None
        record |= {
            "owner": ["learner", learner.entry.name],
            "truth": {"reward": spec["default_reward"]},
        }
        return time.time() + min(float(spec["wait"]), self._settings.prediction_ttl - 1.0)
