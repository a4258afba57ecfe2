"""The promises under any interleaving: append, follow, evict, snapshot, retract, delete and recreate, on two replicas.

Two hosts share one store. Every call of the store is delayed by a random number of turns of the loop before and after it,
and so is what one host hears of the other. A model remembers what was acknowledged; in the end both must be its fold.
"""

import asyncio
import contextlib
import random

import pytest
from host_events import SPEC, event, folded

from feedrank import learners
from feedrank.service.contract.faults import Conflict, NotFound, StateDropped
from feedrank.service.contract.settings import Settings
from feedrank.service.runtime import Host
from feedrank.service.runtime.learner_state import LearnerState
from feedrank.service.store import open_store

NAMES = ("a", "b")


class Bus:
    """What the hosts of one store hear of each other, late."""

    def __init__(self):
        self.queues = []

    def say(self, *message):
        for queue in self.queues:
            queue.put_nowait(message)


class SlowStore:
    """A store whose every call takes some turns of the loop, and which tells the bus what it wrote."""

    def __init__(self, store, rng, bus):
        self._store, self._rng, self._bus = store, rng, bus
        self.notices = ()

    async def turns(self):
        for _ in range(self._rng.choice((0, 0, 1, 2, 5))):
            await asyncio.sleep(0)

    def __getattr__(self, name):
        method = getattr(self._store, name)
        if not asyncio.iscoroutinefunction(method):
            return method

        async def delayed(*args, **kwargs):
            await self.turns()
            result = await method(*args, **kwargs)
            if name == "append" and any(place.fresh for place in result):
                self._bus.say("log", args[0], max(place.version for place in result))
            elif name in ("put", "remove", "discard"):
                self._bus.say("document", f"{args[0]}/{args[1]}", 0)
            if name in ("drop", "discard"):
                self._bus.say("log", args[-1], 0)
            await self.turns()
            return result

        return delayed

    def watch(self, log):
        """Everything is heard of."""

    unwatch = watch

    async def changes(self):
        queue = asyncio.Queue()
        self._bus.queues.append(queue)
        while True:
            message = await queue.get()
            await self.turns()
            yield message


class Model:
    """What was acknowledged, by incarnation of a learner: (name, number of times it was created)."""

    def __init__(self):
        self.created = dict.fromkeys(NAMES, 0)
        self.recreating = {name: asyncio.Lock() for name in NAMES}
        self.replies = {}
        self.differences = []

    def expect(self, condition, *why):
        if not condition:
            self.differences.append(why)


async def feed(model, hosts, rng):
    name, host, number = rng.choice(NAMES), rng.choice(hosts), rng.randrange(60)
    born = model.created[name]
    reply = await host.feedback(name, {**event(number), "feedback_id": f"f{number}"})
    if born != model.created[name]:
        return
    first = model.replies.setdefault((name, born, number), reply)
    model.expect({**reply, "duplicate": True} == {**first, "duplicate": True}, "another reply", first, reply)
    seen = await host.predict(name, {"features": ["x"], "remember": False})
    if born == model.created[name]:
        model.expect(seen["version"] >= reply["version"], "older than its own feedback", reply, seen)


async def retract(model, hosts, rng):
    host = rng.choice(hosts)
    await host.retract(rng.choice(NAMES), {"feedback_id": f"f{rng.randrange(60)}"})


async def evict(model, hosts, rng):
    memory = rng.choice(hosts)._memory
    for key, learner in list(memory._learners.items()):
        if not learner.users and not learner.unsettled and rng.random() < 0.5:
            memory.forget(key)
            memory.spawn(learner.close())


async def snapshot(model, hosts, rng):
    for learner in list(rng.choice(hosts)._memory._learners.values()):
        if learner.loaded:
            async with learner.order:
                if learner.loaded and learner.version:
                    await learner.saver.checkpoint(learner)


async def recreate(model, hosts, rng):
    name, host = rng.choice(NAMES), rng.choice(hosts)
    if rng.random() < 0.9:
        return
    # One at a time: between the delete and the create of one, those of another would make it two learners of one number.
    async with model.recreating[name]:
        model.created[name] += 1
        await host.delete(name)
        model.created[name] += 1
        await host.create(name, SPEC)


STEPS = (*[feed] * 12, retract, evict, snapshot, recreate)


async def check(url, seed, steps, workers=8):
    rng, bus, model = random.Random(seed), Bus(), Model()
    store = await open_store(url)
    slow = [SlowStore(store, rng, bus) for _ in range(2)]
    hosts = [Host(each, Settings(snapshot_every=7)) for each in slow]
    try:
        for name in NAMES:
            await hosts[0].create(name, SPEC)

        async def work():
            for _ in range(steps // workers):
                try:
                    await rng.choice(STEPS)(model, hosts, rng)
                except (NotFound, Conflict):
                    continue  # it was deleted, or made anew, meanwhile

        await asyncio.gather(*(work() for _ in range(workers)))
        for name in NAMES:
            await compare(model, hosts, name)
        assert sum(host.stats()["divergences"] for host in hosts) == 0
        return model
    finally:
        for host in hosts:
            await host.close()
        await store.close()


async def compare(model, hosts, name):
    with contextlib.suppress(Conflict):
        await hosts[0].create(name, SPEC)
    learner, version, after = learners.build(SPEC), 0, 0
    while after is not None:
        page = await hosts[0].events(name, after)
        for one in page["events"]:
            version = one["version"]
            if one["kind"] == "feedback" and not one["retracted"]:
                learner.learn(one["instance"], one["truth"])
        after = page["next"]
    learner.version = version
    for host in hosts:
        while True:
            try:
                await host.predict(name, {"features": ["x"], "remember": False, "min_version": version})
                break
            except (NotFound, Conflict):  # what it hears, it hears late
                await asyncio.sleep(0)
        model.expect(await host.export(name) == learners.dump(learner), "another fold", name, version)


@pytest.mark.parametrize("seed", range(4))
def test_two_replicas_keep_every_promise(tmp_path, seed):
    model = asyncio.run(check(f"sqlite:{tmp_path / 'a.db'}", seed, 400))
    assert model.differences == []
    assert len(model.replies) > 30


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_steps(tmp_path):
    for seed in range(100):
        model = asyncio.run(check(f"sqlite:{tmp_path / f'{seed}.db'}", 1000 + seed, 1_000))
        assert model.differences == [], seed
        print(1_000 * (seed + 1), "steps without a difference", flush=True)


@pytest.mark.parametrize("error", [MemoryError, OSError, RuntimeError])
def test_an_accident_drops_the_state_and_loses_nothing(with_host, monkeypatch, error):
    async def body(host):
        await host.create("a", SPEC)
        for i in range(5):
            await host.feedback("a", {**event(i), "feedback_id": f"f{i}"})
        real = LearnerState.apply

        def broken(self, version, one):
            self.learner.labels.add("half")  # as a learner is left when memory runs out on the way
            raise error("no more")

        monkeypatch.setattr(LearnerState, "apply", broken)
        with pytest.raises(StateDropped):
            await host.feedback("a", {**event(5), "feedback_id": "f5"})
        monkeypatch.setattr(LearnerState, "apply", real)
        again = await host.feedback("a", {**event(5), "feedback_id": "f5"})
        assert again["duplicate"]
        assert again["version"] == 6
        assert (await host.feedback("a", event(6)))["version"] == 7
        assert await host.export("a") == folded(range(7), 7)
        assert host.stats()["accidents"] == 1
        assert host.stats()["skipped_events"] == 0

    with_host(body)


def test_a_defect_that_always_fails_is_skipped_and_leaves_no_trace(with_host, monkeypatch):
    real = LearnerState.apply

    def broken(self, version, one):
        if version == 3:
            self.learner.labels.add("half")
            raise ZeroDivisionError
        return real(self, version, one)

    monkeypatch.setattr(LearnerState, "apply", broken)

    async def body(host):
        await host.create("a", SPEC)
        for i in range(5):
            await host.feedback("a", event(i))
        assert await host.export("a") == folded([0, 1, 3, 4], 5)
        assert host.stats()["skipped_events"] == 1

    with_host(body)
