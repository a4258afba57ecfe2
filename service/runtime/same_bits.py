"""Checks that this process computes the same bits as the process that opened the store before it.

Replicas agree because equal events give equal weights, on one build and every CPU. A build that computes otherwise would be
noticed by the first snapshot that differs; it is said soon after the start, by the fingerprint of a recorded stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.metadata import version

import orjson

from feedrank import learners
from feedrank.learners import forms, kernel, registry
from feedrank.learners.forms import Form
from feedrank.service.contract.faults import ServiceError
from feedrank.service.contract.json_types import JSON
from feedrank.service.store import Stale, Store, StoreSignal

KIND, NAME = "build", "bits"
ROUNDS, FEATURES, ITEMS = 6, 24, 6


async def compare(store: Store) -> tuple[str, ...]:
    """What an operator should know: nothing, if the bits are those of the process before. It stops no start."""
    try:
        return await _compare(store)
    except (ServiceError, StoreSignal) as error:
        return (f"whether it learns the same bits as the process before it was not compared: {error}",)


async def _compare(store: Store) -> tuple[str, ...]:
    own: JSON = {
        "fingerprint": await asyncio.to_thread(fingerprint),
        "version": version("feedrank"),
        "kernel": kernel.NAME,
    }
    stored = await store.get(KIND, NAME)
    before: JSON = {} if stored is None else orjson.loads(stored.value)
    if before.get("fingerprint") == own["fingerprint"]:
        return ()
    try:
        await store.put(KIND, NAME, orjson.dumps(own), 0 if stored is None else stored.revision)
    except Stale:
        return await _compare(store)  # another process starts at this moment
    if not before:
        return ()
    one, two = (f"{each['version']}, {each['kernel']} kernel" for each in (own, before))
    return (
        f"this process ({one}) learns other bits from a recorded stream than the one that opened the store before it "
        f"({two}): run the same build on all replicas, and see `feedrank verify` for what the older one has saved",
    )


@cache
def fingerprint() -> str:
    """A digest of what every algorithm learns from the stream."""
    prints = sha256()
    for spec in specs():
        learner = learners.build(spec)
        for number in range(ROUNDS):
            instance, truth = event(learner.form, number)
            served = learner.predict(instance).served() if learner.form.chooses else None
            learner.learn(instance, truth, served=served)
        prints.update(learners.fingerprint(learner).encode())
    return prints.hexdigest()


def specs() -> Iterator[JSON]:
    """Every preset, and every algorithm on the first of its tasks."""
    chosen: list[JSON] = [{"task": name} for name in forms.names()]
    chosen += [{"task": entry.does()[0], "algorithm": entry.name} for entry in registry.algorithms()]
    for spec in chosen:
        yield spec | ({"labels": ["l0", "l1"]} if forms.of(spec["task"]).closed else {})


def event(form: Form, number: int) -> tuple[JSON, JSON]:
    """Round `number`: many numbers that no sum takes without rounding."""
    if not form.items:
        truth: JSON = {"label": f"l{number % 2}"}
        if "label" not in form.truths:
            truth = {"labels": [f"l{number % 2}", f"l{2 + number % 3}"]}
        return {"features": numbers(number)}, truth
    items = [{"id": f"d{i}", "features": numbers(7 * number + i)} for i in range(ITEMS)]
    if form.chooses:
        return {"items": items, "features": numbers(number)}, {"reward": number / ROUNDS}
    return {"items": items}, {"relevance": {f"d{i}": (number + i) % 3 for i in range(ITEMS)}}


def numbers(seed: int) -> dict[str, float]:
    return {f"w{(seed + 5 * j) % 31}": ((31 * seed + 17 * j) % 97 + 1) / 97 for j in range(FEATURES)}
