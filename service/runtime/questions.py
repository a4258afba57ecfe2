"""Requests for predictions, read: every shape of them by one reader, which names what it has to wait for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sized
from dataclasses import dataclass, field
from typing import Any

from feedrank.learners import reading
from feedrank.learners.errors import InputError
from feedrank.learners.instances import FeatureVector, ItemList
from feedrank.learners.reading import Cost
from feedrank.service.contract.events import size_of
from feedrank.service.contract.faults import Unprocessable
from feedrank.service.contract.json_types import JSON, View
from feedrank.service.contract.messages import (
    LONGEST_PREDICTION_ID,
    OPTIONS,
    PREDICT,
    excluded,
    flag,
    id_of,
    instance_of,
    only,
    placed,
    request_digest,
    whole,
)
from feedrank.service.contract.prediction_ids import chance_of, new_prediction_id
from feedrank.service.contract.settings import Settings

from .assuring import FIELD, PROMISE, AskedPrecision, read_bound
from .at_once import waits
from .learner_state import LoadedLearner

NUMBERS = 4_000  # of a list, from which its parts are turns of their own
CHARACTERS, ITEMS = 20_000, 400  # of an instance, from which a thread costs less than it spares
# A short request must not have an endless reply: every label, for each instance, with every feature's part.
MOST_ENTRIES = 1_000_000
TOO_MANY = f"the reply would have more than {MOST_ENTRIES} entries and contributions: ask for the `top` ones, or for fewer"


@dataclass(slots=True)
class Question:
    """`id` is that under which the answer is remembered, `digest` the request's where the caller chose it."""

    instance: JSON
    parsed: FeatureVector | ItemList
    cost: Cost
    options: JSON = field(default_factory=dict)  # of `Learner.predict`
    id: str = ""
    digest: str = ""
    remember: bool = True
    covers: bool = False
    subject: str = ""  # the hash of whom it is about
    bound: AskedPrecision | None = None

    @property
    def size(self) -> int:
        """What the cost of an answer grows with."""
        return size_of(self.parsed)


async def read_question(
    learner: LoadedLearner, request: Any, settings: Settings, where: str = ""
) -> Question:
    """The question of a request; Unprocessable with pointers that begin with `where`."""
    try:
        instance = instance_of(request, settings, learner.state.learner.spec.get("input"))
        options = len(instance) < len(request)
        if options:
            only(request, PREDICT)
        parsed = await read_instance(learner, instance)
        question = Question(instance, parsed, price(learner, parsed, None, settings))
        if options:
            await _read_options(learner, request, question)
        if not question.id and (question.remember or learner.state.learner.form.chooses):
            question.id = new_prediction_id(learner.log, time.time())
        if "exclude" in request or learner.state.learner.form.chooses:
            form = learner.state.learner.form
            question.options["exclude"] = excluded(request, form)
            question.options["chance"] = chance_of(learner.log, question.id)
    except (InputError, Unprocessable) as error:
        raise placed(error, where) from None
    return question


async def _read_options(learner: LoadedLearner, request: View, question: Question) -> None:
    for name in OPTIONS:
        if name in request:
            question.options[name] = request[name]
    if "explain" in request and flag(request, "explain", False):
        core, top, parsed = learner.state.learner, request.get("top"), question.parsed
        shown = len(parsed.ids) if isinstance(parsed, ItemList) else len(core.labels)
        shown = min(shown, top) if isinstance(top, int) else shown
        if shown * (parsed.features if isinstance(parsed, ItemList) else len(parsed)) > MOST_ENTRIES:
            raise Unprocessable.at("/explain", TOO_MANY)
    if "subject" in request:
        question.subject = await learner.subjects.of(request)
        request = {**request, "subject": question.subject}  # nothing is made of what it hides
    if "remember" in request:
        question.remember = flag(request, "remember", True)
    if "coverage" in request:
        question.covers = flag(request, "coverage", False)
    if "prediction_id" in request:
        id = id_of(request, "prediction_id", LONGEST_PREDICTION_ID)
    else:
        id = None
    if id is not None:
        if not question.remember:
            raise Unprocessable.at("/prediction_id", "needs `remember`, and stands for one instance")
        question.id, question.digest = id, request_digest(request)
    if FIELD in request:
        await waits("store")
        question.bound = await read_bound(learner, request, question.remember)
    elif PROMISE in request:
        raise Unprocessable.at(f"/{PROMISE}", f"says how `{FIELD}` is kept, which is missing")
    if "min_version" in request and (least := whole(request, "min_version")):
        await waits("min_version")
        await learner.wait(least)


async def read_instance(learner: LoadedLearner, instance: View) -> FeatureVector | ItemList:
    """What `reading.instance` reads: a long text is cut into words, and a long list checked, in a thread."""
    spec = learner.state.learner.spec
    features = instance.get("features") if len(instance) == 1 else None
    if type(features) is FeatureVector and learner.takes_vectors:
        if learner.accepts is not None:
            learner.accepts(spec, features)
        return features
    if is_long(instance):
        await waits("long input")
        parsed = await asyncio.to_thread(reading.instance, spec, instance)
    elif is_heavy(instance):  # others get their turn before it and behind it
        await waits("long input")
        await asyncio.sleep(0)
        parsed = reading.instance(spec, instance)
        await asyncio.sleep(0)
    else:
        parsed = reading.instance(spec, instance)
    if parsed.width:
        reading.check_vector(learner.state.learner, parsed)
    return parsed


def is_heavy(instance: View) -> bool:
    """Whether a list has so many numbers that parsing, reading and ranking it are a turn of the loop each."""
    items = instance.get("items")
    if isinstance(items, dict):
        ids, columns = items.get("ids"), items.get("columns")
        return isinstance(ids, list) and isinstance(columns, list) and len(ids) * len(columns) > NUMBERS
    if not isinstance(items, list) or not items or not isinstance(items[0], dict):
        return False
    features = items[0].get("features", ())
    return isinstance(features, Sized) and len(items) * len(features) > NUMBERS


def is_long(instance: View) -> bool:
    items, characters = instance.get("items"), 0
    for name in ("text", "row"):
        if name in instance:
            text = instance[name]
            fields = text.values() if isinstance(text, dict) else (text,)
            characters += sum([len(field) for field in fields if isinstance(field, str)])
    rows = items.get("rows") if isinstance(items, dict) else items
    if isinstance(items, list) and len(items) <= ITEMS:
        for item in items:
            if isinstance(item, dict):
                vector = item.get("vector")
                characters += len(vector) if isinstance(vector, str | list | FeatureVector) else 0
                characters += is_long(item) and CHARACTERS
    return characters > CHARACTERS or (isinstance(rows, list) and len(rows) > ITEMS)


def price(
    learner: LoadedLearner, parsed: FeatureVector | ItemList, truth: JSON | None, settings: Settings
) -> Cost:
    """What a prediction, or an event with this truth, costs; Unprocessable if that is too much.

    A rough estimate, on the safe side, is enough for most; what it calls too much is estimated exactly.
    """
    if isinstance(parsed, FeatureVector) and (truth is None or "label" in truth):
        cost = learner.state.vector_cost(len(parsed))
        if cost.seconds <= settings.max_event_seconds and cost.bytes <= settings.max_event_bytes:
            return cost
    cost = learner.state.instance_cost(parsed, truth)
    affordable(cost, settings)
    return cost


def affordable(cost: Cost, settings: Settings) -> None:
    """Refuse what would take too long, or too much memory, by the estimate of the core."""
    if cost.seconds > settings.max_event_seconds:
        raise Unprocessable.at(
            "",
            f"this would take {cost.seconds:.3g} s of a processor, above the limit of "
            f"{settings.max_event_seconds:g} s (FEEDRANK_MAX_EVENT_SECONDS): send fewer items, labels or features",
        )
    if cost.bytes > settings.max_event_bytes:
        raise Unprocessable.at(
            "",
            f"this would take {cost.bytes} bytes of memory, above the limit of "
            f"{settings.max_event_bytes} (FEEDRANK_MAX_EVENT_BYTES): send fewer items, labels or features",
        )
