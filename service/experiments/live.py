"""An experiment in memory: its plan, and its state kept up with its log.

The log holds one event a feedback, with its measured value in it, and pause, resume, stop and promote. It decides what
happened; the arms are taught afterwards, under ids made of the log and the version. A crash in between leaves an event that
some arm has not learned: such events are `doubtful`, and are taught again by whoever finds them; an arm that has
learned one already knows its id.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import orjson

from feedrank.service.errors import NotFound, StoreUnavailable
from feedrank.service.experiments.plan import Plan
from feedrank.service.experiments.state import State
from feedrank.service.host import HostSettings
from feedrank.service.store import Entry, Snapshot, Store, Trimmed

log = logging.getLogger(__name__)
PAGE = 256
FRESH = 1.0  # seconds for which a prediction may go by an old status
DOUBT = 10.0  # seconds after which an event is not expected to be on its way to the arms any more

Event = dict[str, Any]


def event_of(entry: Entry) -> Event:
    """The event of an entry, with the record of its prediction as `record`."""
    event: Event = orjson.loads(entry.body)
    if entry.taken is not None:
        event["record"] = orjson.loads(entry.taken)
    return event


class Live:
    """One loaded experiment."""

    def __init__(
        self,
        name: str,
        key: str,
        plan: Plan,
        specs: list[Mapping[str, Any]],
        store: Store,
        settings: HostSettings,
    ) -> None:
        self.name, self.key, self.plan, self.specs = name, key, plan, specs
        self.state = State.new(plan)
        self.doubtful: dict[int, float] = {}
        self._store, self._settings = store, settings
        self._saved = 0
        self._checked = 0.0
        self._outcomes: dict[int, bytes] = {}
        self._order = asyncio.Lock()

    @property
    def incumbent(self) -> int:
        """The arm that serves whoever does not take part: the promoted one, or else the first."""
        return self.plan.arms.index(self.state.promoted) if self.state.promoted else 0

    async def load(self) -> None:
        """The newest snapshot and what came after it, or NotFound if the experiment was deleted."""
        async with self._order:
            await self._restore()
        await self.follow()

    async def _restore(self) -> None:
        head = await self._store.head(self.key)
        if head.closed:
            raise NotFound(f"there is no experiment {self.name!r}")
        for version in sorted(head.snapshots, reverse=True):
            held = await self._store.snapshot(self.key, version)
            if held is not None:
                self.state = State.from_json(orjson.loads(held.data))
                self._saved = version
                return
        self.state = State.new(self.plan)

    async def gone(self) -> bool:
        """Whether it was deleted; looked at, and the log followed, at most once in `FRESH` seconds."""
        now = time.monotonic()
        if now - self._checked < FRESH:
            return False
        self._checked = now
        if (await self._store.head(self.key)).closed:
            return True
        await self.follow()
        return False

    async def follow(self, to: int = 0) -> None:
        """Fold what the log holds beyond the state, at least up to version `to`."""
        async with self._order:
            while True:
                try:
                    entries = await self._store.read(self.key, self.state.events, PAGE)
                except Trimmed:
                    await self._restore()
                    continue
                if not entries:
                    break
                for entry in entries:
                    event = orjson.loads(entry.body)
                    self.state.apply(self.plan, event)
                    if event["kind"] == "feedback":
                        told = {name: event[name] for name in ("arm", "value", "credits") if name in event}
                        self._outcomes[entry.version] = orjson.dumps(told)
                        if event["truth"]:
                            self.doubtful[entry.version] = entry.at
            if self.state.events < to:
                if (await self._store.head(self.key)).closed:
                    raise NotFound(f"there is no experiment {self.name!r}")
                raise StoreUnavailable(f"the log of {self.name!r} ends before version {to}")

    async def event(self, version: int) -> Event | None:
        """The event at `version`; None if it was trimmed."""
        try:
            entries = await self._store.read(self.key, version - 1, 1)
        except Trimmed:
            return None
        return event_of(entries[0]) if entries else None

    def old_doubts(self, most: int) -> list[int]:
        """Events that by now should have been taught, and may not have been."""
        limit = time.time() - DOUBT
        return [version for version, at in self.doubtful.items() if at < limit][:most]

    async def outcome(self, version: int) -> Event | None:
        """What a repeat must be told of an event that was trimmed."""
        held = self._outcomes.get(version) or await self._store.outcome(self.key, version)
        return None if held is None else orjson.loads(held)

    @property
    def due(self) -> bool:
        """Whether it is time for a snapshot."""
        # The units seen are most of a snapshot, eight bytes each: it is written when as much has come in as goes out.
        least = max(self._settings.snapshot_every, len(self.state.seen) // 8)
        return self.state.events - self._saved >= least

    async def save(self) -> None:
        """Write a snapshot, and let go of what retention lets go of. Every event up to it must have been taught."""
        async with self._order:
            version = self.state.events
            data = orjson.dumps(self.state.to_json())
            kept = self._settings.retention_events
            held = await self._store.save(
                self.key,
                Snapshot(version, sha256(data).hexdigest(), data),
                {v: told for v, told in self._outcomes.items() if v <= version},
                keep=1,
                floor=1 if kept is None else max(1, version - kept + 1),
            )
            if held != sha256(data).hexdigest():
                log.error("experiment %s differs from its snapshot at %d: reloading", self.name, version)
                await self._restore()
            self._saved = version
            self._outcomes = {v: told for v, told in self._outcomes.items() if v > version}
