"""What is looked at and never changes anything: log, curve, labels, reliability, weights of a learner."""

from __future__ import annotations

from heapq import nlargest

from feedrank.learners.explaining import strongest
from feedrank.learners.inference.assurance import AUDIT
from feedrank.service.contract.events import Event
from feedrank.service.contract.faults import Gone, Unprocessable
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.messages import ErrorScope
from feedrank.service.contract.naming import check_limit
from feedrank.service.store import Entry, Store, Trimmed

from .assuring import ACCOUNT
from .catalogue import Catalogue
from .learner_state import MOST_POINTS
from .memory import Memory


class Views:
    """Of the learners of one host."""

    def __init__(self, store: Store, catalogue: Catalogue, memory: Memory) -> None:
        self._store, self._catalogue, self._memory = store, catalogue, memory

    async def events(self, name: str, after: int = 0, limit: int = 100) -> JSON:
        """`{"events": [...], "next": version to read after, or null}`, from the first one kept after `after`."""
        check_limit(limit)
        if after < 0:
            raise Unprocessable.at("/after", "must be at least 0")
        log = (await self._catalogue.resolve(name)).log
        head = await self._store.head(log)
        after = max(after, head.floor - 1)
        try:
            # Beyond its end a log is not asked: no store has numbers as large as a request can.
            entries = await self._store.read(log, after, limit) if after < head.version else []
        except Trimmed:
            raise Gone("these events have just been trimmed: read again") from None
        more = entries and entries[-1].version < head.version
        shown = [audit(entry) for entry in entries]
        return {"events": shown, "next": entries[-1].version if more else None, "floor": head.floor}

    async def history(self, name: str, points: int = MOST_POINTS) -> JSON:
        """`{"version", "progress", "experts": [names], "points": [{"rounds", "at", "cumulative_loss", ...}, ...]}`."""
        async with self._memory.use(name) as learner:
            state = learner.state
            progress = state.learner.progress.to_json()
            return {
                "version": state.version,
                "progress": progress,
                "experts": state.experts(),
                "points": state.history(points),
            }

    async def labels(self, name: str, limit: int = 100) -> JSON:
        """`{"version", "total", "labels": [{"label", "events", "mistakes"}, ...]}`, the most frequent ones first."""
        async with self._memory.use(name) as learner:
            names, counts = list(learner.state.learner.labels), learner.state.labels
            chosen = nlargest(limit, names, key=lambda label: counts.get(label, (0, 0))[0])
            shown = [
                {"label": label, "events": events, "mistakes": mistakes}
                for label in chosen
                for events, mistakes in (counts.get(label, (0, 0)),)
            ]
            return {"version": learner.version, "total": len(names), "labels": shown}

    async def reliability(self, name: str) -> JSON:
        """What decisions were worth, by stated probability and label; see learners/inference/reliability.py."""
        async with self._memory.use(name) as learner:
            state = learner.state
            counted = state.judging.reliability
            shown = await learner.worker.run("reliability", 1 + len(counted.labels), counted.to_json)
            return {"version": state.version, **shown}

    async def weights(self, name: str, label: str | None, limit: int = 20) -> JSON:
        """`{"version", "label", "features": [{"feature", "weight"}, ...]}`, the strongest first, for or against."""
        async with self._memory.use(name) as learner:
            core = learner.state.learner

            def look() -> JSON:
                with ErrorScope():
                    pairs = strongest(core, label, limit)
                features = [{"feature": feature, "weight": weight} for feature, weight in pairs]
                return {"version": core.version, "label": label, "features": features}

            return await learner.worker.run("weights", learner.state.nbytes, look)


def audit(entry: Entry) -> JSON:
    """An entry as `GET .../events` shows it: a label that was renamed since has the name that was sent."""
    event = Event.read(entry)
    shown: JSON = {"version": entry.version, "at": entry.at, "kind": kind_of(event)}
    if event.erased:
        shown["checksum"] = event.erased
    for name in ("feedback_id", "prediction_id", "instance", "truth", "served", "weight", "subject"):
        value = getattr(event, name)
        if value not in (None, "") and (name, value) != ("weight", 1.0):
            shown[name] = value
    if event.assured is not None:
        shown |= {"min_precision": event.assured["precision"], "audit": event.assured["kind"] == AUDIT}
        if event.assured.get("account"):
            shown["promise"] = ACCOUNT
    if event.served is not None and "draw" in event.served:
        shown |= {"served": dict(event.served), "draw": event.served["draw"]}
        del shown["served"]["draw"]
    if event.rename is not None:
        shown["rename"] = event.rename
    elif event.retracts:
        shown["retracts"] = event.retracts
    else:
        shown["retracted"] = entry.retracted > 0
    return shown


def kind_of(event: Event) -> str:
    """`feedback`, `retraction` or `rename`, or `erased` if there is nothing of it any more."""
    if event.rename is not None:
        return "rename"
    if event.erased and not event.retracts:
        return "erased"
    return "retraction" if event.retracts else "feedback"
