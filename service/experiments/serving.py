"""Predict of an experiment: the unit's arm decides (split), or the lists of all arms are interleaved.

One record remembers what was served, to whom, when, and by which arm. With `wait` it falls due when its time to answer
is over. With `per` each prediction is also an exposure of its unit, in the log.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TypeVar

import orjson

from feedrank.learners import forms
from feedrank.service.contract.faults import Conflict, ServiceError, Unprocessable
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.contract.logged_vectors import pack
from feedrank.service.contract.messages import (
    INSTANCE,
    LONGEST_PREDICTION_ID,
    PREDICT,
    SHARED,
    ErrorScope,
    batch_of,
    encode,
    flag,
    id_of,
    only,
    request_digest,
    whole,
)
from feedrank.service.contract.prediction_ids import new_prediction_id
from feedrank.service.runtime import Host
from feedrank.service.store import Clash, Draft, Record

from . import interleave, records
from .assignment import hashed
from .behaviour import query_hash
from .handover import DRAFT, SECOND
from .loaded import LoadedExperiment
from .logbook import Logbook
from .state import RUNNING, due_at

_OWN = ("unit", "before", "segments", "query", "offset", "subject")
FIELDS = PREDICT.union(_OWN)
LONGEST_QUERY = 2000
MANY = 2_000  # entries of all arms from which a list is drafted in a thread
T = TypeVar("T")


class Serving:
    """Called with an experiment and a request of the contract."""

    def __init__(self, host: Host, logbook: Logbook) -> None:
        self._host, self._store, self._settings = host, host.store, host.settings
        self._logbook = logbook

    async def __call__(self, live: LoadedExperiment, request: Body) -> JSON:
        """As a learner's, with `unit`."""
        done = []
        if "instances" in request:
            for i, one in enumerate(batch_of(request, "instances", self._settings.max_batch, SHARED)):
                with ErrorScope(f"/instances/{i}"):
                    done.append(await self._one(live, only(one, FIELDS)))
        else:
            done.append(await self._one(live, only(request, FIELDS)))
        kept = {id: record for _, id, record, _ in done if id is not None}
        replies = [reply for reply, *_ in done]
        exposures = [draft for *_, draft in done if draft is not None]
        # Both writes at once share a commit. An id that was used before has had its exposure, and gets no other.
        exposing = asyncio.create_task(self._expose(live, exposures)) if exposures else None
        try:
            if kept:
                first = await self._store.remember(live.log, kept, self._settings.prediction_ttl)
                replies = [_repeated(reply, first) for reply in replies]
        except Clash:
            raise Conflict("this prediction_id was used before with another request") from None
        finally:
            if exposing is not None:
                await exposing
        return {"predictions": replies} if "instances" in request else replies[0]

    async def _expose(self, live: LoadedExperiment, exposures: Sequence[Draft]) -> None:
        places = await self._logbook.append(live, exposures)
        await live.advance(max(place.version for place in places))

    async def _one(
        self, live: LoadedExperiment, request: Body
    ) -> tuple[JSON, str | None, Record, Draft | None]:
        """(reply, prediction id if it is to be remembered, record, exposure); the arm refuses what it does not know."""
        remember = flag(request, "remember", True)
        own, now = id_of(request, "prediction_id", LONGEST_PREDICTION_ID), time.time()
        # An id costs as much as a small prediction: it is made only where it is shown, or decides.
        needed = remember or not live.plan.split or request.get("unit") is None
        id = own or (new_prediction_id(live.log, now) if needed else "")
        question = {name: value for name, value in request.items() if name != "prediction_id"}
        reply, record = await self.decide(live, question, id)
        reply["experiment"] = live.name
        exposure = records.exposure(live, record, now, own)
        if not remember:
            return reply, None, Record(b""), exposure
        reply = {"prediction_id": id, **reply}
        if record["counted"] and "arm" in record:
            live.served.serve(record["arm"])
        digest = ""
        if own is not None:
            record["reply"] = reply
            hidden = {"subject": record["subject"]} if "subject" in record else {}
            digest = request_digest({**request, **hidden})
        wait = live.plan.wait
        due = due_at(now, wait) if wait is not None and record["counted"] else None
        return (
            reply,
            id,
            Record(encode({**record, "at": now, "owner": ["experiment", live.name]}), digest, due),
            exposure,
        )

    async def decide(self, live: LoadedExperiment, request: Body, id: str) -> tuple[JSON, JSON]:
        """What is served to the request's unit, and the record of it."""
        if "slots" in request:
            raise Unprocessable.at("/slots", "is not taken by an experiment: ask its arms")
        plan, unit = live.plan, id_of(request, "unit")
        seat = id if unit is None else unit
        counted = live.figures.status == RUNNING and plan.assignment.takes_part(seat, live.figures.share)
        top, offset = records.top_of(request), whole(request, "offset")
        question = {name: value for name, value in request.items() if name not in _OWN} | {"remember": False}
        if not plan.split or forms.of(live.specs[0]["task"]).decision is forms.LABELS:
            # A draft needs whole lists, and the measures of sets how many labels there are.
            question.pop("top", None)
        if offset:
            question.pop("top", None)
        record: JSON = {"counted": counted}
        if subject := await self._host.subjects.of(request):
            record["subject"] = subject
        if plan.per is not None:
            record["unit"] = seat  # by name: it is listed by it
        elif unit is not None:
            record["unit"] = hashed(plan.seed, "unit", unit)
        arm, coins = self._hand_over(live, question, seat, record)
        self._extend(live, question, request, record)
        record["instance"] = {name: question[name] for name in INSTANCE if name in question}
        pack(record["instance"], live.specs[0].get("input"))
        before = records.before_of(request)
        if before is not None:
            record["before"] = before
        if (segments := records.segments_of(live, request)) is not None:
            record["segments"] = segments
        if plan.split or not record["counted"]:
            record["arm"] = plan.assignment.arm(seat) if plan.split and counted else arm
            reply = await self._host.predict(plan.arms[record["arm"]], question)
            record["known"] = len(reply["ranking"])
            reply["ranking"] = _page(reply["ranking"], offset, top)
            record["served"] = records.served_in(live, reply)
        else:
            replies = await asyncio.gather(*(self._host.predict(name, question) for name in plan.arms))
            drafting = partial(self._draft, live, replies, coins or id, (offset, top), record)
            many = sum(len(each["ranking"]) for each in replies) > MANY
            reply = await asyncio.to_thread(drafting) if many else drafting()
        if plan.handover and "items" in record["instance"]:
            record["instance"] = records.page_of(record["instance"], record["served"]["ranking"])
        if plan.shadow:
            quiet = await asyncio.gather(*(self._quietly(name, question) for name in plan.shadow))
            record["shadow"] = [None if one is None else records.served_in(live, one) for one in quiet]
        return reply, record

    def _hand_over(
        self, live: LoadedExperiment, question: JSON, seat: str, record: JSON
    ) -> tuple[int, str | None]:
        """The arm of a page that is not drafted; and, where evidence decides, the text of its coins.

        They belong to the unit and the list: the next page of a search goes on with the same draft.
        """
        handover = live.figures.handover
        if handover is None or not record["counted"]:
            return live.incumbent, None
        items = question.get("items", ())
        ids = items.get("ids", ()) if isinstance(items, Mapping) else items
        names = [each.get("id") if isinstance(each, Mapping) else each for each in ids or ()]
        coins = f"{seat}\n{encode(names).hex()}"
        mode = handover.mode(hashed(live.plan.seed, "handover", coins) * 2.0**-64)
        record["counted"], record["coins"] = mode == DRAFT, hashed(live.plan.seed, "coins", coins)
        if not handover.may_count(record.get("unit")):
            record["beyond_cap"] = True
        return int(mode == SECOND), coins

    def _extend(self, live: LoadedExperiment, question: JSON, request: Body, record: JSON) -> None:
        """Add to the items what users did with them before."""
        query = request.get("query")
        if query is not None and (not isinstance(query, str) or len(query) > LONGEST_QUERY):
            raise Unprocessable.at("/query", f"a query is text of at most {LONGEST_QUERY} characters")
        if query is not None:
            record["query"] = query_hash(live.plan.seed, query)
        behaviour = live.figures.behaviour
        if behaviour is not None and "items" in question:
            question["items"] = behaviour.extended(question["items"], record.get("query"), record.get("unit"))

    def _draft(
        self,
        live: LoadedExperiment,
        replies: Sequence[JSON],
        id: str,
        page: tuple[int, int | None],
        record: JSON,
    ) -> JSON:
        key = "id" if forms.of(live.specs[0]["task"]).items else "label"
        entries = [{entry[key]: entry for entry in reply["ranking"]} for reply in replies]
        drafted = interleave.draft(
            [list(names) for names in entries],
            live.plan.seed,
            id,
            None if page[1] is None else page[0] + page[1],
        )
        drafted = interleave.Drafted(
            _page(drafted.names, *page), _page(drafted.teams, *page), _page(drafted.credits, *page)
        )
        record["drafted"] = {
            "names": drafted.names,
            "teams": drafted.teams,
            "credits": drafted.credits,
        }
        record["served"] = {"ranking": drafted.names}
        # Who stood first by which chance: an off-policy answer needs no more.
        record["tops"] = [next(iter(names)) for names in entries if names]
        if live.plan.handover and not page[0] and entries[0].keys() == entries[1].keys():
            # The first places of both orders: by which chance each item could have stood where.
            record["orders"] = [list(islice(names, interleave.PLACES)) for names in entries]
        if live.plan.compares_losses:
            record["arms"] = [{"ranking": list(names)} for names in entries]
        ranking = [entries[team][name] for name, team in zip(drafted.names, drafted.teams, strict=True)]
        versions = {name: reply["version"] for name, reply in zip(live.plan.arms, replies, strict=True)}
        return {
            "learner": None,
            "version": live.version,
            "versions": versions,
            "ranking": ranking,
            "margin": None,
            "abstained": False,
        }

    async def _quietly(self, name: str, question: JSON) -> JSON | None:
        """A shadow arm's prediction; whatever is wrong with the arm, users must not feel it."""
        try:
            return await self._host.predict(name, question)
        except ServiceError:
            return None


def _page(entries: list[T], offset: int, top: int | None) -> list[T]:
    """The places of a list that are shown."""
    return entries[offset:] if top is None else entries[offset : offset + top]


def _repeated(reply: JSON, first: Mapping[str, bytes]) -> JSON:
    """The reply of the first time, where the id was there before."""
    stored = first.get(reply.get("prediction_id", ""))
    if not stored:
        return reply
    again: JSON = orjson.loads(stored).get("reply", reply)
    return again
