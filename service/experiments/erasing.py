"""Erasing a subject out of experiments: out of the arms first, then out of the log and what it remembers.

The arms learned under ids of the log and the version, so that nothing of an event is left where the subject is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import orjson

from feedrank.service.contract.faults import Gone, NotFound
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.messages import encode
from feedrank.service.contract.naming import every_name
from feedrank.service.runtime import Host
from feedrank.service.runtime.eraser import Target
from feedrank.service.runtime.folding import PAGE
from feedrank.service.runtime.retractor import append_retractions

from .cache import KIND, ExperimentCache
from .loaded import LoadedExperiment
from .logbook import Logbook
from .records import lesson_id


class ExperimentEraser:
    """Of all experiments of a host."""

    def __init__(self, host: Host, cache: ExperimentCache, logbook: Logbook) -> None:
        self._host, self._cache, self._logbook = host, cache, logbook
        host.erase.owners[KIND] = self._erase

    async def everywhere(self, subject: str, reaches: Callable[[str], bool] = every_name) -> dict[str, JSON]:
        """The receipts of all experiments that have something of a hashed subject and that the caller reaches, by name."""
        receipts, after = dict[str, JSON](), ""
        while documents := await self._host.store.page(KIND, after, PAGE):
            after = documents[-1][0]
            for name, document in documents:
                log: str = orjson.loads(document.value)["log"]
                if not reaches(name) or (await self._host.store.head(log)).closed:
                    continue
                target = await self._host.erase.search(log, subject)
                if target.sums:
                    done = await self._host.erase.begin((KIND, name), log, target, subject)
                    receipts[name] = {
                        "erased": len(target.sums),
                        "checksums": target.sums,
                        "version": 0,
                        **done,
                    }
        return receipts

    async def _erase(self, name: str, target: Target) -> JSON:
        async with self._cache.use(name) as live:
            pending = await self._from_arms(live, target)
            if target.versions:
                bodies = {at: encode({"kind": "retract", "version": at}) for at in target.versions}
                places = await append_retractions(
                    self._host.store, live.log, bodies, partial(self._logbook.append, live)
                )
                await live.advance(max(place.version for place in places))
                pending = pending or any(place.version in live.unsettled for place in places)
            await live.saver.settle()  # as of a learner
            await self._host.erase.let_go(live.log, target)
            return {"version": live.version, "state": "pending" if pending else "done"}

    async def _from_arms(self, live: LoadedExperiment, target: Target) -> bool:
        """Erase what arms have learned of the events; whether one of them is still being folded again."""
        pending = False
        for version in target.versions:
            for arm in (*live.plan.arms, *live.plan.shadow):
                try:
                    done = await self._host.erase(arm, {"feedback_id": lesson_id(live, version)})
                except (NotFound, Gone):
                    continue  # it never learned the event, has nothing of it any more, or is gone itself
                pending = pending or done["state"] == "pending"
        return pending
