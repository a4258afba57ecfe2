"""What the writer is given: steps in order, those of one caller in a chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from feedrank.service.contract.events import Event
from feedrank.service.contract.json_types import JSON
from feedrank.service.store import Draft, Placement

from .learner_state import LoadedLearner
from .questions import Question

EVENT = 1_024  # what an event weighs beside its bytes


@dataclass(slots=True)
class Step:
    """One thing to do: a question, or events that are written all or none; or nothing more, because of an `error`.

    `placements` is where the events are in the log, `last` the version at which all of them are applied; `replies` what
    came of it, one for the question or for each event.
    """

    question: Question | None = None
    events: Sequence[Event] = ()
    drafts: Sequence[Draft] = ()
    placements: Sequence[Placement] = ()
    last: int = 0
    replies: Sequence[JSON] = ()
    error: Exception | None = None


@dataclass(slots=True)
class Chunk:
    """What one caller brings, in order; `form` makes of the steps what the caller is given, or raises."""

    learner: LoadedLearner
    steps: Sequence[Step]
    form: Callable[[Sequence[Step]], object]


def steps_of(chunks: Sequence[Chunk]) -> Sequence[Step]:
    """All steps of some chunks, in order."""
    return chunks[0].steps if len(chunks) == 1 else [step for chunk in chunks for step in chunk.steps]


def replies_of(step: Step) -> Sequence[JSON]:
    """The replies of a step; its error is raised."""
    if step.error is not None:
        raise step.error
    return step.replies


def weigh(chunk: Chunk) -> int:
    """What a chunk adds to an append."""
    total = 0
    for step in chunk.steps:
        for draft in step.drafts:
            total += EVENT + len(draft.body)
    return total
