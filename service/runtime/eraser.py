"""Erasing: events are retracted, and then nothing is left of what they held but checksums, nor of predictions.

    target      the versions of the events, and the keys of the predictions that are remembered
    task        a document that says what is to be erased, by numbers and hashes alone: whoever finds it after a kill
                goes on with it, as often as it takes
    retract     all events in one append, so that the learner is folded again once
    erase       the store lets go of bodies, outcomes, ids and records, down to the last byte; ids stay known as hashes

The receipt names the checksums, by which whoever has kept a body can show that it was there.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import orjson

from feedrank.service.contract.events import Event
from feedrank.service.contract.faults import Conflict, NotFound, ServiceError, Unprocessable
from feedrank.service.contract.json_types import JSON, Body
from feedrank.service.contract.messages import ERASE, id_of, only
from feedrank.service.contract.naming import every_name
from feedrank.service.contract.settings import Settings
from feedrank.service.store import Entry, Placement, Store, StoreSignal, Trimmed
from feedrank.service.store.shared import checksum

from .amending import Amender, state_of
from .appending import unknown
from .catalogue import Catalogue
from .folding import PAGE
from .learner_state import LoadedLearner
from .memory import Memory
from .retractor import append_retractions, no_event
from .subjects import Subjects, prefix
from .supervisor import Supervisor
from .writer import Writer

log = logging.getLogger(__name__)
KIND, TASK = "erasing", "eraser"
EVERY = 30.0  # seconds between two looks for what a kill has left
PATIENCE = 10.0  # seconds after which a call is answered while it goes on
LEARNER = "learner"


@dataclass(slots=True)
class Target:
    """What is to be erased from one log; `sums` are the checksums of the bodies, or of records without an event."""

    versions: list[int] = field(default_factory=list)
    records: list[str] = field(default_factory=list)
    sums: list[str] = field(default_factory=list)


Owner = Callable[[str, Target], Awaitable[JSON]]  # of a log, by name: retracts, and has the store let go


class Eraser:
    """Called with a name and `{"feedback_id"}`, `{"prediction_id"}` or `{"subject"}`."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        memory: Memory,
        writer: Writer,
        settings: Settings,
        supervisor: Supervisor,
    ) -> None:
        self._store, self._catalogue, self._memory, self._writer = store, catalogue, memory, writer
        self._settings, self._supervisor = settings, supervisor
        self.subjects = Subjects(store)
        self._amend = Amender(store, memory)
        self.owners: dict[str, Owner] = {LEARNER: self._erase}  # and others by their kind
        self._own: dict[str, asyncio.Task[JSON]] = {}  # by the names of their documents
        supervisor.keep(TASK, self._work)

    async def close(self) -> None:
        """Finish what was begun here; what a kill has left stays to be done."""
        await self._supervisor.stop(TASK)
        if self._own:
            await asyncio.wait(self._own.values())

    async def __call__(self, name: str, request: Body) -> JSON:
        """`{"erased", "checksums", "version", "state"}`; `state` is `pending` while it goes on in the background."""
        what, value = target_of(request)
        subject = await self.subjects.of(request) if what == "subject" else ""
        async with self._memory.use(name) as learner:
            if subject:
                target = await self.search(learner.log, subject)
            else:
                target = await self._named(learner, what, value)
            return await self._answer(learner, target, subject)

    async def everywhere(self, subject: str, reaches: Callable[[str], bool] = every_name) -> dict[str, JSON]:
        """The receipts of all learners that have something of a hashed subject and that the caller reaches, by name."""
        receipts, after = dict[str, JSON](), ""
        following: str | None = after
        while following is not None:
            page, following = await self._catalogue.page(following, PAGE, reaches)
            for entry in page:
                target = await self.search(entry.log, subject)
                if target.sums:
                    async with self._memory.use(entry.name) as learner:
                        receipts[entry.name] = await self._answer(learner, target, subject)
        return receipts

    async def search(self, log: str, subject: str) -> Target:
        """All that a log and its records have of a hashed subject."""
        versions, records = await self._store.search(log, prefix(subject), subject.encode())
        if self._settings.id_retention:  # ids were forgotten: the entries say it themselves
            versions = sorted({*versions, *await self._mentions(log, subject.encode())})
        return await self.read(log, versions, records)

    async def _mentions(self, log: str, subject: bytes) -> list[int]:
        at = (await self._store.head(log)).floor - 1
        versions = []
        while entries := await self._store.read(log, at, PAGE):
            versions += [
                one.version for one in entries if subject in one.body or subject in (one.taken or b"")
            ]
            at = entries[-1].version
        return versions

    async def read(self, log: str, versions: list[int], records: list[str]) -> Target:
        """The target of these events and remembered predictions; Conflict where the log does not reach back to them."""
        target = Target()
        for version in versions:
            entry = await self._entry(log, version)
            if entry.erased:
                continue
            target.versions.append(version)
            target.sums.append(checksum(entry.body))
            prediction = orjson.loads(entry.body).get("prediction_id")
            target.records += [] if prediction is None else [prediction]
        for key in records:
            if (value := await self._store.recall(log, key)) is not None and key not in target.records:
                target.records.append(key)
                target.sums.append(checksum(value))
        return target

    async def _entry(self, log: str, version: int) -> Entry:
        try:
            (entry,) = await self._store.read(log, version - 1, 1)
        except Trimmed:
            raise Conflict("the log no longer reaches back to this event: it cannot be erased") from None
        return entry

    async def _named(self, learner: LoadedLearner, what: str, id: str) -> Target:
        """The target of one id."""
        found = await self._store.find(learner.log, f"{what[0]}:{id}")
        if found is not None:
            return await self.read(learner.log, [found[0]], [])
        target = await self.read(learner.log, [], [id] if what == "prediction_id" else [])
        if target.sums:
            return target
        if what == "prediction_id":
            raise unknown(learner, id, self._settings.prediction_ttl)
        raise no_event(learner.title, what)

    async def _answer(self, learner: LoadedLearner, target: Target, subject: str) -> JSON:
        """Erase, and say so; what takes long goes on when the call is answered."""
        receipt: JSON = {
            "erased": len(target.sums),
            "checksums": target.sums,
            "version": learner.version,
            "state": "done",
        }
        if not target.sums:
            return receipt if await self.finished(log=learner.log) else {**receipt, "state": "pending"}
        owner = (LEARNER, learner.entry.name)
        return {**receipt, **await self.begin(owner, learner.log, target, subject)}

    async def begin(self, owner: tuple[str, str], log: str, target: Target, subject: str) -> JSON:
        """`{"version", "state"}` when its owner has erased the target; once begun it is finished, also after a kill."""
        task = secrets.token_hex(12)
        value = {"owner": owner, "log": log, "versions": target.versions, "subject": subject}
        await self._store.put(KIND, task, orjson.dumps(value), 0)
        running = asyncio.create_task(self._carry_out(owner, target, task))
        self._own[task] = running
        running.add_done_callback(lambda _: self._own.pop(task, None))
        running.add_done_callback(failed)
        done, _ = await asyncio.wait([running], timeout=min(PATIENCE, self._settings.request_timeout / 2))
        return running.result() if done else {"state": "pending"}

    async def _carry_out(self, owner: Sequence[str], target: Target, task: str) -> JSON:
        """What the owner says when nothing of the target is left; the task stays if it should be tried again."""
        kind, name = owner
        try:
            done = await self.owners[kind](name, target)
        except (Conflict, NotFound):
            await self._forget(task)
            raise
        await self._forget(task)
        return done

    async def _erase(self, name: str, target: Target) -> JSON:
        async with self._memory.use(name) as learner:
            return await self._erase_of(learner, target)

    async def _erase_of(self, learner: LoadedLearner, target: Target) -> JSON:
        places: list[Placement] = []
        learner.erasing.update(target.versions)
        try:
            if target.versions:
                bodies = {version: Event(retracts=version).body() for version in target.versions}
                append = partial(self._writer.append, learner)
                places = await self._amend(
                    learner, lambda: append_retractions(self._store, learner.log, bodies, append)
                )
            await (
                learner.saver.settle()
            )  # a snapshot of before, on its way, is refused, and leaves its parts in the files
            await self.let_go(learner.log, target)
        finally:
            learner.erasing.difference_update(target.versions)
        return {"version": learner.version, "state": state_of(learner, *places)}

    async def let_go(self, log: str, target: Target) -> None:
        """Erase in the store what was retracted."""
        ids = [f"p:{key}" for key in target.records]
        await self._store.erase(log, target.versions, target.records, ids)

    async def finished(self, *, log: str = "", subject: str = "") -> bool:
        """Whether nothing is left to do of what was begun before, in a log or of a hashed subject."""
        after = ""
        while documents := await self._store.page(KIND, after, PAGE):
            for _, document in documents:
                value = orjson.loads(document.value)
                if value["log"] == log or (subject and value["subject"] == subject):
                    return False
            after = documents[-1][0]
        return True

    async def _forget(self, task: str) -> None:
        document = await self._store.get(KIND, task)
        if document is not None:
            await self._store.remove(KIND, task, document.revision)

    # What a kill has left

    async def _work(self) -> None:
        while True:
            try:
                await self.resume()
            except (ServiceError, StoreSignal) as error:
                log.info("what is left to be erased could not be listed: %s", error)
            await asyncio.sleep(EVERY)

    async def resume(self) -> None:
        """Go on with all that was begun elsewhere: what another process is just doing is done twice, and once."""
        after = ""
        while documents := await self._store.page(KIND, after, PAGE):
            for task, document in documents:
                if task not in self._own:
                    await self._go_on(task, orjson.loads(document.value))
            after = documents[-1][0]

    async def _go_on(self, task: str, value: JSON) -> None:
        owner, key = value["owner"], value["log"]
        if owner[0] not in self.owners:
            return
        try:
            if (await self._store.head(key)).closed:
                raise NotFound("it was deleted, and all of its log with it")
            versions, records = set(value["versions"]), list[str]()
            if value["subject"]:
                others = await self.search(key, value["subject"])
                versions, records = versions.union(others.versions), others.records
            await self._carry_out(owner, await self.read(key, sorted(versions), records), task)
        except (Conflict, NotFound) as error:
            log.warning("what was to be erased of %s cannot be: %s", " ".join(owner), error)
            await self._forget(task)
        except (ServiceError, StoreSignal) as error:
            log.warning("what is to be erased of %s is left for later: %s", " ".join(owner), error)


def target_of(request: Body) -> tuple[str, str]:
    """(field, value) of what a request wants to be erased; a subject is read by `Subjects`."""
    only(request, ERASE)
    named = [field for field in sorted(ERASE) if request.get(field) is not None]
    if len(named) != 1:
        raise Unprocessable.at("", "one of `feedback_id`, `prediction_id` and `subject` is required")
    (what,) = named
    return what, "" if what == "subject" else id_of(request, what) or ""


def failed(task: asyncio.Task[JSON]) -> None:
    """One line for what nobody waits for; its document brings it back."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("erasing was interrupted: %s", error)
