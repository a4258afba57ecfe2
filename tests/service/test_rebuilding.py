"""A long rebuild without a retracted event saves on its way: who is killed meanwhile does not begin from nothing."""

import asyncio

from waiting import eventually

from feedrank import learners
from feedrank.service.runtime import rebuilding

SPEC = {"task": "multiclass", "algorithm": "predtron"}
EVENTS, EARLY, EVERY = 600, 10, 50


def event(i):
    return {"features": {f"w{i % 7}": 1.0, f"v{i % 5}": 0.5}, "label": "abc"[i % 3], "feedback_id": f"f{i}"}


def rebuilt(version):
    learner = learners.build(SPEC)
    for i in range(EVENTS):
        if i != EARLY - 1:
            learner.learn({"features": event(i)["features"]}, {"label": event(i)["label"]})
    learner.version = version
    return learners.dump(learner)


def test_a_rebuild_that_was_killed_goes_on_where_it_was(with_host, monkeypatch):
    monkeypatch.setattr(rebuilding, "LONG", 100)
    monkeypatch.setattr(rebuilding, "TURN", 20)
    reached, twins, own_twin = [], [], rebuilding.without_retracted

    async def halfway(follower):
        """A twin that comes to half of the log, and no further."""
        twin = await own_twin(follower)
        twins.append(twin)
        own = twin.advance

        async def advance(to):
            await (own(to) if to < EVENTS // 2 else asyncio.Event().wait())

        monkeypatch.setattr(twin, "advance", advance)
        return twin

    async def begun(host):
        await host.create("a", SPEC)
        await host.feedback("a", {"events": [event(i) for i in range(EVENTS)]})
        log = (await host._catalogue.find("a")).log
        (learner,) = host._memory._learners.values()
        await learner.saver.settle()
        with monkeypatch.context() as slow:
            slow.setattr(rebuilding, "without_retracted", halfway)
            done = await host.retract("a", {"feedback_id": f"f{EARLY - 1}"})
            await asyncio.sleep(0)  # the rebuild begins
        assert done["state"] == "pending"
        assert max((await host.store.head(log)).snapshots, default=0) < EARLY  # what held the event is gone

        async def saved():
            newest = max((await host.store.head(log)).snapshots, default=0)
            return newest if newest >= EVERY else None

        reached.append(await eventually(saved, pause=0.001))
        # As a kill does it: neither the rebuild nor what is in memory is brought to an end.
        learner.rebuilder._task.cancel()
        host._memory._learners.clear()
        # What is on its way to the store must not outlive it: it would connect anew.
        await asyncio.wait([learner.rebuilder._task])
        for follower in (learner, *twins):
            await follower.saver.settle()

    read = []

    async def after(host):
        own = host.store.read

        async def counted(log, after, *more):
            read.append(after)
            return await own(log, after, *more)

        monkeypatch.setattr(host.store, "read", counted)
        assert (await host.info("a"))["version"] == EVENTS + 1
        assert await host.export("a") == rebuilt(EVENTS + 1)
        assert (await host.feedback("a", event(EARLY)))["duplicate"]

    with_host(begun, snapshot_every=EVERY)
    with_host(after, snapshot_every=EVERY)
    assert min(read) >= reached[0]


def test_the_rebuild_itself_comes_to_the_same_bits(with_host, monkeypatch):
    monkeypatch.setattr(rebuilding, "LONG", 100)
    monkeypatch.setattr(rebuilding, "TURN", 20)

    async def body(host):
        await host.create("a", SPEC)
        await host.feedback("a", {"events": [event(i) for i in range(EVENTS)]})
        assert (await host.retract("a", {"feedback_id": f"f{EARLY - 1}"}))["state"] == "pending"
        (learner,) = host._memory._learners.values()
        await eventually(lambda: not learner.unsettled)
        assert await host.export("a") == rebuilt(EVENTS + 1)
        await learner.saver.settle()
        assert EVERY < learner.saved <= EVENTS + 1

    with_host(body, snapshot_every=EVERY)


COUNT, LEFT_OUT, SAVED = 25, 3, 6  # events, the one that is retracted, and a snapshot behind it


def first_losses(without=0):
    learner = learners.build(SPEC)
    return {
        i + 1: learner.learn({"features": event(i)["features"]}, {"label": event(i)["label"]}).loss
        for i in range(COUNT)
        if i + 1 != without
    }


async def save_without(host):
    """Retract an event; fold from nothing again, and save before the retraction as who was stopped on the way does."""
    await host.retract("a", {"feedback_id": f"f{LEFT_OUT - 1}"})
    (learner,) = host._memory._learners.values()
    twin = learner.twin()
    await twin.start(before=1)
    await twin.advance(SAVED)
    await twin.saver.checkpoint(twin)
    await twin.saver.settle()
    assert SAVED in (await host.store.head(learner.log)).snapshots


def test_a_first_outcome_is_not_folded_from_a_snapshot_that_leaves_out_what_was_retracted_later(with_host):
    losses, others = first_losses(), first_losses(without=LEFT_OUT)
    assert any(losses[at] != others[at] for at in range(SAVED + 1, COUNT + 1))

    async def body(host):
        await host.create("a", SPEC)
        await host.feedback("a", {"events": [event(i) for i in range(COUNT)]})
        await save_without(host)
        (learner,) = host._memory._learners.values()
        for at in range(SAVED + 1, COUNT + 1):
            assert (await rebuilding.first_outcome(learner, at))["loss"] == losses[at]

    with_host(body)


def test_a_snapshot_that_was_replaced_while_it_was_loaded_gives_no_false_first_outcome(
    with_host, monkeypatch
):
    losses = first_losses()

    async def body(host):
        await host.create("a", SPEC)
        await host.feedback("a", {"events": [event(i) for i in range(COUNT)]})
        (learner,) = host._memory._learners.values()
        late = learner.twin()
        early = learner.twin()
        await early.start(before=1)
        await early.advance(SAVED)
        await early.saver.checkpoint(early)
        await early.saver.settle()
        own = host.store.snapshot

        async def replaced(*arguments):
            monkeypatch.setattr(host.store, "snapshot", own)
            await save_without(host)
            return await own(*arguments)

        monkeypatch.setattr(host.store, "snapshot", replaced)
        late.appending = 1
        await late.start(before=SAVED + 1)
        assert late.version == SAVED
        await late.advance(COUNT)
        assert all(late.outcomes[at]["loss"] == losses[at] for at in late.outcomes)

    with_host(body)
