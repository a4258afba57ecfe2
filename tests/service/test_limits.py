"""Every algorithm on each of its tasks at its limits: what is accepted never holds the loop, the rest is not appended.

Held is what the loop's own thread computes between two of its turns: `/livez` and a neighbour wait for that, on a
machine however busy.
"""

import asyncio
import gc
import time

import pytest

from feedrank.learners import build, forms, reading, registry, truths
from feedrank.service.contract.faults import Unprocessable
from feedrank.service.contract.settings import Settings
from feedrank.service.runtime import Host

HELD = 0.1  # seconds of the loop's own processor time
TRIES = 5  # a neighbour on the machine makes work dearer, never cheaper: the least of so many tries is what it takes
LIMITS = {"max_event_seconds": 0.5, "max_event_bytes": 2**26}
MOST = {"items": 2_000, "labels": 256, "features": 4_096}
CASES = [(one.name, task) for one in registry.algorithms() for task in one.does()]


def spec_of(name, task):
    labels = {"binary": ["l0", "l1"], "ordinal": ["l0", "l1", "l2"]}
    spec = {"task": task, "algorithm": name}
    return spec | ({"labels": labels[task]} if task in labels else {})


def event_of(spec, size):
    """Something to predict, and the truth of it, as large as its kind becomes at `size`."""
    form = forms.of(spec["task"])
    if form.items:
        count = min(size, MOST["items"])
        items = [{"id": f"i{i}", "features": {f"w{i % 50}": 1.0, "x": i / count}} for i in range(count)]
        if form.chooses:
            return {"items": items}, {"reward": 1.0, "served": {"id": "i0", "probability": 0.5}}
        return {"items": items}, {"relevance": {f"i{i}": i % 4 for i in range(count)}}
    instance = {"features": {f"w{i}": 1.0 + i % 3 for i in range(min(size, MOST["features"]))}}
    names = [f"l{i}" for i in range(min(size, MOST["labels"]))]
    if "label" in form.truths:
        return instance, {"label": "l1"}
    if "labels" in form.truths:
        return instance, {"labels": names[::2]}
    return instance, {"relevance": {name: i % 4 for i, name in enumerate(names)}}


def is_accepted(spec, event):
    """Whether the estimate of a fresh learner is below the limits."""
    learner = build(spec)
    parsed, grades = reading.instance(learner.spec, event[0]), truths.grade_count(event[1])
    cost = reading.cost(learner, parsed, truths.named(event[1]), grades=grades)
    return cost.seconds <= LIMITS["max_event_seconds"] and cost.bytes <= LIMITS["max_event_bytes"]


class Turns:
    """`most`: the longest that the loop's thread has computed between two turns."""

    async def __aenter__(self):
        gc.disable()  # the garbage of a whole test process is none of the service's
        self.most, self._going = 0.0, True
        self._task = asyncio.ensure_future(self._watch())
        await asyncio.sleep(0)
        return self

    async def _watch(self):
        last = time.thread_time()
        while self._going:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.most, last = max(self.most, now - last), now

    async def __aexit__(self, *_):
        self._going = False
        await self._task
        gc.enable()


def least_held(measure, tmp_path):
    """{what: seconds that it held the loop}, the least of several tries on fresh stores; as few as show enough."""
    least = {}
    for number in range(TRIES):
        held = measure(f"sqlite:{tmp_path / f'{number}.db'}")
        least = {what: min(taken, least.get(what, taken)) for what, taken in held.items()}
        if max(least.values()) < HELD:
            break
    return least


async def done(call):
    """Whether it was taken; else it was refused for what it would cost."""
    try:
        await call
    except Unprocessable as error:
        if "MAX_EVENT" not in error.detail:
            raise
        return False
    return True


@pytest.mark.parametrize(("name", "task"), CASES, ids=[f"{name}-{task}" for name, task in CASES])
def test_an_algorithm_at_its_limits(tmp_path, name, task):
    spec = spec_of(name, task)
    size, largest = 16, max(MOST.values())
    while size < largest and is_accepted(spec, event_of(spec, 2 * size)):
        size *= 2
    instance, truth = event_of(spec, size)

    async def run(url):
        async with Host.open(url, Settings(**LIMITS)) as host:
            await host.create("a", spec)
            await host.create("n", {"task": "multiclass"})
            held, taken = {}, 0
            for turn in range(3):
                async with Turns() as turns:
                    # What is known after the first event may make the next one too dear: then it is refused, whole.
                    taken += await done(host.feedback("a", {**instance, **truth}))
                held[f"feedback {turn}"] = turns.most
                async with Turns() as turns:
                    await done(host.predict("a", {**instance, "remember": False}))
                held[f"predict {turn}"] = turns.most
            assert taken >= 1
            if size < largest:
                larger, more = event_of(spec, 2 * size)
                with pytest.raises(Unprocessable, match="MAX_EVENT"):
                    await host.feedback("a", {**larger, **more})
            assert (await host.info("a"))["version"] == taken
            return held

    async def again(url):
        async with Host.open(url, Settings(**LIMITS)) as host:
            async with Turns() as turns:
                assert (await host.info("a"))["version"] >= 1
            return {"load": turns.most}

    held = least_held(lambda url: asyncio.run(run(url)) | asyncio.run(again(url)), tmp_path)
    assert {what: taken for what, taken in held.items() if taken > HELD} == {}


@pytest.mark.parametrize(
    "instance",
    [
        {"text": "some words of it " * 60_000},
        {"features": {f"w{i}": 1.0 for i in range(60_000)}},
        {"features": [f"w{i}" for i in range(60_000)]},
    ],
    ids=["text", "features", "names"],
)
def test_a_long_instance_does_not_hold_the_loop(tmp_path, instance):
    async def run(url):
        async with Host.open(url) as host:
            await host.create("a", {"task": "multiclass", "algorithm": "predtron"})
            async with Turns() as turns:
                await host.feedback("a", {**instance, "label": "x"})
                await host.predict("a", instance)
            return {"both": turns.most}

    assert least_held(lambda url: asyncio.run(run(url)), tmp_path)["both"] < HELD
