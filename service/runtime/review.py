"""Which remembered predictions to answer first: the least certain, spread over labels and inputs.

The store keeps them by rank, the least certain first. Of the next POOL of them, beginning with the first,

    u_i = (1 - i / POOL) (1 - max_j cos(x_i, x_j)) (1 - c_i / 2)

picks the next one: i is its place, j are those picked before, c_i the share of these with its label. The cosines are those
of features hashed to WIDTH numbers, so that a page costs the same however many wait and however wide they are.

A cursor holds the rank at which the pool begins and what was picked from it; when that is used up the next pool follows.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isnan
from zlib import crc32

import numpy as np
import orjson

from feedrank.learners import reading
from feedrank.learners.instances import FeatureVector, Floats
from feedrank.learners.learner import Learner
from feedrank.learners.registry import Spec
from feedrank.service.contract.faults import Unprocessable
from feedrank.service.contract.json_types import JSON
from feedrank.service.store import Store, Waiting

from .memory import Memory

POOL = 400
LARGEST = 100  # entries of a page
WIDTH = 256
TRIES = 3  # to get leases, before fewer are given


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """Where a page begins: behind this rank, without these."""

    rank: float = -inf
    picked: frozenset[int] = frozenset()

    def cursor(self) -> str:
        """As text."""
        return urlsafe_b64encode(
            struct.pack(f"<d{len(self.picked)}I", self.rank, *sorted(self.picked))
        ).decode()

    @classmethod
    def of(cls, cursor: str | None) -> QueuePosition:
        """The place that a cursor stands for."""
        if not cursor:
            return cls()
        try:
            data = urlsafe_b64decode(cursor.encode())
            rank, *picked = struct.unpack(f"<d{(len(data) - 8) // 4}I", data)
            if isnan(rank):
                raise ValueError("a cursor holds a number")
        except (ValueError, struct.error):
            raise Unprocessable.at("/cursor", "is not a cursor of a queue: take it from `next`") from None
        return cls(rank, frozenset(picked))


class Review:
    """Called with a name and what the request says."""

    def __init__(self, store: Store, memory: Memory) -> None:
        self._store, self._memory = store, memory

    async def __call__(
        self, name: str, limit: int = 20, lease: float = 0.0, cursor: str | None = None
    ) -> JSON:
        """`{"queue": [...], "next": cursor or null}`."""
        place = QueuePosition.of(cursor)
        async with self._memory.use(name) as learner:
            spec, log = learner.state.learner.spec, learner.log
            shown: list[Waiting] = []
            for _ in range(TRIES):
                pool = await self._store.waiting(log, place.rank, POOL)
                left = [one for one in pool if crc32(one.key.encode()) not in place.picked]
                if not left and len(pool) == POOL:
                    place = QueuePosition(pool[-1].rank)
                    continue
                wanted = limit - len(shown)
                picked = await learner.worker.run("queue", len(left), partial(pick, spec, left, wanted))
                if lease and picked:
                    given = set(await self._store.lease(log, [one.key for one in picked], lease))
                    shown += [one for one in picked if one.key in given]
                else:
                    shown += picked
                place = QueuePosition(
                    place.rank, place.picked.union(crc32(one.key.encode()) for one in picked)
                )
                more = len(left) > len(picked) or len(pool) == POOL
                if len(shown) == limit or not more:
                    break
            else:
                more = True
            if len(place.picked) >= POOL and pool:
                place = QueuePosition(pool[-1].rank)
            core = learner.state.learner
            return {"queue": [entry(one, core) for one in shown], "next": place.cursor() if more else None}


def pick(spec: Spec, pool: Sequence[Waiting], count: int) -> list[Waiting]:
    """The next ones, in the order of the page."""
    count = min(count, len(pool))
    if count <= 0:
        return []
    records = [orjson.loads(one.value) for one in pool]
    x = np.stack([hashed(spec, record["instance"]) for record in records])
    labels = [str(decision(record)) for record in records]
    doubt = 1.0 - np.arange(len(pool)) / POOL
    near, chosen, often = np.zeros(len(pool)), [0], dict[str, int]()
    while True:
        last = chosen[-1]
        often[labels[last]] = often.get(labels[last], 0) + 1
        if len(chosen) == count:
            return [pool[i] for i in chosen]
        near = np.maximum(near, x @ x[last])
        share = np.array([often.get(label, 0) for label in labels]) / len(chosen)
        worth = doubt * (1.0 - np.minimum(near, 1.0)) * (1.0 - share / 2)
        worth[chosen] = -1.0
        chosen.append(int(worth.argmax()))


def hashed(spec: Spec, instance: JSON) -> Floats:
    """The features of an instance as WIDTH numbers of length 1, each name with a sign of its own."""
    parsed, out = reading.instance(spec, instance), np.zeros(WIDTH)
    assert isinstance(parsed, FeatureVector)
    values = [1.0] * len(parsed.names) if parsed.values is None else parsed.values
    for name, value in zip(parsed.names, values, strict=True):
        code = crc32(name.encode(errors="replace"))
        out[code % WIDTH] += float(value) if code & 0x80000000 else -float(value)
    length = float(np.abs(out).max())
    out = out / length if length else out
    norm = float(np.sqrt((out * out).sum()))
    return out / norm if norm else out


def decision(record: JSON) -> object:
    """What was decided, or would have been."""
    label = record.get("assured", {}).get("label")
    return next(iter(record["served"].values())) if label is None else label


def entry(one: Waiting, core: Learner) -> JSON:
    """As a page shows it, with the names that labels have now."""
    record = orjson.loads(one.value)
    probability, margin = record["sure"]
    ((field, _),) = record["served"].items()
    return {
        "prediction_id": one.key,
        "instance": record["instance"],
        field: core.meant({field: decision(record)})[field] if core.renames else decision(record),
        "probability": probability,
        "margin": margin,
        "remembered_at": record["at"],
    }
