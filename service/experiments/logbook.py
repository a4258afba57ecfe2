"""The one way into the log of an experiment: append drafts, and hand them to the fold without reading them again.

The first entry of an append also says how many rounds the arms have served here since the last one. A count belongs to
nobody's event: it is given back if the append fails or was there before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson

from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.messages import encode
from feedrank.service.contract.settings import Settings
from feedrank.service.runtime.appending import append, hand_over
from feedrank.service.store import Diverged, Draft, Placement, Store

from .loaded import LoadedExperiment, LoggedRound


class Logbook:
    """Of all experiments of a host."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store, self._settings = store, settings

    async def append(self, live: LoadedExperiment, drafts: Sequence[Draft]) -> list[Placement]:
        """All of the drafts or none; see `appending.append`."""
        served = None if drafts[0].retracts else live.served.take()
        if served is not None:
            body = encode({**orjson.loads(drafts[0].body), "served": served})
            drafts = [replace(drafts[0], body=body), *drafts[1:]]
        fresh = False
        try:
            placements = await self._append(live, drafts)
            fresh = placements[0].fresh
        finally:
            if served is not None and not fresh:
                live.served.give_back(served)
        hand_over(live, [LoggedRound.of(draft) for draft in drafts], placements)
        return placements

    async def _append(self, live: LoadedExperiment, drafts: Sequence[Draft]) -> list[Placement]:
        ttl = self._settings.prediction_ttl
        try:
            return await append(self._store, live, drafts, ttl, ordered=False)
        except Diverged:
            async with live.order:
                return await append(self._store, live, drafts, ttl)

    async def note(self, live: LoadedExperiment, event: JSON) -> None:
        """Append an event without an id, and fold it."""
        (placement,) = await self.append(live, [Draft(encode(event))])
        await live.advance(placement.version)
