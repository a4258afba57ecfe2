"""Predict and feedback of an experiment, on plain JSON values, like those of a learner.

predict   the unit's arm decides (split), or all arms do and their lists are drafted into one (interleave); one record
          remembers what was served, to whom, and by which arm
feedback  measured against the record, appended to the experiment's log once, then taught to the arms once each
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import orjson

from feedrank.learners import truths
from feedrank.service.errors import (
    Conflict,
    Gone,
    NotFound,
    ServiceError,
    StoreUnavailable,
    TimedOut,
    Unprocessable,
)
from feedrank.service.experiments import interleave, records
from feedrank.service.experiments.assignment import hashed
from feedrank.service.experiments.live import Event, Live
from feedrank.service.experiments.state import RUNNING
from feedrank.service.host import Host, tickets
from feedrank.service.host.events import digest, encode
from feedrank.service.host.requests import (
    FEEDBACK,
    INSTANCE,
    PREDICT,
    SHARED,
    flag,
    id_of,
    known,
    many,
    pointed,
    truth_of,
)
from feedrank.service.store import Clash, Closed, Draft, Missing

log = logging.getLogger(__name__)
JSON = dict[str, Any]
HEALED = 64  # doubtful events taught again at once
_PREDICT = PREDICT | {"unit"}
_FEEDBACK = FEEDBACK - {"served"} | {"unit", "reward"}


class Rounds:
    """What happens between users and arms."""

    def __init__(self, host: Host) -> None:
        self._host, self._store, self._settings = host, host.store, host.settings

    # Predicting

    async def predict(self, live: Live, request: Mapping[str, Any]) -> JSON:
        """As a learner's, with `unit`."""
        done = []
        if "instances" in request:
            for i, one in enumerate(many(request, "instances", self._settings.max_batch, SHARED)):
                with pointed(f"/instances/{i}"):
                    done.append(await self._predict(live, known(one, _PREDICT)))
        else:
            done.append(await self._predict(live, request))
        kept = {id: encode(record) for _, id, record in done if id is not None}
        if kept:
            await self._store.remember(live.key, kept, self._settings.prediction_ttl)
        replies = [reply for reply, _, _ in done]
        return {"predictions": replies} if "instances" in request else replies[0]

    async def _predict(self, live: Live, request: Mapping[str, Any]) -> tuple[JSON, str | None, JSON]:
        """(reply, prediction id if it is to be remembered, record); the arm refuses what it does not know."""
        remember = flag(request, "remember", True)
        # An id costs as much as a small prediction: it is made only where it is told, or decides.
        needed = remember or not live.plan.split or request.get("unit") is None
        id = tickets.make(live.key, time.time()) if needed else ""
        reply, record = await self._decide(live, request, id)
        reply["experiment"] = live.name
        if not remember:
            return reply, None, record
        return {"prediction_id": id, **reply}, id, record

    async def _decide(self, live: Live, request: Mapping[str, Any], id: str) -> tuple[JSON, JSON]:
        """What is served to the request's unit, and the record of it."""
        plan, unit = live.plan, id_of(request, "unit")
        seat = id if unit is None else unit
        counted = live.state.status == RUNNING and plan.assignment.takes_part(seat)
        top = records.top_of(request)
        asked = {**request, "remember": False}
        asked.pop("unit", None)
        if not plan.split or live.specs[0]["task"] == "multilabel":
            # A draft needs whole lists, and the measures of sets how many labels there are.
            asked.pop("top", None)
        record: JSON = {
            "instance": {name: request[name] for name in INSTANCE if name in request},
            "counted": counted,
        }
        if unit is not None:
            record["unit"] = hashed(plan.seed, "unit", unit)
        if plan.split or not counted:
            record["arm"] = plan.assignment.arm(seat) if plan.split and counted else live.incumbent
            reply = await self._host.predict(plan.arms[record["arm"]], asked)
            record["known"] = len(reply["ranking"])
            reply["ranking"] = reply["ranking"][:top]
            record["served"] = records.served_in(live, reply)
        else:
            replies = await asyncio.gather(*(self._host.predict(name, asked) for name in plan.arms))
            reply = self._draft(live, replies, id, top, record)
        if plan.shadow:
            quiet = await asyncio.gather(*(self._quietly(name, asked) for name in plan.shadow))
            record["shadow"] = [None if one is None else records.served_in(live, one) for one in quiet]
        return reply, record

    def _draft(self, live: Live, replies: Sequence[JSON], id: str, top: int | None, record: JSON) -> JSON:
        key = "id" if live.specs[0]["task"] == "subset-ranking" else "label"
        entries = [{entry[key]: entry for entry in reply["ranking"]} for reply in replies]
        drafted = interleave.draft([list(names) for names in entries], live.plan.seed, id, top)
        record["drafted"] = asdict(drafted)
        record["served"] = {"ranking": drafted.names}
        if live.plan.measure.is_loss:
            record["arms"] = [{"ranking": list(names)} for names in entries]
        ranking = [entries[team][name] for name, team in zip(drafted.names, drafted.teams, strict=True)]
        versions = {name: reply["version"] for name, reply in zip(live.plan.arms, replies, strict=True)}
        return {
            "learner": None,
            "version": live.state.events,
            "versions": versions,
            "ranking": ranking,
            "margin": None,
            "abstained": False,
        }

    async def _quietly(self, name: str, asked: JSON) -> JSON | None:
        """A shadow arm's prediction; whatever is wrong with the arm, users must not feel it."""
        try:
            return await self._host.predict(name, asked)
        except ServiceError:
            return None

    # Feedback

    async def feedback(self, live: Live, request: Mapping[str, Any], key: str | None) -> JSON:
        """As a learner's, with `reward`, and with `unit` beside an instance."""
        if "events" not in request:
            pair = await self._read(live, request, key, "")
            (result,) = await self._whole(live, [pair])
            return result
        asked = many(request, "events", self._settings.max_batch)
        pairs = [
            await self._read(live, one, None if key is None else f"{key}/{i}", f"/events/{i}")
            for i, one in enumerate(asked)
        ]
        return {"results": await self._whole(live, pairs)}

    async def _read(
        self, live: Live, request: Any, key: str | None, where: str
    ) -> tuple[Event | None, Draft]:
        """The event and its draft, checked against every arm; no event if its prediction is used up already."""
        with pointed(where):
            known(request, _FEEDBACK)
            prediction, own = id_of(request, "prediction_id"), id_of(request, "feedback_id")
            if key is not None and own is None and (prediction is None or not where):
                own = id_of({"feedback_id": key}, "feedback_id")
            truth, reward = truth_of(request), records.reward_of(live, request)
            if truth or reward is None:
                truths.read(truth, live.specs[0]["task"])
            told = truth if reward is None else {**truth, "reward": reward}
            ids = tuple(f"{kind}:{id}" for kind, id in (("p", prediction), ("f", own)) if id is not None)
            record = await self._record(live, request, prediction)
            event: Event | None = None
            body: JSON = {"kind": "feedback", "truth": truth}
            if record is not None:
                if truth:
                    records.check(live, record["instance"], truth)
                event = {**body, "record": record, **records.measured(live, record, told)}
                body = {name: event[name] for name in event if name != "record" or prediction is None}
            return event, Draft(encode(body), ids, digest(told), prediction)

    async def _record(self, live: Live, request: Mapping[str, Any], prediction: str | None) -> JSON | None:
        """What was served: remembered, or, for an instance that is sent again, what would be served now."""
        given = [name for name in ("features", "items", "unit") if name in request]
        if prediction is None:
            options = {name: request[name] for name in given}
            return (await self._decide(live, options, tickets.make(live.key, time.time())))[1]
        if given:
            raise Unprocessable.at(f"/{given[0]}", "is not taken beside a prediction_id")
        held = await self._store.recall(live.key, prediction)
        if held is not None:
            record: JSON = orjson.loads(held)
            return record
        if await self._store.find(live.key, f"p:{prediction}") is None:
            raise self._unknown(live, prediction)
        return None

    def _unknown(self, live: Live, id: str) -> NotFound | Gone:
        given = tickets.given_at(live.key, id)
        if given is not None and given + self._settings.prediction_ttl <= time.time():
            return Gone(f"the prediction {id!r} has expired: send the instance again with the truth")
        return NotFound(f"the experiment {live.name!r} has given no prediction {id!r}")

    async def _whole(self, live: Live, pairs: Sequence[tuple[Event | None, Draft]]) -> list[JSON]:
        """Append and teach. Once begun it is finished, even if the one who asked has gone."""
        return await asyncio.shield(asyncio.create_task(self._commit(live, pairs)))

    async def _commit(self, live: Live, pairs: Sequence[tuple[Event | None, Draft]]) -> list[JSON]:
        drafts = [draft for _, draft in pairs]
        try:
            placed = await self._store.append(live.key, drafts)
        except Clash as clash:
            which = f"event {clash.index}: " if len(drafts) > 1 else ""
            raise Conflict(f"{which}its id was seen before with another truth") from None
        except Missing as missing:
            raise self._unknown(live, drafts[missing.index].take or "") from None
        except Closed:
            raise NotFound(f"there is no experiment {live.name!r}") from None
        events: list[tuple[int, Event]] = []
        for (event, _), place in zip(pairs, placed, strict=True):
            # A repeat is told what the log holds, not what it brought.
            first = event if place.fresh else await live.event(place.version)
            events.append((place.version, first or await live.outcome(place.version) or {}))
        taught = await self.teach(live, events)
        results = [
            {"version": place.version, **records.told(live, event, arms), "duplicate": not place.fresh}
            for place, (_, event), arms in zip(placed, events, taught, strict=True)
        ]
        await live.follow(max(place.version for place in placed))
        for place in placed:
            live.doubtful.pop(place.version, None)
        try:
            await self._keep_up(live)
        except StoreUnavailable as error:
            # The events are in the log and taught: what is left to do is done beside a later request.
            log.warning("experiment %s could not be kept up: %s", live.name, error)
        return results

    async def _keep_up(self, live: Live) -> None:
        """Teach again what may not have been taught, and save when it is time."""
        versions = list(live.doubtful) if live.due else live.old_doubts(HEALED)
        for start in range(0, len(versions), HEALED):
            some = versions[start : start + HEALED]
            events = [
                (version, event) for version in some if (event := await live.event(version)) is not None
            ]
            await self.teach(live, events)
            for version in some:
                live.doubtful.pop(version, None)
        if live.due:
            await live.save()

    async def teach(self, live: Live, events: Sequence[tuple[int, Event]]) -> list[dict[str, JSON]]:
        """Every arm (or the one that served) learns each event once, however often this is called: replies by arm."""
        lessons: dict[str, list[tuple[int, JSON]]] = {}
        for index, (version, event) in enumerate(events):
            if event.get("truth") and "record" in event:
                for name, lesson in records.lessons(live, version, event):
                    lessons.setdefault(name, []).append((index, lesson))
        done = await asyncio.gather(
            *(self._teach(name, [one for _, one in own]) for name, own in lessons.items())
        )
        told: list[dict[str, JSON]] = [{} for _ in events]
        for (name, own), replies in zip(lessons.items(), done, strict=True):
            for (index, _), reply in zip(own, replies, strict=True):
                told[index][name] = reply
        return told

    async def _teach(self, name: str, lessons: Sequence[JSON]) -> list[JSON]:
        """The replies of one arm, in order; its problem where it refuses."""
        try:
            if len(lessons) == 1:
                return [await self._host.feedback(name, lessons[0])]
            reply = await self._host.feedback(name, {"events": lessons})
        except (StoreUnavailable, TimedOut):
            raise
        except ServiceError as error:
            # An arm that was deleted, or is full, must not keep the others from learning.
            if len(lessons) == 1:
                return [{"problem": error.problem()}]
            return [reply for lesson in lessons for reply in await self._teach(name, [lesson])]
        results: list[JSON] = reply["results"]
        return results
