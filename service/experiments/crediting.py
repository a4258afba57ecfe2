"""Feedback, clicks and retractions of an experiment: appended to its log once, then passed on to the arms.

feedback   measured against the record of what was served; every arm learns it once
clicks     join the record, one call after another, until its window is over
due        the window is over: one event with all clicks, or the round counts as unanswered
late       an answer after that teaches the arms, and is not counted: its round was
retract    the event leaves the arms, and then the experiment
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import orjson

from feedrank.learners import reading
from feedrank.service.contract.faults import Conflict, Gone, NotFound, StoreUnavailable, Unprocessable
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.contract.messages import (
    CLICKS,
    FEEDBACK,
    INSTANCE,
    ErrorScope,
    batch_of,
    encode,
    id_of,
    only,
    truth_digest,
)
from feedrank.service.contract.prediction_ids import new_prediction_id
from feedrank.service.runtime import Host
from feedrank.service.runtime.appending import unknown
from feedrank.service.runtime.questions import is_long
from feedrank.service.runtime.retractor import (
    append_retractions,
    events_to_retract,
    retract_reply,
    retraction,
)
from feedrank.service.runtime.subjects import ids_of
from feedrank.service.store import Draft, Missing, Placement, Stale

from . import records
from .loaded import LoadedExperiment
from .logbook import Logbook
from .serving import Serving
from .state import RUNNING, STOPPED
from .synonyms import judged_by, meant, names_of, renames_of
from .teaching import Teaching

log = logging.getLogger(__name__)
FIELDS = FEEDBACK - {"served"} | {"unit", "before", "segments", "reward"}
LOOKED_AT = 1024  # records that are due and not written down yet
SHORTLY = 1e-6
Pair = tuple[JSON | None, Draft]


class Crediting:
    """What becomes of what users did."""

    def __init__(self, host: Host, logbook: Logbook, serving: Serving, teaching: Teaching) -> None:
        self._host, self._store, self._settings = host, host.store, host.settings
        self._subjects = host.subjects
        self._logbook, self._serving, self._teaching = logbook, serving, teaching

    async def feedback(self, live: LoadedExperiment, request: Body, key: str | None) -> JSON:
        """As a learner's, with `reward`, and with `unit` beside an instance."""
        if "events" not in request:
            pair = await self._read(live, request, key, "")
            (result,) = await self._whole(live, [pair])
            return result
        batch = batch_of(request, "events", self._settings.max_batch)
        pairs = [
            await self._read(live, one, None if key is None else f"{key}/{i}", f"/events/{i}")
            for i, one in enumerate(batch)
        ]
        return {"results": await self._whole(live, pairs)}

    async def _read(self, live: LoadedExperiment, request: Any, key: str | None, where: str) -> Pair:
        """The event and its draft, checked against every arm; no event if its prediction is used up already."""
        with ErrorScope(where):
            only(request, FIELDS)
            prediction, own = id_of(request, "prediction_id"), id_of(request, "feedback_id")
            if key is not None and own is None and (prediction is None or not where):
                own = id_of({"feedback_id": key}, "feedback_id")
            truth, reward = records.truth_of(live, request), records.reward_of(live, request)
            renames = await renames_of(self._host, live)
            if truth or reward is None:
                reading.truth(live.specs[0], meant(truth, names_of(live, renames)))
            stated = truth if reward is None else {**truth, "reward": reward}
            weight = request.get("weight", 1.0)
            ids = tuple(f"{kind}:{id}" for kind, id in (("p", prediction), ("f", own)) if id is not None)
            record = await self._record(live, request, prediction)
            body: JSON = {"kind": "feedback", "truth": truth}
            if subject := await self._subjects.of(request):
                body["subject"] = subject
            ids += ids_of(subject, (record or {}).get("subject", ""))
            if weight != 1.0:
                body["weight"] = weight
            event: JSON | None = None
            if record is not None:
                names = names_of(live, renames, record)
                if truth and is_long(record["instance"]):
                    await asyncio.to_thread(records.check, live, record["instance"], meant(truth, names))
                elif truth:
                    records.check(live, record["instance"], meant(truth, names))
                judged = judged_by(record, names)
                event = records.event(live, record, body, meant(stated, names), time.time(), judged)
                body = {name: event[name] for name in event if name != "record" or prediction is None}
            return event, Draft(encode(body), ids, truth_digest(stated, weight), prediction)

    async def _record(self, live: LoadedExperiment, request: Body, prediction: str | None) -> JSON | None:
        """What was served: remembered, or, for an instance that is sent again, what would be served now."""
        instance = [name for name in (*INSTANCE, "unit", "before", "segments") if name in request]
        if prediction is None:
            options = {name: request[name] for name in instance}
            return (await self._serving.decide(live, options, new_prediction_id(live.log, time.time())))[1]
        if instance:
            raise Unprocessable.at(f"/{instance[0]}", "is not allowed together with `prediction_id`")
        stored = await self._store.recall(live.log, prediction)
        if stored is not None:
            record: JSON = orjson.loads(stored)
            return record
        if await self._store.find(live.log, f"p:{prediction}") is None:
            raise unknown(live, prediction, self._settings.prediction_ttl)
        return None

    # Writing

    async def _whole(self, live: LoadedExperiment, pairs: Sequence[Pair]) -> list[JSON]:
        """Append and teach. Once begun it is finished, even if the one who asked has gone."""
        return await asyncio.shield(asyncio.create_task(self._commit(live, pairs)))

    async def _commit(self, live: LoadedExperiment, pairs: Sequence[Pair]) -> list[JSON]:
        live.appending += 1
        try:
            placements = await self._append_or_late(live, pairs)
            events: list[tuple[int, JSON]] = []
            for (event, _), place in zip(pairs, placements, strict=True):
                # A repeat gets what the log has, not what it brought.
                first = event if event and place.fresh else await live.event(place.version)
                events.append((place.version, first or await self._outcome(live, place.version)))
            taught = await self._teaching.teach(live, events)
            await live.advance(max(place.version for place in placements))
        finally:
            live.appending -= 1
        for place in placements:
            live.doubtful.pop(place.version, None)
        try:
            await self._teaching.heal(live)
        except StoreUnavailable as error:
            # The events are in the log and taught: what is left to do is done beside a later request.
            log.warning("%s could not be updated: %s", live.title, error)
        return [
            {"version": place.version, **records.reply(live, event, arms), "duplicate": not place.fresh}
            for place, (_, event), arms in zip(placements, events, taught, strict=True)
        ]

    async def _outcome(self, live: LoadedExperiment, version: int) -> JSON:
        await live.advance(version)
        return await live.outcome(version)

    async def _append_or_late(self, live: LoadedExperiment, pairs: Sequence[Pair]) -> list[Placement]:
        """Append; a single answer to a round that was counted as unanswered is appended as a late one."""
        try:
            return await self._logbook.append(live, [draft for _, draft in pairs])
        except Conflict:
            late = await self._late(live, pairs[0][1]) if len(pairs) == 1 else None
            if late is None:
                raise
            return await self._logbook.append(live, [late])

    async def _late(self, live: LoadedExperiment, draft: Draft) -> Draft | None:
        """The same answer, to teach only, if its round was counted as unanswered."""
        if draft.take is None or (place := await self._store.find(live.log, f"p:{draft.take}")) is None:
            return None
        first = await live.event(place[0])
        if first is None or first["kind"] != "unanswered":
            return None
        body = orjson.loads(draft.body)
        ids = tuple(id for id in draft.ids if not id.startswith("p:"))
        late = {"kind": "feedback", "truth": body["truth"], "record": {**first["record"], "counted": False}}
        return Draft(encode(late), (f"l:{draft.take}", *ids), draft.digest)

    # Clicks, and rounds whose time to answer is over

    async def clicks(self, live: LoadedExperiment, request: Body) -> JSON:
        """Join clicks to a remembered prediction; they count together when its window is over."""
        only(request, CLICKS)
        prediction = id_of(request, "prediction_id")
        if prediction is None:
            raise Unprocessable.at("/prediction_id", "missing field `prediction_id`")
        with ErrorScope():
            truth: JSON = {"clicks": request.get("clicks")}
            reading.truth(live.specs[0], truth)
        while True:
            stored = await self._store.recall(live.log, prediction)
            if stored is None:
                if await self._store.find(live.log, f"p:{prediction}") is not None:
                    raise Conflict("the window of this prediction is over: its clicks are counted")
                raise unknown(live, prediction, self._settings.prediction_ttl)
            record = orjson.loads(stored)
            joined = list(dict.fromkeys([*record.get("clicks", ()), *truth["clicks"]]))
            with ErrorScope():
                records.check(live, record["instance"], {"clicks": joined})
                records.measured(live, record, {"clicks": joined})
            closes = record["at"] + self._window(live)
            due = None if live.plan.wait is not None and record["counted"] else closes
            try:
                value = encode({**record, "clicks": joined})
                await self._store.amend(live.log, prediction, value, stored, due)
            except Stale:
                continue
            except Missing:
                raise unknown(live, prediction, self._settings.prediction_ttl) from None
            return {"prediction_id": prediction, "clicks": joined, "closes_at": closes}

    def _window(self, live: LoadedExperiment) -> float:
        """Seconds in which clicks join: those of the definition, else the longest `wait` of an arm."""
        asked = max(float(spec.get("wait", 0)) for spec in live.specs)
        return live.plan.wait or min(asked, self._settings.prediction_ttl - 1.0)

    async def due(self, live: LoadedExperiment, key: str, stored: bytes, record: JSON) -> None:
        """The window of a prediction is over: one event with its clicks, or none."""
        record = {name: value for name, value in record.items() if name != "reply"}
        if "clicks" in record:
            truth = {"clicks": record["clicks"]}
            # They were clicked within the window, whenever this is written.
            end = record["at"] + self._window(live)
            event = records.event(
                live, record, {"kind": "feedback", "truth": truth}, truth, min(time.time(), end) - 1e-6
            )
        else:
            event = records.unanswered(live, record, time.time())
        body = {name: value for name, value in event.items() if name != "record"}
        ids = (f"p:{key}", *ids_of(record.get("subject", "")))
        draft = Draft(encode(body), ids, truth_digest(event["truth"]), key, stored)
        try:
            await self._whole(live, [(event, draft)])
        except (Conflict, Stale, NotFound, Gone):
            return  # answered, clicked again or taken by another replica meanwhile

    async def catch_up(self, live: LoadedExperiment) -> None:
        """Fold all that the log holds, and let rounds count that are due, up to the first that is not written down yet.

        Units count by the time of the log: a tick says that it is later.
        """
        await live.follow()
        waiting, now = live.figures.waiting, time.time()
        if live.plan.per is not None and live.figures.units is not None:
            closes_at = live.figures.units.next_due(live.plan.per.window)
            if closes_at is not None and closes_at <= now and live.figures.status != STOPPED:
                await self._logbook.note(live, {"kind": "tick", "at": now})
            return
        if not waiting or waiting[0][0] > now or live.figures.status != RUNNING:
            return
        due = await self._store.due(now, LOOKED_AT)
        unwritten = [one.at for one in due if one.log == live.log]
        if len(due) == LOOKED_AT:
            unwritten.append(due[-1].at)
        complete = min(unwritten, default=now + SHORTLY) - SHORTLY
        await live.follow()  # what is not due any more is in the log
        if live.figures.waiting and live.figures.waiting[0][0] <= complete:
            await self._logbook.note(live, {"kind": "tick", "at": complete})

    # Retracting

    async def retract(self, live: LoadedExperiment, request: Body) -> JSON:
        """As a learner's, one or many; the events leave the arms and the figures."""
        most = self._settings.max_batch
        events = await events_to_retract(self._store, live.log, f"the {live.title}", request, most)
        versions = [event.retracts for event in events]
        results = await asyncio.shield(asyncio.create_task(self._retract(live, versions)))
        return retract_reply(request, results)

    async def _retract(self, live: LoadedExperiment, versions: Sequence[int]) -> list[JSON]:
        # The arms first: one whose log no longer reaches back refuses, and nothing has changed.
        pending = await self._teaching.untaught(live, versions)
        bodies = {version: encode({"kind": "retract", "version": version}) for version in versions}
        places = await append_retractions(self._store, live.log, bodies, partial(self._logbook.append, live))
        await live.advance(max(place.version for place in places))
        of = dict(zip(bodies, places, strict=True))
        results = [retraction(live, version, of[version]) for version in versions]
        return [{**result, "state": "pending"} for result in results] if pending else results
