"""Append drafts to the log of a follower, learner or experiment alike, and say in the caller's words what is refused."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from feedrank.service.contract.faults import Conflict, Gone, NotFound, ServiceError, no_such
from feedrank.service.contract.prediction_ids import predicted_at
from feedrank.service.store import (
    Clash,
    Closed,
    Diverged,
    Draft,
    Missing,
    Placement,
    Position,
    Stale,
    Store,
    StoreSignal,
)

from .folding import E, Pending, S
from .follower import Follower


def last_of(follower: Follower[S, E]) -> Position | None:
    """Where the log is, as far as the follower knows: behind what waits to be applied."""
    for version in reversed(follower.pending):
        return Position(version, follower.pending[version].chain)
    return follower.position


async def append(
    store: Store, follower: Follower[S, E], drafts: Sequence[Draft], ttl: float, *, ordered: bool = True
) -> list[Placement]:
    """Append to the log; what the store says, as what it means for the caller. Predictions are remembered for `ttl`.

    Another history than the follower's is Diverged, but for who has the follower's `order`: it is then folded again.
    """
    try:
        try:
            return await store.append(follower.log, drafts, last_of(follower))
        except Diverged as error:
            if not ordered:
                raise
            await follower.forward(await follower.diverged(error))
            return await store.append(follower.log, drafts, last_of(follower))
    except StoreSignal as signal:
        if (refused := refusal(signal, follower, drafts, ttl)) is None:
            raise
        raise refused from signal


def hand_over(follower: Follower[S, Any], events: Sequence[Any], placements: Sequence[Placement]) -> None:
    """Let the follower apply what was just appended without reading it again."""
    version = follower.version
    for event, place in zip(events, placements, strict=True):
        if place.fresh and place.version > version:
            event.at = place.at
            follower.pending[place.version] = Pending(event, 0, place.chain, place.previous)


def refusal(
    signal: StoreSignal, follower: Follower[S, E], drafts: Sequence[Draft], ttl: float
) -> ServiceError | None:
    """What a signal says of drafts; None if it says nothing of them."""
    match signal:
        case Clash(index=index):
            which = f"event {index}: " if len(drafts) > 1 else ""
            return Conflict(f"{which}this id was used before with another truth")
        case Missing(index=index):
            return unknown(follower, drafts[index].take or "", ttl)
        case Stale():
            return Conflict("the prediction has changed meanwhile: send it again")
        case Closed():
            return no_such(follower.title)
    return None


def unknown(follower: Follower[S, E], id: str, ttl: float) -> NotFound | Gone:
    """Why there is no such prediction; `ttl` is the seconds for which one is remembered."""
    at = predicted_at(follower.log, id)
    if at is not None and at + ttl <= time.time():
        return Gone(f"the prediction {id!r} has expired: send the instance again with the truth")
    return NotFound(f"{follower.title} has given no prediction {id!r}")
