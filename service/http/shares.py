"""The shares of keys: requests a second and at a time, learners, bytes stored; one key never starves the others.

    rate          a bucket of max(1, rate) requests, filled by `rate` a second; a line of a stream is a request
    concurrency   requests that have begun and are not answered; a stream is one
    learners      those that the key made and that are there
    bytes         of what it had stored: bodies of learners, snapshots and events as long as their learner is there, and of
                  predictions as long as they are remembered

Each process counts for itself. What was stored is written down beside the log, so that a restart does not forget it: at
once for learners, for bytes after every `STEP` of them and at the end.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Coroutine, Mapping
from time import monotonic

import orjson

from feedrank.service.contract.faults import ServiceError
from feedrank.service.contract.json_types import View
from feedrank.service.runtime import Host
from feedrank.service.runtime.at_once import waits
from feedrank.service.store import Stale

from .keyring import Key

KIND = "share"
STEP = 2**20  # bytes
PARTS = 64  # of the time that a prediction is remembered: what is forgotten is seen to within one of them
PATIENCE = 60  # seconds after which it is worth asking again where something has to be deleted first

log = logging.getLogger("feedrank.shares")


class ShareUsed(ServiceError):  # noqa: N818  (as in faults.py: a name says what happened)
    """A share of the key is used up: nothing was done, and the same request may be sent again later."""

    status, type, title = 429, "share-used", "The key's share is used up"

    def __init__(self, detail: str, limit: float, left: float, reset: float, again: float) -> None:
        headers = {
            "Retry-After": str(max(1, math.ceil(again))),
            "RateLimit-Limit": str(math.ceil(limit)),
            "RateLimit-Remaining": str(max(0, math.floor(left))),
            "RateLimit-Reset": str(max(1, math.ceil(reset))),
        }
        super().__init__(detail, headers=headers)


class Share:
    """What one key has used."""

    def __init__(self, key: Key, shares: Shares) -> None:
        self.key, self._shares = key, shares
        self._tokens, self._filled = max(1.0, key.rate), monotonic()
        self.running = self.making = 0
        self.made: set[str] = set()  # logs of learners
        self.bytes: dict[str, int] = {}  # by log
        self.fresh: dict[str, int] = {}  # those of them that are not written down
        self._remembered: deque[list[float]] = deque()  # [until when, bytes]
        self._loaded: asyncio.Task[None] | None = None
        self._saving = asyncio.Lock()

    def spend(self) -> None:
        """Count one request, or ShareUsed."""
        rate = self.key.rate
        if not rate:
            return
        now, most = monotonic(), max(1.0, rate)
        self._tokens = min(most, self._tokens + rate * (now - self._filled))
        self._filled = now
        if self._tokens < 1:
            reset, again = (most - self._tokens) / rate, (1 - self._tokens) / rate
            raise self.used("rate", f"this key may send {rate:g} requests a second", rate, 0, reset, again)
        self._tokens -= 1

    def used(
        self,
        kind: str,
        detail: str,
        limit: float,
        left: float = 0,
        reset: float = PATIENCE,
        again: float = PATIENCE,
    ) -> ShareUsed:
        """The refusal, counted."""
        self._shares.refusals[kind] = self._shares.refusals.get(kind, 0) + 1
        return ShareUsed(detail, limit, left, reset, again)

    def begin(self) -> Use:
        """One more request."""
        most = self.key.concurrency
        if most and self.running >= most:
            raise self.used("concurrency", f"this key may send {most} requests at a time", most, 0, 1, 1)
        self.spend()
        self.running += 1
        return Use(self, self._shares.host)

    async def load(self) -> None:
        """Read what was written down, once."""
        if self._loaded is None:
            self._loaded = asyncio.create_task(self._load())
        if not self._loaded.done():
            await waits("share")
            try:
                await asyncio.shield(self._loaded)
            except Exception:
                self._loaded = None
                raise

    async def _load(self) -> None:
        _, made, counts = await self._written()
        self.made |= made
        self._merge(counts)

    async def _written(self) -> tuple[int, set[str], dict[str, int]]:
        """What is written down: its revision, the learners made, the bytes by log."""
        stored = await self._shares.host.store.get(KIND, self.key.id)
        if stored is None:
            return 0, set(), {}
        value = orjson.loads(stored.value)
        return stored.revision, set(value["made"]), value["bytes"]

    def _merge(self, counts: Mapping[str, int]) -> None:
        self.bytes = {key: counts.get(key, 0) + self.fresh.get(key, 0) for key in {*counts, *self.fresh}}

    async def save(self, *, prune: bool = False) -> None:
        """Write down what is new, beside what other processes wrote; `prune`: without what was deleted, by whomever."""
        async with self._saving:  # what is new is written once
            await self._save(prune)

    async def _save(self, prune: bool) -> None:
        store = self._shares.host.store
        while True:
            fresh, made = dict(self.fresh), set(self.made)
            revision, all_made, counts = await self._written()
            all_made |= made
            counts = {key: counts.get(key, 0) + fresh.get(key, 0) for key in {*counts, *fresh}}
            for key in {*counts, *all_made} if prune else ():
                if key and (await store.head(key)).closed:
                    counts.pop(key, None)
                    all_made.discard(key)
            document = orjson.dumps({"made": sorted(all_made), "bytes": counts})
            try:
                await store.put(KIND, self.key.id, document, revision)
                break
            except Stale:
                continue
        for key, size in fresh.items():  # more may have come meanwhile
            self.fresh[key] -= size
        self.fresh = {key: size for key, size in self.fresh.items() if size}
        self.made = all_made | (self.made - made)
        self._merge(counts)

    def stored(self) -> int:
        """Bytes that count now."""
        now = monotonic()
        while self._remembered and self._remembered[0][0] <= now:
            self._remembered.popleft()
        return sum(self.bytes.values()) + int(sum(size for _, size in self._remembered))

    def add(self, of: str, size: int) -> None:
        """Count bytes of a log, or give them back."""
        self.bytes[of] = self.bytes.get(of, 0) + size
        self.fresh[of] = self.fresh.get(of, 0) + size
        if sum(self.fresh.values()) >= STEP:
            self.write_down(self.save())

    def write_down(self, work: Coroutine[object, object, None]) -> None:
        """In the background."""
        self._shares.write_down(work)

    def remember(self, size: int) -> None:
        """Count bytes of a prediction, until it is forgotten."""
        now, ttl = monotonic(), self._shares.host.settings.prediction_ttl
        if not self._remembered or self._remembered[-1][0] < now + ttl:
            self._remembered.append([now + ttl * (1 + 1 / PARTS), 0])
        self._remembered[-1][1] += size


class Use:
    """One request of a key that has shares, from its admission to its reply."""

    def __init__(self, share: Share, host: Host) -> None:
        self.share, self._host = share, host
        self.name = ""  # of the learner that a stream is for, or that is made
        self._of, self._size, self._makes = "", 0, False

    async def line(self, operation: str, body: View, size: int) -> None:
        """Count a line of a stream as a request of its own."""
        self.share.spend()
        if self.share.key.bytes:
            await self.store(self.name, operation, size, remember=body.get("remember") is not False)

    async def store(self, name: str, scope: str, size: int, *, remember: bool = True) -> None:
        """Count a body that is stored: of a call to `name`; ShareUsed if there is no room for it."""
        share, most = self.share, self.share.key.bytes
        if not most or (scope == "predict" and not remember):
            return
        await share.load()
        if share.stored() + size > most and share.bytes:
            await waits("share")
            await share.save(prune=True)  # perhaps some of it was deleted
        if share.stored() + size > most:
            raise share.used("bytes", f"this key may have {most} bytes stored", most, most - share.stored())
        if scope == "predict":
            share.remember(size)
        else:
            self._of, self._size = await self._host.log_of(name) or "", self._size + size
            share.add(self._of, size)

    async def make(self, name: str) -> None:
        """Count a learner that is made; ShareUsed if the key may have no more."""
        share, most = self.share, self.share.key.learners
        if not most or await self._host.log_of(name) is not None:
            return
        await share.load()
        if len(share.made) + share.making >= most:
            await share.save(prune=True)
        if len(share.made) + share.making >= most:
            raise share.used("learners", f"this key may have {most} learners: delete one of them", most)
        share.making += 1
        self.name, self._makes = name, True

    def end(self, status: int) -> None:
        """The reply is out."""
        share = self.share
        share.running -= 1
        if status >= 400 and self._size:
            share.add(self._of, -self._size)
        if self._makes and status == 201:
            share.write_down(self._made())
        elif self._makes:
            share.making -= 1

    async def _made(self) -> None:
        """The learner is there: what was counted before it had a log is its own."""
        share = self.share
        try:
            made = await self._host.log_of(self.name)
        finally:
            share.making -= 1
        if made is not None:
            share.made.add(made)
            share.add(self._of, -self._size)
            share.add(made, self._size)
        await share.save()


class Shares:
    """Of all keys, in this process."""

    def __init__(self) -> None:
        self.host: Host
        self.refusals: dict[str, int] = {}
        self._by_key: dict[str, Share] = {}
        self._writing: set[asyncio.Task[None]] = set()

    def begin(self, key: Key) -> Use | None:
        """Admit a request of a key; ShareUsed if it has used up its share. None where it has none."""
        if not key.limited:
            return None
        share = self._by_key.get(key.id)
        if share is None:
            share = self._by_key[key.id] = Share(key, self)
        share.key = key  # its line of the file may have changed
        return share.begin()

    def write_down(self, work: Coroutine[object, object, None]) -> None:
        """In the background; `close` waits for it."""
        task = asyncio.create_task(self._write(work))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        except ServiceError as error:  # it is counted here all the same, and written the next time
            log.warning("what a key has stored could not be written down: %s", error)

    async def close(self) -> None:
        """Write down what is not."""
        for share in self._by_key.values():
            if share.fresh:
                self.write_down(share.save())
        while self._writing:
            await asyncio.gather(*self._writing)
