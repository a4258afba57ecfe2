"""Feedback, read: every shape of it by one reader, which gives what is to be appended, checked: it can be applied."""

from __future__ import annotations

from typing import Any

from feedrank.learners import reading
from feedrank.learners.errors import InputError
from feedrank.service.contract.events import Event
from feedrank.service.contract.faults import Unprocessable
from feedrank.service.contract.json_types import View
from feedrank.service.contract.messages import (
    FEEDBACK,
    id_of,
    instance_of,
    loads,
    only,
    placed,
    served_of,
    truth_digest,
    truth_of,
)
from feedrank.service.contract.settings import Settings
from feedrank.service.store import Draft, Store

from .appending import unknown
from .learner_state import LoadedLearner
from .questions import price, read_instance
from .subjects import ids_of


class FeedbackReader:
    """Called with a learner and a request of the contract."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store, self._settings = store, settings

    async def __call__(
        self, learner: LoadedLearner, request: Any, key: str | None = None, where: str = ""
    ) -> tuple[Event, Draft]:
        """The event and its draft. `key` is another name for `feedback_id`; the pointers of errors begin with `where`."""
        try:
            roles = learner.state.learner.spec.get("input")
            instance, truth = instance_of(request, self._settings, roles), truth_of(request)
            event, shown_to = Event(truth, instance), ""
            if len(instance) + len(truth) < len(request):
                only(request, FEEDBACK)
                self._read_options(learner, request, event)
                if "subject" in request:
                    event.subject = await learner.subjects.of(request)
            if key is not None:
                _name(event, key, where)
            if event.prediction_id is None:
                event.parsed = await read_instance(learner, instance)
            elif instance:
                raise Unprocessable.at(f"/{next(iter(instance))}", "is not taken beside a prediction_id")
            else:
                shown_to = await self._recall(learner, event.prediction_id, event)
            if event.parsed is not None:
                learner.state.learner.check_truth(event.parsed, truth, event.served)
                event.expected = price(learner, event.parsed, truth, self._settings).seconds
            ids: tuple[str, ...] = ()
            if event.prediction_id is not None:
                ids = (f"p:{event.prediction_id}",)
            if event.feedback_id is not None:
                ids += (f"f:{event.feedback_id}",)
            digest = truth_digest(truth, event.weight) if ids else ""
            if event.subject or shown_to:
                ids += ids_of(event.subject, shown_to)
            draft = Draft(event.body(), ids, digest, event.prediction_id)
        except (InputError, Unprocessable) as error:
            raise placed(error, where) from None
        if event.parsed is not None:
            event.instance = None
        return event, draft

    def _read_options(self, learner: LoadedLearner, request: View, event: Event) -> None:
        event.prediction_id, event.feedback_id = (
            id_of(request, "prediction_id"),
            id_of(request, "feedback_id"),
        )
        if "weight" in request:
            event.weight = reading.weight(request["weight"])
        if "served" in request:
            event.show(served_of(request, learner.state.learner.form))

    async def _recall(self, learner: LoadedLearner, id: str, event: Event) -> str:
        """Give the event the instance and the decision of its prediction; neither if the prediction is used up.

        The hash of whom the prediction was about, if that was said.
        """
        event.instance = None
        if (stored := await self._store.recall(learner.log, id)) is not None:
            record = loads(stored)
            event.instance = record["instance"]
            event.assured = record.get("assured")
            if not event.corrected:
                event.served = record["served"]
            event.parsed = await read_instance(learner, event.instance)
            return str(record.get("subject", ""))
        if await self._store.find(learner.log, f"p:{id}") is None:
            raise unknown(learner, id, self._settings.prediction_ttl)
        return ""


def _name(event: Event, key: str, where: str) -> None:
    """Give the event the id that a header has; in a batch only an event that has no id of its own."""
    named = id_of({"feedback_id": key}, "feedback_id")
    if where == "" and event.feedback_id not in (None, named):
        raise Unprocessable.at("/feedback_id", "differs from the header Idempotency-Key")
    if event.feedback_id is None and (event.prediction_id is None or where == ""):
        event.feedback_id = named
