"""The catalogue of names: which learner each name points to. One document per name, changed by compare-and-set.

    learner   {"log", "spec", "created", "state": "live"}
    alias     {"alias": learner}

A learner that is being restored or deleted is "passing": it reads as absent. Whoever next wants the name finishes what a
crash left undone, since the document still says which log to clear. A log is named by chance, never by its learner, so a
name that is given away again has nothing of its past.

What is read is cached until a change of it is heard of. An answer is cached only if nothing was heard since it was asked
for: it may be older than the change.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import orjson

from feedrank.learners.spec import completed
from feedrank.service.contract.faults import Conflict, NotFound, StorageFull, StoreUnavailable, name_taken
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.naming import check_name, every_name, is_name
from feedrank.service.store import Document, Stale, Store

from .at_once import waits

KIND = "name"
CACHED = 20_000


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A learner of the catalogue."""

    name: str
    log: str
    spec: JSON
    revision: int


@dataclass(frozen=True, slots=True)
class AliasEntry:
    """A second name of a learner."""

    name: str
    learner: str
    revision: int


T = TypeVar("T")
Stored = tuple[JSON, int]  # a document and its revision


class Catalogue:
    """Names in a store. `live` holds cached learners by their own name, for whoever is in a hurry."""

    def __init__(self, store: Store, most: int) -> None:
        self._store = store
        self._most = most
        self.live: dict[str, CatalogEntry] = {}
        self._cache: OrderedDict[str, Stored] = OrderedDict()
        self._doubtful: OrderedDict[str, Stored] = OrderedDict()
        self._asked: dict[str, object] = {}  # the question of each name that is on its way to the store

    def forget(self, name: str) -> None:
        """Read a name anew when it is next needed: it has changed."""
        self.live.pop(name, None)
        self._cache.pop(name, None)
        self._doubtful.pop(name, None)
        self._asked.pop(name, None)

    def invalidate(self, *names: str) -> None:
        """Read names anew if the store answers: they may have changed. What is known answers while the store is away."""
        for name in names:
            stored = self._cache.get(name) or self._doubtful.get(name)
            self.forget(name)
            if stored is not None:
                self._doubtful[name] = stored
        while len(self._doubtful) > CACHED:
            self._doubtful.popitem(last=False)

    def invalidate_all(self) -> None:
        """The same for every name."""
        self.invalidate(*self._cache)
        self._asked.clear()

    async def _get(self, name: str) -> Stored | None:
        if name in self._cache:
            return self._cache[name]
        await waits("name")
        question = self._asked.setdefault(name, object())
        try:
            document = await self._store.get(KIND, name)
        except StoreUnavailable:
            if name in self._doubtful:
                return self._doubtful[name]
            raise
        stored = None if document is None else (orjson.loads(document.value), document.revision)
        if self._asked.get(name) is question:
            del self._asked[name]
            self._doubtful.pop(name, None)
            if stored is not None:
                self._keep(name, stored)
        return stored

    def _keep(self, name: str, stored: Stored) -> None:
        self._cache[name] = stored
        if (entry := live(name, *stored)) is not None:
            self.live[name] = entry
        if len(self._cache) > CACHED:
            self.live.pop(self._cache.popitem(last=False)[0], None)

    async def find(self, name: str) -> CatalogEntry | None:
        """The learner of this very name, if it is live."""
        stored = await self._get(name) if is_name(name) else None
        return None if stored is None else live(name, *stored)

    async def aliased(self, name: str) -> str | None:
        """What the alias of this name stands for."""
        stored = await self._get(name) if is_name(name) else None
        return None if stored is None or "alias" not in stored[0] else str(stored[0]["alias"])

    async def resolve(self, name: str) -> CatalogEntry:
        """The learner that a name stands for, or NotFound."""
        target = await self.aliased(name)
        entry = await self.find(name if target is None else target)
        if entry is None:
            raise NotFound(
                f"there is no learner {name!r}" if target is None else f"{name!r} points to no learner"
            )
        return entry

    async def create(self, name: str, spec: JSON, *, active: bool = True) -> tuple[CatalogEntry, bool]:
        """Take the name for a new learner; (the one that is there, False) if there is one."""
        check_name(name)
        while True:
            self.forget(name)
            stored = await self._get(name)
            if stored is not None and "alias" in stored[0]:
                raise Conflict(f"{name!r} is an alias: delete it first, or choose another name")
            if (
                stored is not None
                and stored[0]["state"] == "live"
                and not (await self._store.head(stored[0]["log"])).closed
            ):
                return CatalogEntry(name, stored[0]["log"], completed(stored[0]["spec"]), stored[1]), False
            if stored is None and await self._store.count(KIND) >= self._most:
                raise StorageFull(
                    f"the limit of {self._most} learners is reached: delete some, or raise FEEDRANK_MAX_LEARNERS"
                )
            try:
                if stored is not None:  # a restore that was interrupted, or a deletion that was
                    await self._store.discard(KIND, name, stored[1], stored[0]["log"])
                log = secrets.token_hex(12)
                state = "live" if active else "passing"
                value = {"log": log, "spec": spec, "created": time.time(), "state": state}
                revision = await self._store.put(KIND, name, orjson.dumps(value), 0)
            except Stale:
                continue
            finally:
                self.forget(name)
            return CatalogEntry(name, log, spec, revision), True

    async def activate(self, entry: CatalogEntry) -> None:
        """Show a learner that was created passing; Conflict if someone else took the name meanwhile."""
        value = {"log": entry.log, "spec": entry.spec, "created": time.time(), "state": "live"}
        try:
            await self._store.put(KIND, entry.name, orjson.dumps(value), entry.revision)
        except Stale:
            raise name_taken(entry.name) from None
        finally:
            self.forget(entry.name)

    async def delete(self, name: str) -> str | None:
        """Remove a name; the log that went with it, None for an alias."""
        while True:
            self.forget(name)
            stored = await self._get(name) if is_name(name) else None
            if stored is None:
                raise NotFound(f"there is no learner {name!r}")
            value, revision = stored
            try:
                if "alias" in value:
                    await self._store.remove(KIND, name, revision)
                    return None
                await self._store.discard(KIND, name, revision, value["log"])
            except Stale:
                continue
            finally:
                self.forget(name)
            return str(value["log"])

    async def alias(self, name: str, learner: str) -> None:
        """Let `name` stand for `learner`."""
        check_name(name)
        if await self.find(learner) is None:
            raise NotFound(f"there is no learner {learner!r}")
        while True:
            self.forget(name)
            stored = await self._get(name)
            if stored is not None and "alias" not in stored[0]:
                raise Conflict(f"{name!r} is a learner: an alias needs a name of its own")
            try:
                await self._store.put(
                    KIND, name, orjson.dumps({"alias": learner}), stored[1] if stored else 0
                )
            except Stale:
                continue
            finally:
                self.forget(name)
            return

    async def page(
        self, after: str, limit: int, reaches: Callable[[str], bool] = every_name
    ) -> tuple[list[CatalogEntry], str | None]:
        """Live learners that the caller reaches, by name after `after`; the last one's name, if more follow."""
        return await self._page(after, limit, live, reaches)

    async def aliases(
        self, after: str, limit: int, reaches: Callable[[str], bool] = every_name
    ) -> tuple[list[AliasEntry], str | None]:
        """Aliases that the caller reaches, by name after `after`; the last one's name, if more follow."""
        return await self._page(after, limit, alias, reaches)

    async def _page(
        self,
        after: str,
        limit: int,
        read: Callable[[str, JSON, int], T | None],
        reaches: Callable[[str], bool],
    ) -> tuple[list[T], str | None]:
        last = ""
        chosen: list[T] = []
        while True:
            documents = await self._store.page(KIND, after, limit + 1)
            for name, document in documents:
                one = read(name, *parsed(document)) if reaches(name) else None
                if one is not None and len(chosen) == limit:
                    return chosen, last
                if one is not None:
                    chosen.append(one)
                    last = name
            if len(documents) <= limit:
                return chosen, None
            after = documents[-1][0]


def parsed(document: Document) -> Stored:
    return orjson.loads(document.value), document.revision


def live(name: str, value: JSON, revision: int) -> CatalogEntry | None:
    """The learner of a document, unless it is an alias or passing."""
    if value.get("state") != "live":
        return None
    return CatalogEntry(name, value["log"], completed(value["spec"]), revision)


def alias(name: str, value: JSON, revision: int) -> AliasEntry | None:
    """The alias of a document, unless it is a learner."""
    return AliasEntry(name, str(value["alias"]), revision) if "alias" in value else None
