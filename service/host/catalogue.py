"""The catalogue: which names there are, and what they stand for. One document a name, changed by compare and set.

    learner   {"log", "spec", "created", "state": "live"}
    alias     {"alias": learner}

A learner that is being restored or deleted is "passing": it reads as absent. Whoever next wants the name finishes what a
crash left undone, since the document still says which log to clear. A log is named by chance, never by its learner, so a
name that is given away again has nothing of its past.
"""

from __future__ import annotations

import re
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import orjson

from ..errors import Conflict, NotFound, StorageFull, StoreUnavailable, Unprocessable
from ..store import Document, Stale, Store

KIND = "name"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
CACHED = 20_000


@dataclass(frozen=True, slots=True)
class Listed:
    """A learner of the catalogue."""

    name: str
    log: str
    spec: dict[str, Any]
    revision: int


class Catalogue:
    """Names in a store. What is read is cached until `forget`: the Host hears of changes by other processes."""

    def __init__(self, store: Store, most: int) -> None:
        self._store = store
        self._most = most
        self._cache: OrderedDict[str, tuple[dict[str, Any], int]] = OrderedDict()
        self._doubtful: OrderedDict[str, tuple[dict[str, Any], int]] = OrderedDict()

    def forget(self, name: str) -> None:
        """Read a name anew when it is next needed: it has changed."""
        self._cache.pop(name, None)
        self._doubtful.pop(name, None)

    def doubt(self) -> None:
        """Read all names anew if the store answers: some may have changed."""
        self._doubtful |= self._cache
        self._cache.clear()
        while len(self._doubtful) > CACHED:
            self._doubtful.popitem(last=False)

    async def _get(self, name: str) -> tuple[dict[str, Any], int] | None:
        if name in self._cache:
            return self._cache[name]
        try:
            found = await self._store.get(KIND, name)
        except StoreUnavailable:
            if name in self._doubtful:
                return self._doubtful[name]
            raise
        held = None if found is None else (orjson.loads(found.value), found.revision)
        if held is not None:
            self._cache[name] = held
            if len(self._cache) > CACHED:
                self._cache.popitem(last=False)
        return held

    async def find(self, name: str) -> Listed | None:
        """The learner of this very name, if it is live."""
        held = await self._get(name) if NAME.fullmatch(name) else None
        if held is None or held[0].get("state") != "live":
            return None
        return Listed(name, held[0]["log"], held[0]["spec"], held[1])

    async def aliased(self, name: str) -> tuple[str, int] | None:
        """What the alias of this name stands for, with its revision."""
        held = await self._get(name) if NAME.fullmatch(name) else None
        return None if held is None or "alias" not in held[0] else (str(held[0]["alias"]), held[1])

    async def resolve(self, name: str) -> Listed:
        """The learner that a name stands for, or NotFound."""
        alias = await self.aliased(name)
        found = await self.find(name if alias is None else alias[0])
        if found is None:
            raise NotFound(
                f"there is no learner {name!r}" if alias is None else f"{name!r} points to no learner"
            )
        return found

    async def create(self, name: str, spec: dict[str, Any], *, live: bool = True) -> tuple[Listed, bool]:
        """Take the name for a new learner; (the one that is there, False) if there is one."""
        checked(name)
        while True:
            self.forget(name)
            held = await self._get(name)
            if held is not None and "alias" in held[0]:
                raise Conflict(f"{name!r} is an alias: delete it first, or choose another name")
            if held is not None and held[0]["state"] == "live":
                return Listed(name, held[0]["log"], held[0]["spec"], held[1]), False
            if held is None and await self._store.count(KIND) >= self._most:
                raise StorageFull(f"there are {self._most} learners, as many as allowed: delete some")
            try:
                if held is not None:
                    await self._clear(name, held)
                log = secrets.token_hex(12)
                value = {
                    "log": log,
                    "spec": spec,
                    "created": time.time(),
                    "state": "live" if live else "passing",
                }
                revision = await self._store.put(KIND, name, orjson.dumps(value), 0)
            except Stale:
                continue
            self.forget(name)
            return Listed(name, log, spec, revision), True

    async def enliven(self, listed: Listed) -> None:
        """Show a learner that was created passing; Conflict if someone else took the name meanwhile."""
        value = {"log": listed.log, "spec": listed.spec, "created": time.time(), "state": "live"}
        try:
            await self._store.put(KIND, listed.name, orjson.dumps(value), listed.revision)
        except Stale:
            raise Conflict(f"the name {listed.name!r} was taken meanwhile") from None
        finally:
            self.forget(listed.name)

    async def delete(self, name: str) -> str | None:
        """Remove a name; the log that went with it, None for an alias."""
        while True:
            self.forget(name)
            held = await self._get(name) if NAME.fullmatch(name) else None
            if held is None:
                raise NotFound(f"there is no learner {name!r}")
            try:
                if "alias" in held[0]:
                    await self._store.remove(KIND, name, held[1])
                    return None
                if held[0]["state"] == "live":
                    gone = orjson.dumps({**held[0], "state": "passing"})
                    held = ({**held[0], "state": "passing"}, await self._store.put(KIND, name, gone, held[1]))
                await self._clear(name, held)
            except Stale:
                continue
            finally:
                self.forget(name)
            return str(held[0]["log"])

    async def _clear(self, name: str, held: tuple[dict[str, Any], int]) -> None:
        """Finish a deletion or an interrupted restore."""
        await self._store.drop(held[0]["log"])
        await self._store.remove(KIND, name, held[1])

    async def alias(self, name: str, learner: str) -> None:
        """Let `name` stand for `learner`."""
        checked(name)
        if await self.find(learner) is None:
            raise NotFound(f"there is no learner {learner!r}")
        while True:
            self.forget(name)
            held = await self._get(name)
            if held is not None and "alias" not in held[0]:
                raise Conflict(f"{name!r} is a learner: an alias needs a name of its own")
            try:
                await self._store.put(KIND, name, orjson.dumps({"alias": learner}), held[1] if held else 0)
            except Stale:
                continue
            finally:
                self.forget(name)
            return

    async def page(self, cursor: str | None, limit: int) -> tuple[list[Listed], str | None]:
        """Live learners by name, and the cursor of the next page."""
        after = decoded(cursor)
        found: list[Listed] = []
        while True:
            documents = await self._store.page(KIND, after, limit + 1)
            for name, document in documents:
                if len(found) == limit:
                    return found, urlsafe_b64encode(found[-1].name.encode()).decode()
                if (listed := live(name, document)) is not None:
                    found.append(listed)
            if len(documents) <= limit:
                return found, None
            after = documents[-1][0]


def live(name: str, document: Document) -> Listed | None:
    value = orjson.loads(document.value)
    if value.get("state") != "live":
        return None
    return Listed(name, value["log"], value["spec"], document.revision)


def checked(name: str) -> None:
    if not NAME.fullmatch(name):
        raise Unprocessable.at(
            "",
            "a name has 1 to 128 letters, digits, dots, underscores or dashes and starts with a letter or digit",
        )


def decoded(cursor: str | None) -> str:
    if cursor is None:
        return ""
    try:
        name = urlsafe_b64decode(cursor.encode()).decode()
    except ValueError:
        name = ""
    if not NAME.fullmatch(name):
        raise Unprocessable.at("/cursor", "is not a cursor of this list: take it from `next`")
    return name
