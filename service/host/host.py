"""The Host: every call of the contract on learners, on plain JSON values, over any Store.

All methods raise `service.errors` and nothing else on purpose. A name may be an alias wherever a learner is read,
asked or taught; the reply carries the learner's own name.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from heapq import nlargest
from typing import Any

from feedrank import learners
from feedrank.learners.errors import SnapshotError
from feedrank.learners.strongest import strongest

from ..errors import Conflict, Gone, ServiceError, StorageFull, Unprocessable
from ..store import Snapshot, Store, Trimmed, open_store
from .catalogue import Catalogue
from .curve import MOST, Curve
from .events import audit
from .feedback import Feedback
from .fold import Fold
from .memory import Memory
from .predict import Predict
from .requests import pointed
from .resident import Counts
from .rounds import Line, Rounds
from .settings import HostSettings

JSON = dict[str, Any]
LONGEST_PAGE = 1000


class Host:
    """Learners by name. Open with `async with Host.open(url, settings) as host`."""

    def __init__(self, store: Store, settings: HostSettings) -> None:
        self.store = store
        self.settings = settings
        self.notices = store.notices
        self._counts = Counts()
        self._catalogue = Catalogue(store, settings.max_learners)
        self._memory = Memory(store, self._catalogue, settings, self._counts)
        self._predict = Predict(store, self._memory, settings, self._counts)
        self._feedback = Feedback(store, self._memory, settings, self._counts)
        self._rounds = Rounds(self._memory, self._predict, self._feedback)

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, settings: HostSettings | None = None) -> AsyncIterator[Host]:
        """Open the store at `url` and host its learners; on leaving, snapshots are written and the store is closed.

        Raises StoreRefused when the store cannot be used at all; its `detail` is the one line to print. `notices` is
        what an operator should be warned of.
        """
        store = await open_store(url)
        host = cls(store, settings or HostSettings())
        try:
            yield host
        finally:
            try:
                await host._predict.close()
                await host._feedback.close()
                await host._memory.close()
            finally:
                await store.close()

    # Learners

    async def create(self, name: str, spec: Mapping[str, Any]) -> tuple[JSON, bool]:
        """Make a learner: (info, True); (info, False) if it is there with an equal spec; Conflict if with another."""
        with pointed():
            full = learners.build(spec).spec
        if len(full.get("labels", ())) > self.settings.max_labels:
            raise Unprocessable.at("/labels", f"at most {self.settings.max_labels} labels a learner")
        listed, fresh = await self._catalogue.create(name, full)
        if not fresh and listed.spec != full:
            raise Conflict(f"there is a learner {name!r} with another spec, and a spec never changes")
        return await self.info(name), fresh

    async def info(self, name: str) -> JSON:
        """Spec, version, labels, features, bytes, progress, certificate."""
        async with self._memory.use(name) as resident:
            told = await resident.worker.run("tell", 1, resident.learner.describe)
            return {"name": resident.listed.name, **told}

    async def list(self, limit: int = 100, cursor: str | None = None) -> JSON:
        """`{"learners": [{"name", "task", "algorithm", "version"}], "next"}` in order of name."""
        if not 1 <= limit <= LONGEST_PAGE:
            raise Unprocessable.at("/limit", f"must be from 1 to {LONGEST_PAGE}")
        found, following = await self._catalogue.page(cursor, limit)
        versions = await self.store.versions([listed.log for listed in found])
        told = [
            {
                "name": listed.name,
                "task": listed.spec["task"],
                "algorithm": listed.spec["algorithm"],
                "version": version,
            }
            for listed, version in zip(found, versions, strict=True)
        ]
        return {"learners": told, "next": following}

    async def delete(self, name: str) -> None:
        """Remove a learner (or only the alias, if `name` is one) and all that belongs to it."""
        key = await self._catalogue.delete(name)
        if key is not None:
            self._memory.forget(key)

    async def alias(self, name: str, learner: str) -> JSON:
        """Let `name` stand for `learner` from now on: `{"name", "learner"}`; Conflict if `name` is a learner."""
        await self._catalogue.alias(name, learner)
        return {"name": name, "learner": learner}

    # Rounds

    # Neither of the two keeps the request alive while it waits for the store; nor should who calls them.

    def predict(self, name: str, request: Mapping[str, Any]) -> Coroutine[Any, Any, JSON]:
        """Decide on one instance, or on each of `{"instances": [...]}`."""
        return self._predict(name, request)

    def feedback(
        self, name: str, request: Mapping[str, Any], key: str | None = None
    ) -> Coroutine[Any, Any, JSON]:
        """Learn from one event, or from all of `{"events": [...]}` or none; `key` is another name for `feedback_id`.

        In a batch, `key` stands for the whole batch: event i takes the id `key/i` if it has no id of its own.
        """
        return self._feedback(name, request, key)

    async def rounds(self, name: str, lines: Sequence[Line]) -> builtins.list[JSON | ServiceError]:
        """The replies to many `("predict" | "feedback", request)` in order, those of the single calls; errors in place."""
        return await self._rounds(name, lines)

    async def retract(self, name: str, request: Mapping[str, Any]) -> JSON:
        """Withdraw the event of `{"feedback_id"}` or `{"prediction_id"}`: `{"version", "withdrawn", "duplicate"}`.

        `version` is that of the withdrawal, `withdrawn` that of the event.
        """
        return await self._feedback.retract(name, request)

    # Reading

    async def events(self, name: str, after: int = 0, limit: int = 100) -> JSON:
        """`{"events": [...], "next": version to read after, or null}`, from the first one kept after `after`."""
        if not 1 <= limit <= LONGEST_PAGE:
            raise Unprocessable.at("/limit", f"must be from 1 to {LONGEST_PAGE}")
        if after < 0:
            raise Unprocessable.at("/after", "must be at least 0")
        listed = await self._catalogue.resolve(name)
        head = await self.store.head(listed.log)
        after = max(after, head.floor - 1)
        try:
            # Beyond its end a log is not asked: no store has numbers as large as a request can.
            entries = await self.store.read(listed.log, after, limit) if after < head.version else []
        except Trimmed:
            raise Gone("these events have just been trimmed: read again") from None
        more = entries and entries[-1].version < head.version
        told = [audit(entry) for entry in entries]
        return {"events": told, "next": entries[-1].version if more else None, "floor": head.floor}

    async def history(self, name: str, points: int = MOST) -> JSON:
        """`{"version", "progress", "points": [{"rounds", "cumulative_loss", "mean_loss", "window_loss"}, ...]}`."""
        async with self._memory.use(name) as resident:
            fold, progress = resident.fold, resident.learner.progress
            curve = fold.curve.to_json(points, (progress.rounds, progress.cumulative_loss))
            return {"version": fold.version, "progress": progress.to_json(), "points": curve}

    async def labels(self, name: str, limit: int = 100) -> JSON:
        """`{"version", "total", "labels": [{"label", "events", "mistakes"}, ...]}`, the most frequent ones first."""
        async with self._memory.use(name) as resident:
            names, held = list(resident.learner.labels), resident.fold.labels
            chosen = nlargest(limit, names, key=lambda label: held.get(label, (0, 0))[0])
            told = [
                {"label": label, "events": events, "mistakes": mistakes}
                for label in chosen
                for events, mistakes in (held.get(label, (0, 0)),)
            ]
            return {"version": resident.version, "total": len(names), "labels": told}

    async def weights(self, name: str, label: str | None, limit: int = 20) -> JSON:
        """`{"version", "label", "features": [{"feature", "weight"}, ...]}`, the strongest first, for or against."""
        async with self._memory.use(name) as resident:
            learner = resident.learner

            def look() -> JSON:
                with pointed():
                    found = strongest(learner, label, limit)
                told = [{"feature": feature, "weight": weight} for feature, weight in found]
                return {"version": learner.version, "label": label, "features": told}

            return await resident.worker.run("weights", resident.bytes, look)

    async def export(self, name: str) -> bytes:
        """The whole learner as one portable file: what `feedrank.learners.load` reads."""
        async with self._memory.use(name) as resident:
            learner = resident.learner
            return await resident.worker.run("dump", resident.bytes, lambda: learners.dump(learner))

    async def restore(self, name: str, data: bytes) -> JSON:
        """Make a learner of such a file: its info; Conflict if the name is taken, Unprocessable if damaged."""
        try:
            learner = learners.load(data)
        except SnapshotError as error:
            raise Unprocessable.at("", str(error)) from None
        if learner.nbytes() > self.settings.max_learner_bytes:
            raise StorageFull(f"a learner may take {self.settings.max_learner_bytes} bytes of memory at most")
        listed, fresh = await self._catalogue.create(name, learner.spec, live=False)
        if not fresh:
            raise Conflict(f"there is a learner {name!r}: restore under another name, or delete it first")
        done = learner.progress
        points: builtins.list[tuple[int, float]] = (
            [(done.rounds, done.cumulative_loss)] if done.rounds else []
        )
        if learner.version:
            digest, image = Fold(learner, Curve(points=points)).dump()
            await self.store.save(listed.log, Snapshot(learner.version, digest, image), {}, keep=1, floor=1)
        await self._catalogue.enliven(listed)
        return await self.info(name)

    # Operating

    async def ready(self) -> None:
        """Return if the store takes writes now, else raise StoreUnavailable."""
        await self.store.check()

    def stats(self) -> dict[str, float]:
        """For metrics: loaded_learners, loaded_bytes, log_lag, store_errors, divergences, skipped_events, feedback,
        duplicates, mistakes, loss_total, predictions, snapshots."""
        return {
            "loaded_learners": len(self._memory),
            "loaded_bytes": self._memory.bytes,
            "log_lag": self._memory.lag,
            **asdict(self._counts),
        }
