"""Entries that change what earlier ones did, retractions and renames: appended, and the learner folded again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

import orjson

from feedrank.service.store import Closed, Placement, Store

from .folding import E, S
from .follower import Follower
from .learner_state import LoadedLearner
from .memory import Memory


class Amender:
    """Called with a learner and what appends the entries; where they are, once the learner has got to them."""

    def __init__(self, store: Store, memory: Memory) -> None:
        self._store, self._memory = store, memory

    async def __call__(
        self, learner: LoadedLearner, append: Callable[[], Awaitable[list[Placement]]]
    ) -> list[Placement]:
        learner.users += 1
        learner.appending += 1
        try:
            async with learner.order:
                await self._keep_outcomes(learner, learner.newest)
                places = await append()
                fresh = [place.version for place in places if place.fresh]
                if fresh:  # what came in between was applied as it was before
                    await self._keep_outcomes(learner, fresh[0] - 1)
                await learner.forward(max(place.version for place in places))
        finally:
            learner.appending -= 1
            learner.users -= 1
            self._memory.keep_up(learner)
        return places

    async def _keep_outcomes(self, learner: LoadedLearner, to: int) -> None:
        """Save the first replies up to a version: folded again, they would be others."""
        await learner.forward(to)
        outcomes = {at: orjson.dumps(outcome) for at, outcome in learner.outcomes.items()}
        if outcomes:
            with suppress(Closed):  # the append will say so
                await self._store.keep_outcomes(learner.log, outcomes)


def state_of(follower: Follower[S, E], *places: Placement) -> str:
    """`done`, or `pending` while it is being folded again in the background."""
    return "pending" if any(place.version in follower.unsettled for place in places) else "done"
