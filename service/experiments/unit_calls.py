"""Calls about units: assign one without ranking, tell of one what no prediction brings, list them, and let more in.

assign   the arm of a unit; with `per` an exposure, in the log before the reply
events   a value of a unit: of a guardrail, or with `per` also of the measure that decides
units    each unit with all that its part in the verdict is computed from
ramp     a larger share of the units by the same draw: nobody leaves, and nobody changes the arm
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from math import isnan

from feedrank.service.contract.faults import Conflict, Unprocessable, stopped
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.contract.messages import (
    LONGEST_PREDICTION_ID,
    ErrorScope,
    batch_of,
    encode,
    id_of,
    only,
    truth_digest,
)
from feedrank.service.contract.naming import check_limit
from feedrank.service.runtime import Host
from feedrank.service.store import Draft

from . import records
from .assignment import hashed
from .loaded import LoadedExperiment
from .logbook import Logbook
from .measures import Measure
from .per import number
from .state import RUNNING, STOPPED
from .unit_table import UnitTable

ASSIGN = frozenset({"unit", "before", "segments", "prediction_id"})
EVENT = frozenset({"unit", "metric", "value", "feedback_id"})
RAMP = frozenset({"share"})


class UnitCalls:
    """Called with an experiment and a request of the contract."""

    def __init__(self, host: Host, logbook: Logbook) -> None:
        self._cursors, self._settings, self._logbook = host.cursors, host.settings, logbook

    async def assign(self, live: LoadedExperiment, request: Body) -> JSON:
        """`{"experiment", "unit", "arm", "counted"}`: who is not counted is served by the first, or the promoted, arm."""
        only(request, ASSIGN)
        unit, id = _unit(live, request), id_of(request, "prediction_id", LONGEST_PREDICTION_ID)
        counted = live.figures.status == RUNNING and live.plan.assignment.takes_part(unit, live.figures.share)
        arm = live.plan.assignment.arm(unit) if counted else live.incumbent
        record: JSON = {"counted": counted, "unit": unit, "arm": arm}
        if (before := records.before_of(request)) is not None:
            record["before"] = before
        if (segments := records.segments_of(live, request)) is not None:
            record["segments"] = segments
        if (draft := records.exposure(live, record, time.time(), id)) is not None:
            (place,) = await self._logbook.append(live, [draft])
            await live.advance(place.version)
        return {"experiment": live.name, "unit": unit, "arm": live.plan.arms[arm], "counted": counted}

    async def events(self, live: LoadedExperiment, request: Body, key: str | None) -> JSON:
        """`{"version", "unit", "arm", "metric", "value", "duplicate"}`, or the `results` of a batch, all or none."""
        if "events" not in request:
            (result,) = await self._write(live, [self._read(live, request, key)])
            return result
        batch = batch_of(request, "events", self._settings.max_batch)
        drafts = []
        for i, one in enumerate(batch):
            with ErrorScope(f"/events/{i}"):
                drafts.append(self._read(live, one, None if key is None else f"{key}/{i}"))
        return {"results": await self._write(live, drafts)}

    def _read(self, live: LoadedExperiment, request: Body, key: str | None) -> Draft:
        only(request, EVENT)
        unit, plan = _unit(live, request), live.plan
        measure = _measure_of(live, request.get("metric"))
        if "value" not in request:
            raise Unprocessable.at("/value", "missing field `value`")
        value = records.bounded(request["value"], "/value", [plan.rules[measure]])
        counted = plan.assignment.takes_part(unit, live.figures.share)
        body: JSON = {
            "kind": "value",
            "unit": unit if plan.per is not None else hashed(plan.seed, "unit", unit),
            "arm": plan.assignment.arm(unit) if counted else None,
            "measure": measure,
            "value": value,
            "at": time.time(),
        }
        id = id_of(request, "feedback_id") or id_of({"feedback_id": key}, "feedback_id")
        digest = truth_digest({"unit": unit, "measure": measure, "value": value})
        return Draft(encode(body), () if id is None else (f"f:{id}",), digest)

    async def _write(self, live: LoadedExperiment, drafts: Sequence[Draft]) -> list[JSON]:
        """Once begun it is finished, even if the one who asked has gone."""
        return await asyncio.shield(asyncio.create_task(self._commit(live, drafts)))

    async def _commit(self, live: LoadedExperiment, drafts: Sequence[Draft]) -> list[JSON]:
        live.appending += 1
        try:
            places = await self._logbook.append(live, drafts)
            await live.advance(max(place.version for place in places))
            done = [(place, await live.outcome(place.version)) for place in places]
        finally:
            live.appending -= 1
        return [
            {
                "version": place.version,
                "arm": None if event["arm"] is None else live.plan.arms[event["arm"]],
                "metric": _names(live)[event["measure"]],
                "value": event["value"],
                "duplicate": not place.fresh,
            }
            for place, event in done
        ]

    async def page(self, live: LoadedExperiment, cursor: str | None, limit: int) -> JSON:
        """`{"units": [...], "next"}`, in the order of first exposures; without `per`, in that in which they counted."""
        check_limit(limit)
        plan, table = live.plan, live.figures.units
        if table is None and not plan.lists_firsts:
            raise Conflict("units are listed of a split that counts them")
        of = f"units of {live.log}"
        after = int(await self._cursors.open(of, cursor) or 0)
        shown = (
            _by_first_outcome(live, after, limit) if table is None else _exposed(live, table, after, limit)
        )
        end = after + len(shown)
        size = len(live.figures.firsts[0]) if table is None else len(table)
        return {"units": shown, "next": await self._cursors.seal(of, str(end)) if end < size else None}

    async def ramp(self, live: LoadedExperiment, request: Body) -> None:
        """Let a larger share of the units in."""
        only(request, RAMP)
        if "share" not in request:
            raise Unprocessable.at("/share", "missing field `share`")
        share = number(request["share"], "/share")
        if not 0 < share <= 1:
            raise Unprocessable.at("/share", "must be a share above 0 and of at most 1")
        await live.follow()
        if live.figures.status == STOPPED:
            raise stopped(live.name)
        if share < live.figures.share:
            raise Conflict(
                f"the share is {live.figures.share:g} and never becomes smaller: those who are in would leave. "
                "Use `pause` to serve everybody by the first arm"
            )
        await self._logbook.note(live, {"kind": "ramp", "share": share})


def _unit(live: LoadedExperiment, request: Body) -> str:
    if not live.plan.split:
        raise Conflict(
            "every list of an interleaved experiment is made by all arms: a unit has none of its own"
        )
    unit = id_of(request, "unit")
    if unit is None:
        raise Unprocessable.at("/unit", "missing field `unit`")
    return unit


def _exposed(live: LoadedExperiment, table: UnitTable, after: int, limit: int) -> list[JSON]:
    """Units with `per`, by their names."""
    plan, names = live.plan, _names(live)
    return [
        {
            "unit": unit,
            "arm": plan.arms[table.arms[row]],
            "first_exposure": table.first[row],
            "exposures": 1 + table.again[row],
            "counted": row < table.closed,
            "before": None if isnan(table.before[row]) else table.before[row],
            "segments": {
                name: value for name, value in zip(plan.segments, group, strict=True) if value is not None
            },
            "values": {
                name: table.value(row, measure, rule) * rule.scale
                for measure, (name, rule) in enumerate(zip(names, plan.rules, strict=True))
            },
        }
        for unit, row, group in table.page(after, limit)
    ]


def _by_first_outcome(live: LoadedExperiment, after: int, limit: int) -> list[JSON]:
    """Units that count by their first outcome, by the hashes that the log has of them."""
    plan, state, names = live.plan, live.figures, _names(live)
    first, shown = state.firsts[0], list[JSON]()
    for unit, row, outcomes, x in first.page(state.main, after, limit):
        values = [
            each.value_of(levels, unit) for each, levels in zip(state.firsts, state.figures, strict=True)
        ]
        shown.append(
            {
                "unit": f"{unit:016x}",
                "arm": plan.arms[first.arms[row]],
                "first_exposure": first.at[row],
                "exposures": outcomes,
                "counted": True,
                "before": None if isnan(x) else x,
                "segments": {},
                "values": {
                    name: value for name, value in zip(names, values, strict=True) if value is not None
                },
            }
        )
    return shown


def _names(live: LoadedExperiment) -> list[str]:
    """What the values of the measures are called: the name of the measure; where two have one, with its rule."""
    plan, main = live.plan, live.measure
    texts = [(plan.named or "value") if main is None else main.text]
    texts += [guardrail.measure.text for guardrail in plan.guardrails]
    texts += [] if plan.over is None else [plan.over.text]
    return [
        f"{text} ({rule.value})" if texts.count(text) > 1 else text
        for text, rule in zip(texts, plan.rules, strict=True)
    ]


def _measure_of(live: LoadedExperiment, metric: object) -> int:
    """The number of the measure that `metric` names, with or without `metric:` and `cost:`."""
    plan = live.plan
    measures: list[Measure | None] = [live.measure if plan.per is not None else None]
    measures += [guardrail.measure for guardrail in plan.guardrails]
    measures += [] if plan.over is None else [plan.over]
    texts = _names(live)
    for index, measure in enumerate(measures):
        if measure is None or not isinstance(metric, str):
            continue
        if metric in (texts[index], measure.text) or (measure.is_metric and metric == measure.noun):
            return index
    offered = ", ".join(text for text, measure in zip(texts, measures, strict=True) if measure is not None)
    raise Unprocessable.at(
        "/metric",
        f"must be one of the measures of the definition: {offered}"
        if offered
        else "the definition has no measure that comes by unit: add `per`, or a guardrail such as `metric:revenue`",
    )
