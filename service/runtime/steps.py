"""What the writer is given, steps in order and those of one caller in a chunk; and why the store does not take them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from feedrank.service.contract.faults import Conflict, Gone, NotFound, ServiceError
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.messages import Event, predicted_at
from feedrank.service.store import Clash, Closed, Draft, Missing, Placement, Stale, StoreSignal

from .learner_state import LoadedLearner

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


def refusal(
    signal: StoreSignal, learner: LoadedLearner, drafts: Sequence[Draft], ttl: float
) -> ServiceError | None:
    """What a signal says of drafts; None if it says nothing of them."""
    match signal:
        case Clash(index=index):
            which = f"event {index}: " if len(drafts) > 1 else ""
            return Conflict(f"{which}this id was used before with another truth")
        case Missing(index=index):
            return unknown(learner, drafts[index].take or "", ttl)
        case Stale():
            return Conflict("the prediction has changed meanwhile: send it again")
        case Closed():
            return NotFound(f"there is no {learner.title}")
    return None


def unknown(learner: LoadedLearner, id: str, ttl: float) -> NotFound | Gone:
    """Why there is no such prediction; `ttl` is the seconds for which one is remembered."""
    at = predicted_at(learner.log, id)
    if at is not None and at + ttl <= time.time():
        return Gone(f"the prediction {id!r} has expired: send the instance again with the truth")
    return NotFound(f"{learner.entry.name!r} has given no prediction {id!r}")
