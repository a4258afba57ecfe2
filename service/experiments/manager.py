"""All calls on experiments: create, predict, feedback, read, pause, stop, promote, retract, delete. Plain JSON in and out.

What falls due is settled by the host's sweeper.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable

import orjson

from feedrank.service.contract.faults import Conflict, NotFound, Unprocessable, stopped
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.contract.messages import flag, only
from feedrank.service.contract.naming import check_limit, every_name
from feedrank.service.runtime import Host
from feedrank.service.store import Due, Entry, Stale

from . import plan as plans
from . import trace, verdict
from .cache import KIND, ExperimentCache
from .crediting import Crediting
from .erasing import ExperimentEraser
from .evaluation import Evaluation, confidence_of, first_place
from .loaded import LoadedExperiment
from .logbook import Logbook
from .plan import Plan
from .serving import Serving
from .teaching import Teaching
from .unit_calls import UnitCalls


class Experiments:
    """All experiments of a host."""

    def __init__(self, host: Host) -> None:
        self.host, self._store = host, host.store
        self._logbook = Logbook(host.store, host.settings)
        self._serving, self._units = Serving(host, self._logbook), UnitCalls(host, self._logbook)
        self._crediting = Crediting(host, self._logbook, self._serving, Teaching(host))
        self._cache = ExperimentCache(host)
        self._evaluation = Evaluation(host)
        self._eraser = ExperimentEraser(host, self._cache, self._logbook)
        host.sweeper.owners[KIND] = self._settle

    async def close(self) -> None:
        """Save what is in memory."""
        await self._cache.close()

    @property
    def loaded(self) -> list[str]:
        """The names of those in memory, the least recently used first."""
        return self._cache.loaded

    async def create(self, name: str, definition: Body) -> tuple[JSON, bool]:
        """Make an experiment: (info, True); (info, False) if it is there and equal; Conflict if it is another."""
        plan, specs = await self._plan(name, definition)
        while True:
            stored = await self._store.get(KIND, name)
            value = {} if stored is None else orjson.loads(stored.value)
            if stored is not None and not (await self._store.head(value["log"])).closed:
                # A definition that was written before a field was there has its default.
                if plans.read(name, value["definition"], value["specs"]).to_json() != plan.to_json():
                    raise Conflict(
                        f"there is an experiment {name!r} with another definition, which never changes"
                    )
                return await self.info(name), False
            value = {"log": secrets.token_hex(12), "definition": plan.to_json(), "specs": specs}
            try:
                # A document whose log is closed is what a crash left of a deletion: the name is free.
                await self._store.put(
                    KIND, name, orjson.dumps(value), 0 if stored is None else stored.revision
                )
            except Stale:
                continue
            return await self.info(name), True

    async def _plan(self, name: str, definition: Body) -> tuple[Plan, list[JSON]]:
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
                        f"/{place}/{index}", f"is an alias: use the learner {info['name']!r}"
                    )
                specs.append(info["spec"])
        return plans.read(name, definition, specs), specs

    async def info(self, name: str) -> JSON:
        """The definition, and what may be said now."""
        async with self._cache.use(name) as live:
            await self._crediting.catch_up(live)
        return {
            "name": name,
            "definition": live.plan.to_json(),
            "method": live.plan.method,
            "confidence": live.plan.confidence,
            **verdict.report(live.plan, live.figures),
        }

    async def history(self, name: str) -> JSON:
        """`{"version", "arms": [[one, other], ...], "points": [{"events", "differences": [...]}, ...]}`, thinned."""
        async with self._cache.use(name) as live:
            await live.follow()
        plan, state = live.plan, live.figures
        # The end of the chart is what stands beside it.
        now = [trace.moment(one) for one in verdict.report(plan, state)["differences"]]
        points = state.trace.up_to(state.events, now)
        return {
            "version": state.events,
            "arms": [[plan.arms[i], plan.arms[j]] for _, i, j in state.main.each_pair()],
            "points": [trace.as_json(point) for point in points],
        }

    async def page(
        self, limit: int = 100, cursor: str | None = None, reaches: Callable[[str], bool] = every_name
    ) -> JSON:
        """`{"experiments": [{"name", "arms", "method", "measure"}], "next"}`, those that the caller reaches."""
        check_limit(limit)
        after = await self.host.cursors.open("experiments", cursor)
        shown: list[JSON] = []
        while True:
            documents = await self._store.page(KIND, after, limit + 1)
            for name, document in documents:
                if not reaches(name):
                    continue
                if len(shown) == limit:
                    following = await self.host.cursors.seal("experiments", shown[-1]["name"])
                    return {"experiments": shown, "next": following}
                definition = orjson.loads(document.value)["definition"]
                shown.append(
                    {"name": name, **{field: definition[field] for field in ("arms", "method", "measure")}}
                )
            if len(documents) <= limit:
                return {"experiments": shown, "next": None}
            after = documents[-1][0]

    async def delete(self, name: str) -> None:
        """Remove an experiment and its log; its learners stay."""
        stored = await self._cache.document(name)
        self._cache.forget(name)
        await self._store.drop(orjson.loads(stored.value)["log"])
        try:
            await self._store.remove(KIND, name, stored.revision)
        except Stale:
            raise Conflict(
                f"the experiment {name!r} is being deleted or created by another request"
            ) from None

    async def predict(self, name: str, request: Body) -> JSON:
        """As a learner's, with `"unit"`."""
        async with self._cache.use(name) as live:
            return await self._serving(live, request)

    async def feedback(self, name: str, request: Body, key: str | None = None) -> JSON:
        """As a learner's; credits the arms and teaches them."""
        async with self._cache.use(name) as live:
            return await self._crediting.feedback(live, request, key)

    async def clicks(self, name: str, request: Body) -> JSON:
        """As a learner's: clicks join until the window of their prediction is over."""
        async with self._cache.use(name) as live:
            return await self._crediting.clicks(live, request)

    async def retract(self, name: str, request: Body) -> JSON:
        """As a learner's; out of the arms and out of the figures."""
        async with self._cache.use(name) as live:
            return await self._crediting.retract(live, request)

    async def assign(self, name: str, request: Body) -> JSON:
        """The arm of a unit, without ranking anything."""
        async with self._cache.use(name) as live:
            return await self._units.assign(live, request)

    async def events(self, name: str, request: Body, key: str | None = None) -> JSON:
        """Values of units that no prediction brings."""
        async with self._cache.use(name) as live:
            return await self._units.events(live, request, key)

    async def units(self, name: str, cursor: str | None = None, limit: int = 100) -> JSON:
        """A page of the units, and what the verdict is computed from."""
        async with self._cache.use(name) as live:
            await self._crediting.catch_up(live)
            return await self._units.page(live, cursor, limit)

    async def ramp(self, name: str, request: Body) -> JSON:
        """Let a larger share of the units in."""
        async with self._cache.use(name) as live:
            await self._units.ramp(live, request)
        return await self.info(name)

    async def erase(self, request: Body, reaches: Callable[[str], bool] = every_name) -> JSON:
        """Everything of a `subject`, in all learners and experiments that the caller reaches."""
        only(request, frozenset({"subject"}))
        if not (subject := await self.host.subjects.of(request)):
            raise Unprocessable.at("/subject", "missing field `subject`")
        receipts = {
            "experiments": await self._eraser.everywhere(subject, reaches),
            "learners": await self.host.erase.everywhere(subject, reaches),
        }
        every = [receipt for receipts_of in receipts.values() for receipt in receipts_of.values()]
        done = all(receipt["state"] == "done" for receipt in every)
        done = done and await self.host.erase.finished(subject=subject)
        return {
            "erased": sum(receipt["erased"] for receipt in every),
            "checksums": [sum for receipt in every for sum in receipt["checksums"]],
            "version": max((receipt["version"] for receipt in every), default=0),
            "state": "done" if done else "pending",
            **receipts,
        }

    async def evaluate(self, name: str, request: Body) -> JSON:
        """What another ranker would have earned on an interleaved log: clicks on what it would have put first."""
        only(request, frozenset({"spec", "learner", "policy", "confidence"}))
        async with self._cache.use(name) as live:
            if live.plan.split or not live.specs[0]["task"].endswith("ranking"):
                raise Conflict(
                    "only interleaved experiments can be evaluated: evaluate on the log of one of the arms"
                )
            alpha = confidence_of(request)
            trial = await self._evaluation.first_places(request, dict(live.specs[0]))
            async for entry in self._entries(live):
                if (choice := first_place(entry.body, entry.taken)) is not None:
                    await asyncio.to_thread(trial.apply, choice)
            return {"experiment": name, "confidence": 1 - alpha, **trial.report(alpha)}

    async def step(self, name: str, step: str) -> JSON:
        """`pause` (all are served by the first arm, nothing new is counted), `resume`, or `stop` for good."""
        async with self._cache.use(name) as live:
            await live.follow()
            if live.figures.status == "stopped" and step != "stop":
                raise stopped(name)
            await self._logbook.note(live, {"kind": step})
        return await self.info(name)

    async def promote(self, name: str, request: Body) -> JSON:
        """Switch the alias to the winner (or to the `arm` named) at once for all replicas, and stop."""
        only(request, frozenset({"arm", "alias", "override"}))
        async with self._cache.use(name) as live:
            await self._crediting.catch_up(live)
            arm, alias = self._winner(live, request)
            replaced = await self._learner_behind(alias)
            # The alias first: it may be refused, and promoting twice does no harm.
            await self.host.alias(alias, arm)
            event = {"kind": "promote", "arm": arm, "alias": alias, "replaced": replaced}
            await self._logbook.note(live, event)
        return await self.info(name)

    async def _learner_behind(self, alias: str) -> str | None:
        """What an alias stands for now: that to which a promotion can be taken back."""
        try:
            return str((await self.host.info(alias))["name"])
        except NotFound:
            return None

    def _winner(self, live: LoadedExperiment, request: Body) -> tuple[str, str]:
        """The arm to promote and the alias to switch; Conflict where the figures do not allow it."""
        report = verdict.report(live.plan, live.figures)
        arm, alias = request.get("arm", report["verdict"]), request.get("alias", live.plan.alias)
        if arm == verdict.UNDECIDED:
            raise Conflict("the verdict is undecided: wait, or name the `arm` to promote")
        if arm not in live.plan.arms:
            raise Unprocessable.at("/arm", f"must be one of {', '.join(live.plan.arms)}")
        if not isinstance(alias, str):
            raise Unprocessable.at("/alias", "is required: the alias that your apps call")
        stopping = [
            each["measure"] for each in report["guardrails"] if each["arm"] == arm and not each["passed"]
        ]
        if stopping and not flag(request, "override", False):
            raise Conflict(
                f"{arm!r} may be worse than {live.plan.arms[0]!r} by more than the limit on {', '.join(stopping)}: "
                "wait, or promote anyway with `override`"
            )
        return arm, alias

    async def values(self, name: str, most: int = 100_000) -> list[float]:
        """The measured values in the log, or of units that have counted, for an A/A check on traffic like this one's."""
        values: list[float] = []
        async with self._cache.use(name) as live:
            if (units := live.figures.units) is not None:
                await self._crediting.catch_up(live)
                first = range(max(0, units.closed - most), units.closed)
                return [units.value(row, 0, live.plan.rules[0]) for row in first]
            async for entry in self._entries(live):
                event = orjson.loads(entry.body)
                own = event.get("credits") or [event.get("value")]
                values.extend(value for value in own if value is not None)
                if len(values) >= most:
                    break
        return values[:most]

    async def units_per_day(self, name: str) -> float:
        """How many new units came in a day, by what is kept of the log; 0 where that is less than a minute."""
        async with self._cache.use(name) as live:
            await live.follow()
            if (table := live.figures.units) is not None:
                times = list(table.first)
            else:
                first: dict[object, float] = {}
                async for entry in self._entries(live):
                    event = orjson.loads(entry.body)
                    first.setdefault(event.get("unit", entry.version), entry.at)
                times = list(first.values())
        span = times[-1] - times[0] if times else 0.0
        return 86400.0 * len(times) / span if span >= 60 else 0.0

    async def _entries(self, live: LoadedExperiment) -> AsyncIterator[Entry]:
        """The log, without what was retracted."""
        at = (await self._store.head(live.log)).floor - 1
        while entries := await self._store.read(live.log, at, 256):
            for entry in entries:
                if not (entry.retracted or entry.erased):
                    yield entry
            at = entries[-1].version

    async def _settle(self, due: Due, name: str, stored: bytes, record: JSON) -> None:
        """The time of a round is over."""
        try:
            async with self._cache.use(name) as live:
                if live.log == due.log:
                    await self._crediting.due(live, due.key, stored, record)
        except NotFound:
            return  # deleted meanwhile: its records go with its log
