"""A teacher that gets cheaper: the learner answers where its precision is proved, your function answers the rest.

    ask(x)    predict x under `min_precision`;   decided -> its label
              else ask the function, learn what it says from that prediction, and answer with it

The function is a language model, a rule, a form for a person: what takes an instance and gives a label, or None if it does
not know (then nothing is learned, and the prediction waits in the review queue). A share of what the learner would decide
is asked all the same: the audits of `min_precision`, drawn by the service, by which the precision stays proved. What a
person says in the end beats both: `correct`.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from .client import AsyncClient, Client
from .exceptions import BadRequest
from .payloads import JSON, Payload
from .replies import Prediction

__all__ = ["AsyncTeacher", "Savings", "Teacher", "TeacherAnswer"]

LEARNER, TEACHER, PERSON = "learner", "teacher", "person"
TOGETHER = 8  # calls of an asynchronous function at a time


@dataclass(frozen=True, slots=True)
class TeacherAnswer:
    """`by` is who said so: `learner`, `teacher` or `person`; no label if nobody knows. `audit`: drawn to be checked."""

    label: str | None
    by: str
    prediction_id: str
    instance: Payload
    audit: bool = False


@dataclass(frozen=True, slots=True)
class Savings:
    """What was saved so far: of `asked` answers, `calls` of the function; `proved` is the precision as last said."""

    asked: int
    calls: int
    cached: int
    audits: int
    corrected: int
    proved: float | None

    @property
    def saved(self) -> float:
        """The share of answers that took no call."""
        return 1.0 - self.calls / self.asked if self.asked else 0.0


class Lessons:
    """What a teacher of either kind keeps: its counts, and the answers of the function by instance, the latest `cache`."""

    precision: float
    source: str
    weight: float

    def __init__(self, min_precision: float, source: str, weight: float, cache: int) -> None:
        self.precision, self.source, self.weight = min_precision, source, weight
        self._room, self._cache = cache, OrderedDict[str, str | None]()
        self._asked = self._calls = self._cached = self._audits = self._corrected = 0
        self._proved: float | None = None

    def question(self, instance: Payload) -> JSON:
        """The request for an instance."""
        return {**instance, "min_precision": self.precision}

    def decided(self, instance: Payload, prediction: Prediction) -> TeacherAnswer | None:
        """The learner's answer, if it decided."""
        self._asked += 1
        self._proved = prediction.proved
        if prediction.label is None:
            return None
        return TeacherAnswer(prediction.label, LEARNER, prediction.prediction_id or "", instance)

    def known(self, instance: Payload) -> tuple[bool, str | None]:
        """Whether the function has answered this before, and what."""
        key = json.dumps(instance, sort_keys=True)
        if key not in self._cache:
            return False, None
        self._cached += 1
        self._cache.move_to_end(key)
        return True, self._cache[key]

    def called(self, instance: Payload, label: str | None) -> str | None:
        """The function was called, and said this."""
        if label is not None and not isinstance(label, str):
            raise BadRequest(f"a teacher says a label or None, not {label!r}")
        self._calls += 1
        if self._room:
            self._cache[json.dumps(instance, sort_keys=True)] = label
            if len(self._cache) > self._room:
                self._cache.popitem(last=False)
        return label

    def lesson(
        self, instance: Payload, prediction: Prediction, label: str | None
    ) -> tuple[TeacherAnswer, JSON | None]:
        """The answer, and the event that it teaches."""
        audit, id = bool(prediction.audit), prediction.prediction_id or ""
        self._audits += audit
        answer = TeacherAnswer(label, TEACHER, id, instance, audit)
        return answer, None if label is None else self.event(id, label)

    def event(self, id: str, label: str, source: str = "") -> JSON:
        """Feedback on a prediction; who said so is in its `feedback_id`."""
        event: JSON = {"prediction_id": id, "label": label, "feedback_id": f"{source or self.source}:{id}"}
        return event if self.weight == 1.0 or source else {**event, "weight": self.weight}

    def correction(self, answer: TeacherAnswer, label: str) -> JSON:
        """A person's word on an answer: on what the learner decided by its id, else anew, as its id is used up."""
        self._corrected += 1
        key = json.dumps(answer.instance, sort_keys=True)
        if key in self._cache:
            self._cache[key] = label
        if answer.by == LEARNER:
            return self.event(answer.prediction_id, label, PERSON)
        return {**answer.instance, "label": label, "feedback_id": f"{PERSON}:{answer.prediction_id}"}

    def savings(self) -> Savings:
        """So far."""
        return Savings(self._asked, self._calls, self._cached, self._audits, self._corrected, self._proved)


class Teacher:
    """Asks `function` where the learner is not sure; its labels count `weight` times and are logged as from `source`.

    `cache` answers of the function are kept by instance: the same question is never paid for twice.
    """

    def __init__(
        self,
        client: Client,
        learner: str,
        function: Callable[[Payload], str | None],
        *,
        min_precision: float = 0.95,
        source: str = TEACHER,
        weight: float = 1.0,
        cache: int = 10_000,
    ) -> None:
        self._client, self._name, self._function = client, learner, function
        self._lessons = Lessons(min_precision, source, weight, cache)

    def ask(self, instance: Payload) -> TeacherAnswer:
        """The answer on `{"features": ...}`, `{"text": ...}` or `{"row": ...}`."""
        return self.ask_many([instance])[0]

    def ask_many(self, instances: Iterable[Payload]) -> list[TeacherAnswer]:
        """The answers on a batch; the learner learns from the function's when all are there."""
        batch, answers, events = list(instances), list[TeacherAnswer](), list[JSON]()
        lessons = self._lessons
        predictions = self._predict(batch)
        try:
            for instance, prediction in zip(batch, predictions, strict=True):
                answer = lessons.decided(instance, prediction)
                if answer is None:
                    known, label = lessons.known(instance)
                    if not known:
                        label = lessons.called(instance, self._function(instance))
                    answer, event = lessons.lesson(instance, prediction, label)
                    events += [] if event is None else [event]
                answers.append(answer)
        finally:  # what was said before the function failed was paid for
            if events:
                self._client.feedback_many(self._name, events)
        return answers

    def correct(self, answer: TeacherAnswer, label: str) -> None:
        """A person says what is right: it beats what the learner or the function said."""
        if answer.by == TEACHER and answer.label is not None:
            self._client.retract(self._name, prediction_id=answer.prediction_id)
        self._client.feedback(self._name, self._lessons.correction(answer, label))

    def savings(self) -> Savings:
        """Calls saved, and the precision proved."""
        return self._lessons.savings()

    def _predict(self, batch: Sequence[Payload]) -> list[Prediction]:
        return self._client.predict_many(self._name, map(self._lessons.question, batch)) if batch else []


class AsyncTeacher:
    """The same with an `AsyncClient` and a function to await; of a batch, some calls of it are made at a time."""

    def __init__(
        self,
        client: AsyncClient,
        learner: str,
        function: Callable[[Payload], Awaitable[str | None]],
        *,
        min_precision: float = 0.95,
        source: str = TEACHER,
        weight: float = 1.0,
        cache: int = 10_000,
        together: int = TOGETHER,
    ) -> None:
        self._client, self._name, self._function = client, learner, function
        self._lessons = Lessons(min_precision, source, weight, cache)
        self._room = asyncio.Semaphore(together)

    async def ask(self, instance: Payload) -> TeacherAnswer:
        """As `Teacher.ask`."""
        return (await self.ask_many([instance]))[0]

    async def ask_many(self, instances: Iterable[Payload]) -> list[TeacherAnswer]:
        """As `Teacher.ask_many`."""
        batch = list(instances)
        if not batch:
            return []
        predictions = await self._client.predict_many(self._name, map(self._lessons.question, batch))
        made = await asyncio.gather(*map(self._answer, batch, predictions), return_exceptions=True)
        done = [one for one in made if not isinstance(one, BaseException)]
        if events := [event for _, event in done if event is not None]:
            await self._client.feedback_many(self._name, events)
        for one in made:
            if isinstance(one, BaseException):
                raise one
        return [answer for answer, _ in done]

    async def _answer(self, instance: Payload, prediction: Prediction) -> tuple[TeacherAnswer, JSON | None]:
        lessons = self._lessons
        answer = lessons.decided(instance, prediction)
        if answer is not None:
            return answer, None
        known, label = lessons.known(instance)
        if not known:
            async with self._room:
                label = lessons.called(instance, await self._function(instance))
        return lessons.lesson(instance, prediction, label)

    async def correct(self, answer: TeacherAnswer, label: str) -> None:
        """As `Teacher.correct`."""
        if answer.by == TEACHER and answer.label is not None:
            await self._client.retract(self._name, prediction_id=answer.prediction_id)
        await self._client.feedback(self._name, self._lessons.correction(answer, label))

    def savings(self) -> Savings:
        """As `Teacher.savings`."""
        return self._lessons.savings()
