"""Many processes on one Redis: one order, equal weights to the bit, and nobody leads. Each Host stands for a process."""

import asyncio
import logging
from contextlib import AsyncExitStack

import pytest
import redis
from waiting import eventually

from feedrank import learners
from feedrank.service.contract import faults as errors
from feedrank.service.contract.settings import Settings
from feedrank.service.runtime import Host
from feedrank.service.store import Draft, Snapshot

SPEC = {"task": "multiclass", "algorithm": "predtron"}


def event(i, **more):
    return {"features": {f"w{i % 7}": 1.0, f"v{i % 5}": 0.5, "x": 2.0}, "label": "abc"[i % 3], **more}


@pytest.fixture
def replicas(redis_server):
    """Run `body(hosts...)` with several Hosts on one empty Redis."""
    redis_server.ask(b"FLUSHALL")

    def run(body, count=2, url=redis_server.url, **settings):
        async def main():
            async with AsyncExitStack() as stack:
                hosts = [
                    await stack.enter_async_context(Host.open(url, Settings(**settings)))
                    for _ in range(count)
                ]
                await body(*hosts)

        asyncio.run(main())

    return run


async def both_equal(one, two, name="a"):
    versions = (await one.info(name))["version"], (await two.info(name))["version"]
    newest = max(versions)
    for host in (one, two):
        await host.predict(name, {"features": ["x"], "remember": False, "min_version": newest})
    assert await one.export(name) == await two.export(name)
    return newest


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


def test_a_replica_behind_the_trimmed_part_loads_the_snapshot(replicas):
    async def body(one, two):
        await one.create("a", SPEC)
        await two.info("a")
        (behind,) = two._memory._learners.values()
        behind.following = True  # it hears of nothing
        for i in range(40):
            await one.feedback("a", event(i))
            await asyncio.sleep(0.001)
        (ahead,) = one._memory._learners.values()
        await ahead.saver.settle()
        assert (await one.events("a"))["floor"] > 1
        assert behind.version == 0
        behind.following = False
        assert await both_equal(one, two) == 40

    replicas(body, snapshot_every=5, snapshots_kept=1, log_retention=2)


def test_a_replica_that_disagrees_is_found_counted_and_mended(replicas):
    async def body(one, two):
        await one.create("a", SPEC)
        for i in range(5):
            await one.feedback("a", event(i))
        await two.info("a")
        (loaded,) = two._memory._learners.values()
        loaded.state.learner.learn({"features": ["cosmic", "ray"]}, {"label": "a"})
        loaded.state.learner.version = 5
        for i in range(5, 10):
            await one.feedback("a", event(i))
        assert await one.export("a") != await two.export("a") or two.stats()["divergences"]

        async def mended():
            await two.predict("a", {"features": ["x"], "remember": False, "min_version": 10})
            return one.stats()["divergences"] + two.stats()["divergences"] == 1

        await eventually(mended)
        for loaded in (*one._memory._learners.values(), *two._memory._learners.values()):
            if loaded.saver._saving is not None:
                await loaded.saver.settle()
        assert await both_equal(one, two) == 10

    replicas(body, snapshot_every=10)


def test_a_cluster_of_three_holds_everything(redis_cluster, replicas):
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

    replicas(body, url=redis_cluster.url, snapshot_every=5)


# A log that goes back, writes that are refused, names that switch quickly


async def version(host, name="a"):
    return (await host.predict(name, {"features": ["x"], "remember": False}))["version"]


def fold(count):
    learner = learners.build(SPEC)
    for i in range(count):
        learner.learn({"features": event(i)["features"]}, {"label": event(i)["label"]})
    return learners.dump(learner)


@pytest.mark.parametrize("kept", [0, 3])
def test_a_log_that_went_back_is_said_and_folded_again(own_redis, replicas, caplog, kept):
    caplog.set_level(logging.ERROR)
    server = redis.Redis.from_url(own_redis.url)

    async def body(one, two):
        await one.create("a", SPEC)
        for i in range(6):
            if i == kept:
                copy = {key: server.dump(key) for key in server.keys("*")}
            await one.feedback("a", event(i))
        await two.predict("a", {"features": ["x"], "remember": False, "min_version": 6})
        server.flushall()  # and restored from a copy of `kept` events
        for key, value in copy.items():
            server.restore(key, 0, value)

        for host in (one, two):
            await host.ready()  # nobody has looked at the log yet
        first = await one.feedback("a", event(kept))
        assert (first["version"], first["duplicate"]) == (kept + 1, False)
        second = await two.feedback("a", event(kept + 1))
        assert second["version"] == kept + 2
        for host in (one, two):
            assert host.stats()["divergences"] == 1
            assert host.stats()["log_faults"] == 1
            with pytest.raises(errors.StoreUnavailable, match="went back from version 6"):
                await host.ready()
            await host.predict("a", {"features": ["x"], "remember": False, "min_version": kept + 2})
            assert await host.export("a") == fold(kept + 2)
        said = [record.getMessage() for record in caplog.records if "went back" in record.getMessage()]
        assert len(said) == 2  # one line of each

    replicas(body, url=own_redis.url)
    server.close()


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


def test_a_version_heard_of_in_a_history_that_is_gone_is_not_waited_for(own_redis, replicas):
    server = redis.Redis.from_url(own_redis.url)

    async def body(one, _):
        await one.create("a", SPEC)
        for i in range(6):
            if i == 3:
                copy = {key: server.dump(key) for key in server.keys("*")}
            await one.feedback("a", event(i))
        async with one._memory.use("a") as learner:
            server.flushall()
            for key, value in copy.items():
                server.restore(key, 0, value)
            real, late = learner._store.head, [6]

            async def head(log):
                if late:
                    learner.newest = late.pop()  # heard of late, at the worst moment
                return await real(log)

            learner._store.head = head
            try:
                assert (await one.feedback("a", event(3)))["version"] == 4
            finally:
                del learner._store.head
            await eventually(lambda: one._memory.lag == 0)  # what follows the log may have heard of it last
        assert await one.export("a") == fold(4)

    replicas(body, url=own_redis.url)
