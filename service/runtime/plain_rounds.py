"""Steps of a chunk that need nothing but the kernel, done one after another in one short piece of work.

Each gives what it would give alone: a prediction sees the events before it and none behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

from feedrank.service.contract.faults import ServiceError
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.messages import Event
from feedrank.service.store import Placement

from .applying import LONG
from .folding import LATER
from .learner_state import LoadedLearner
from .predictor import Predictor, Question, Records, as_json


class PlainRounds:
    """Predictions and events for one learner, which is loaded and nobody else's meanwhile."""

    def __init__(self, learner: LoadedLearner, predictor: Predictor, records: Records) -> None:
        self._learner, self._predictor, self._records = learner, predictor, records
        self._version, self._chain = learner.version, learner.chain
        self._work: list[Question | Event] = []
        self.done: list[JSON] = []
        self._size, self._expected = 0, 0.0
        self._room = learner.worker.room("round")

    def add(self, request: JSON | None, events: Sequence[Event], placements: Sequence[Placement]) -> bool:
        """One more step; False if it is not plain, or does not fit in."""
        learner = self._learner
        one: Question | Event
        if request is not None:
            question = self._predictor.question(learner, request)
            if question is None:
                return False
            one, size = question, len(question.features)
            cost = learner.state.vector_cost(size)
            if not self._predictor.affords(cost):
                return False
            expected = cost.seconds
        else:
            version = self._version + 1
            if len(placements) != 1 or placements[0].version != version:
                return False
            entry = learner.plain_entry(version, self._chain)
            if entry is None or entry.event is not events[0] or not learner.is_first(version):
                return False
            one, size, expected = entry.event, entry.event.size, learner.state.seconds(entry.event)
            self._version, self._chain = version, entry.chain
        if self._work and (self._size + size > self._room or expected > LONG):
            return False
        self._work.append(one)
        self._size += size
        self._expected = max(self._expected, expected)
        return True

    def run(self) -> ServiceError | None:
        """Do them: what each gave is in `done`. Nothing is done if others come first, and none behind one that fails.

        The error is what the first behind those that are done is told; without one, it is to be tried by itself.
        """
        learner = self._learner
        if not self._work:
            return None
        try:
            if learner.worker.attempt("round", self._size, self._expected, self._do) is LATER:
                return None
        except ServiceError as error:
            return error
        learner.newest = max(learner.newest, learner.version)
        learner.signal()
        return None

    def _do(self) -> None:
        learner, answer, records, done = self._learner, self._predictor.answer, self._records, self.done
        for one in self._work:
            if isinstance(one, Question):
                done.append(answer(learner, one, records, as_json))
                continue
            try:
                done.append(learner.take(one))
            except BaseException as error:
                learner.failed(error)
                return
