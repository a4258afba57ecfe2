"""Many processes on one Redis: one order, equal weights to the bit, and nobody leads. Each Host stands for a process."""

import asyncio

import pytest
from host_events import SPEC, both_equal, event
from waiting import eventually

from feedrank import learners
from feedrank.service.contract import faults as errors
from feedrank.service.store import Draft, Snapshot


async def concurrent(one, two, count):
    """Feedback to both at once, every tenth event to each of the two."""
    await one.create("a", SPEC)
    sent = []
    for i in range(count):
        for host in (one, two) if i % 10 == 0 else ((one, two)[i % 2],):
            sent.append(host.feedback("a", event(i, feedback_id=f"f{i}")))
    replies = await asyncio.gather(*sent)
    assert sum(not reply["duplicate"] for reply in replies) == count
    assert sorted(reply["version"] for reply in replies if not reply["duplicate"]) == list(
        range(1, count + 1)
    )
    assert await both_equal(one, two) == count
    fold = learners.build(SPEC)
    after = 0
    while after is not None:
        page = await two.events("a", after=after, limit=1000)
        for entry in page["events"]:
            fold.learn(entry["instance"], entry["truth"])
        after = page["next"]
    assert learners.dump(fold) == await one.export("a")


def test_two_replicas_apply_each_event_once_in_one_order(replicas):
    replicas(lambda one, two: concurrent(one, two, 300), snapshot_every=50)


@pytest.mark.slow
def test_two_replicas_and_two_thousand_events(replicas):
    replicas(lambda one, two: concurrent(one, two, 2000), snapshot_every=100)


def test_a_cluster_of_three_holds_everything(redis_cluster, hosts):
    """Logs, documents and records of any names, wherever their slots are."""

    async def body(one, two):
        names = ["a", "b", "c", "d", "e"]
        for name in names:
            await one.create(name, SPEC)
            await asyncio.gather(
                *((one, two)[i % 2].feedback(name, event(i, feedback_id=f"f{i}")) for i in range(24))
            )
            await two.retract(name, {"feedback_id": "f3"})
            reply = await one.predict(name, {"features": ["x"]})
            await two.feedback(name, {"prediction_id": reply["prediction_id"], "label": "a"})
            assert await both_equal(one, two, name) == 26
        assert [(one["name"], one["version"]) for one in (await two.list())["learners"]] == [
            (n, 26) for n in names
        ]
        for i in range(20):
            log = f"experiment-{i}"
            await one.store.append(log, [Draft(b"x", ids=("i",), digest="d")])
            assert (await two.store.append(log, [Draft(b"x", ids=("i",), digest="d")]))[0].fresh is False
            await one.store.save(log, Snapshot(1, "d", b"data"), {1: b"o"}, keep=1, floor=1)
            assert (await two.store.snapshot(log, 1)).data == b"data"
            await one.store.drop(log)
        await one.delete("a")
        await two.ready()

    hosts(redis_cluster.url, body, snapshot_every=5)


async def version(host, name="a"):
    return (await host.predict(name, {"features": ["x"], "remember": False}))["version"]


def test_a_replica_follows_without_being_asked(replicas):
    async def body(one, two):
        await one.create("a", SPEC)
        assert (await two.info("a"))["version"] == 0  # loaded there
        for i in range(5):
            await one.feedback("a", event(i))

        async def followed():
            return (await two.predict("a", {"features": ["x"], "remember": False}))["version"] == 5

        await eventually(followed)
        assert two.stats()["log_lag"] == 0
        await one.feedback("a", event(6, feedback_id="again"))
        reply = await two.predict("a", {"features": ["x"], "remember": False, "min_version": 6})
        assert reply["version"] == 6
        assert (await two.feedback("a", event(6, feedback_id="again")))["duplicate"]

    replicas(body)


def test_a_replica_whose_own_append_is_refused_follows_all_the_same(replicas):
    async def body(one, two):
        await one.create("a", SPEC)
        assert await version(two) == 0
        other = {**event(0), "label": "z", "feedback_id": "f0"}
        await one.feedback("a", event(0, feedback_id="f0"))
        for start in range(1, 121, 10):
            ids = range(start, start + 10)
            writes = [one.feedback("a", event(i, feedback_id=f"f{i}")) for i in ids]
            *_, refused = await asyncio.gather(*writes, two.feedback("a", other), return_exceptions=True)
            assert isinstance(refused, errors.Conflict)

            async def followed(newest=start + 10):
                return await version(two) == newest and two.stats()["log_lag"] == 0

            await eventually(followed)

    replicas(body)


def test_a_learner_that_only_others_teach_and_nobody_asks_for_is_let_go(replicas):
    async def body(one, two):
        await one.create("a", SPEC)
        assert (await two.info("a"))["version"] == 0

        async def let_go():
            return two.stats()["loaded_learners"] == 0

        for i in range(20):  # as many as lie between two snapshots
            await one.feedback("a", event(i))
        assert (await two.info("a"))["version"] <= 20  # who is asked stays, and begins to count anew
        for i in range(20, 41):
            await one.feedback("a", event(i))
        await eventually(let_go)
        assert one.stats()["loaded_learners"] == 1  # it has heard of the same messages
        assert await both_equal(one, two) == 41
        assert two.stats()["loaded_learners"] == 1

    replicas(body, snapshot_every=20)


def test_a_prediction_of_one_is_answered_at_the_other(replicas):
    async def body(one, two):
        await one.create("a", SPEC)
        reply = await one.predict("a", {"features": {"x": 1.0}})
        first = await two.feedback("a", {"prediction_id": reply["prediction_id"], "label": "b"})
        again = await one.feedback("a", {"prediction_id": reply["prediction_id"], "label": "b"})
        assert again == {**first, "duplicate": True}
        with pytest.raises(errors.Conflict):
            await one.feedback("a", {"prediction_id": reply["prediction_id"], "label": "c"})

    replicas(body)


def test_a_retraction_reaches_every_replica(replicas):
    async def body(one, two):
        await one.create("a", SPEC)
        for i in range(20):
            await (one, two)[i % 2].feedback("a", event(i, feedback_id=f"f{i}"))
        await asyncio.gather(
            one.retract("a", {"feedback_id": "f3"}),
            two.retract("a", {"feedback_id": "f3"}),
            two.retract("a", {"feedback_id": "f15"}),
            one.feedback("a", event(20)),
        )
        assert await both_equal(one, two) == 23
        assert (await one.info("a"))["progress"]["rounds"] == 19

    replicas(body, snapshot_every=4)


def test_names_change_for_all(replicas):
    async def body(one, two):
        await one.create("a", SPEC)
        await one.create("b", SPEC)
        await one.alias("live", "a")
        assert (await two.predict("live", {"features": ["x"]}))["learner"] == "a"
        await one.alias("live", "b")

        async def switched():
            return (await two.predict("live", {"features": ["x"]}))["learner"] == "b"

        await eventually(switched)
        await two.feedback("a", event(1))
        await one.delete("a")
        with pytest.raises(errors.NotFound):  # a feedback is never taken by what is gone
            await two.feedback("a", event(2))
        await one.create("a", SPEC)

        async def fresh():
            try:
                return (await two.info("a"))["version"] == 0
            except errors.NotFound:
                return False

        await eventually(fresh)

    replicas(body)


def test_the_last_switch_of_an_alias_is_the_one_that_counts(replicas):
    async def body(one, two):
        for name in "ab":
            await one.create(name, SPEC)
        await one.alias("live", "a")
        asking = True

        async def ask():
            while asking:
                await two.predict("live", {"features": ["x"], "remember": False})
                await asyncio.sleep(0)

        asks = [asyncio.create_task(ask()) for _ in range(4)]
        for i in range(40):
            target = "ba"[i % 2]
            await one.alias("live", target)

            async def switched(target=target):
                reply = await two.predict("live", {"features": ["x"], "remember": False})
                return reply["learner"] == target

            await eventually(switched)
        asking = False
        await asyncio.gather(*asks)

    replicas(body)
