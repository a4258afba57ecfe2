"""Experiments by name: made, asked, read, paused, stopped, promoted, deleted. Plain JSON values in and out.

One document an experiment, `{"log", "definition", "specs"}`, never changed. A log is named by chance, so a name that
is given away again has nothing of its past. Nothing runs in the background: what must be done is done beside a request.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

import orjson

from feedrank.service.errors import Conflict, NotFound, Unprocessable
from feedrank.service.experiments import plan as plans
from feedrank.service.experiments import trace, verdict
from feedrank.service.experiments.live import Live
from feedrank.service.experiments.plan import Plan
from feedrank.service.experiments.rounds import Rounds
from feedrank.service.host import Host
from feedrank.service.host.requests import known
from feedrank.service.store import Closed, Document, Draft, Stale

JSON = dict[str, Any]
KIND = "experiment"
LONGEST_PAGE = 1000


class Experiments:
    """All experiments of a host."""

    def __init__(self, host: Host) -> None:
        self.host, self._store = host, host.store
        self._rounds = Rounds(host)
        self._live: dict[str, Live] = {}

    async def create(self, name: str, definition: Mapping[str, Any]) -> tuple[JSON, bool]:
        """Make an experiment: (info, True); (info, False) if it is there and equal; Conflict if it is another."""
        plan, specs = await self._plan(name, definition)
        while True:
            held = await self._store.get(KIND, name)
            if held is not None and not (await self._store.head(orjson.loads(held.value)["log"])).closed:
                if orjson.loads(held.value)["definition"] != plan.to_json():
                    raise Conflict(
                        f"there is an experiment {name!r} with another definition, which never changes"
                    )
                return await self.info(name), False
            value = {"log": secrets.token_hex(12), "definition": plan.to_json(), "specs": specs}
            try:
                # A document whose log is closed is what a crash left of a deletion: the name is free.
                await self._store.put(KIND, name, orjson.dumps(value), 0 if held is None else held.revision)
            except Stale:
                continue
            return await self.info(name), True

    async def _plan(self, name: str, definition: Mapping[str, Any]) -> tuple[Plan, list[JSON]]:
        arms, shadow = plans.names(definition)
        specs = []
        for place, own in (("arms", arms), ("shadow", shadow)):
            for index, learner in enumerate(own):
                try:
                    info = await self.host.info(learner)
                except NotFound as error:
                    raise Unprocessable.at(f"/{place}/{index}", error.detail) from None
                if info["name"] != learner:
                    raise Unprocessable.at(
                        f"/{place}/{index}", f"is an alias, which may be switched: name {info['name']!r}"
                    )
                specs.append(info["spec"])
        return plans.read(name, definition, specs), specs

    async def info(self, name: str) -> JSON:
        """The definition, and what may be said now."""
        live = await self._use(name)
        await live.follow()
        return {
            "name": name,
            "definition": live.plan.to_json(),
            "method": live.plan.method,
            "measure": live.plan.measure.text,
            "confidence": live.plan.confidence,
            **verdict.report(live.plan, live.state),
        }

    async def history(self, name: str) -> JSON:
        """`{"version", "arms": [[one, other], ...], "points": [{"events", "differences": [...]}, ...]}`, thinned."""
        live = await self._use(name)
        await live.follow()
        plan, state = live.plan, live.state
        pairs = [(i, j) for i, j, _ in state.each_pair()]
        alpha, version = (1 - plan.confidence) / len(pairs), state.events
        points = state.trace.up_to(version, state.pairs)
        # Solving for the intervals of many arms takes a while.
        told = await asyncio.to_thread(
            trace.solved, points, alpha, [verdict.bound(plan, i, j) for i, j in pairs]
        )
        return {
            "version": version,
            "arms": [[plan.arms[i], plan.arms[j]] for i, j in pairs],
            "points": told,
        }

    async def page(self, limit: int = 100, after: str | None = None) -> JSON:
        """`{"experiments": [{"name", "method", "measure"}], "next"}` in order of name."""
        if not 1 <= limit <= LONGEST_PAGE:
            raise Unprocessable.at("/limit", f"must be from 1 to {LONGEST_PAGE}")
        found = await self._store.page(KIND, after or "", limit + 1)
        told = []
        for name, document in found[:limit]:
            definition = orjson.loads(document.value)["definition"]
            told.append(
                {"name": name, **{field: definition[field] for field in ("arms", "method", "measure")}}
            )
        return {"experiments": told, "next": told[-1]["name"] if len(found) > limit else None}

    async def delete(self, name: str) -> None:
        """Remove an experiment and its log; its learners stay."""
        held = await self._held(name)
        self._live.pop(name, None)
        await self._store.drop(orjson.loads(held.value)["log"])
        try:
            await self._store.remove(KIND, name, held.revision)
        except Stale:
            raise Conflict(
                f"the experiment {name!r} is being deleted or made anew by somebody else"
            ) from None

    async def predict(self, name: str, request: Mapping[str, Any]) -> JSON:
        """As a learner's, with `"unit"`."""
        return await self._rounds.predict(await self._use(name), request)

    async def feedback(self, name: str, request: Mapping[str, Any], key: str | None = None) -> JSON:
        """As a learner's; credits the arms and teaches them."""
        try:
            return await self._rounds.feedback(await self._use(name), request, key)
        except NotFound:
            self._live.pop(name, None)
            raise

    async def step(self, name: str, step: str) -> JSON:
        """`pause` (all are served by the first arm, nothing new is counted), `resume`, or `stop` for good."""
        live = await self._use(name)
        await live.follow()
        if live.state.status == "stopped" and step != "stop":
            raise Conflict(f"the experiment {name!r} is stopped: make a new one")
        await self._note(live, {"kind": step})
        return await self.info(name)

    async def promote(self, name: str, request: Mapping[str, Any]) -> JSON:
        """Switch the alias to the winner (or to the `arm` named) at once for all replicas, and stop."""
        known(request, frozenset({"arm", "alias"}))
        live = await self._use(name)
        await live.follow()
        arm = request.get("arm", verdict.report(live.plan, live.state)["verdict"])
        alias = request.get("alias", live.plan.alias)
        if arm == verdict.UNDECIDED:
            raise Conflict("the verdict is undecided: wait, or name the `arm` to promote")
        if arm not in live.plan.arms:
            raise Unprocessable.at("/arm", f"must be one of {', '.join(live.plan.arms)}")
        if not isinstance(alias, str):
            raise Unprocessable.at("/alias", "is required: the name that apps call")
        # The alias first: it may be refused, and promoting twice does no harm.
        await self.host.alias(alias, arm)
        await self._note(live, {"kind": "promote", "arm": arm, "alias": alias})
        return await self.info(name)

    async def values(self, name: str, most: int = 100_000) -> list[float]:
        """The measured values in the log, for an A/A check on traffic like this one's."""
        live = await self._use(name)
        await live.follow()
        found: list[float] = []
        head = await self._store.head(live.key)
        at = head.floor - 1
        while len(found) < most and (entries := await self._store.read(live.key, at, 256)):
            for entry in entries:
                event = orjson.loads(entry.body)
                own = event.get("credits") or [event.get("value")]
                found.extend(value for value in own if value is not None)
            at = entries[-1].version
        return found[:most]

    async def _note(self, live: Live, event: JSON) -> None:
        try:
            (placed,) = await self._store.append(live.key, [Draft(orjson.dumps(event))])
        except Closed:
            raise NotFound(f"there is no experiment {live.name!r}") from None
        await live.follow(placed.version)

    async def _held(self, name: str) -> Document:
        held = await self._store.get(KIND, name)
        if held is None:
            raise NotFound(f"there is no experiment {name!r}")
        return held

    async def _use(self, name: str) -> Live:
        live = self._live.get(name)
        if live is not None and not await live.gone():
            return live
        told = orjson.loads((await self._held(name)).value)
        plan = plans.read(name, told["definition"], told["specs"])
        live = Live(name, told["log"], plan, told["specs"], self._store, self.host.settings)
        await live.load()
        self._live[name] = live
        return live
