"""A replica that is far behind, disagrees, or finds that the log went back comes to the same bits as the others."""

import asyncio
import logging

import pytest
import redis
from host_events import SPEC, both_equal, event, folded, settle
from waiting import eventually

from feedrank.service.contract import faults as errors


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
        for host in (one, two):
            await settle(host)
        assert await both_equal(one, two) == 10

    replicas(body, snapshot_every=10)


@pytest.mark.parametrize("kept", [0, 3])
def test_a_log_that_went_back_is_said_and_folded_again(own_redis, hosts, caplog, kept):
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
            assert await host.export("a") == folded(range(kept + 2), kept + 2)
        said = [record.getMessage() for record in caplog.records if "went back" in record.getMessage()]
        assert len(said) == 2  # one line of each

    hosts(own_redis.url, body)
    server.close()


def test_a_version_heard_of_in_a_history_that_is_gone_is_not_waited_for(own_redis, hosts):
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
        assert await one.export("a") == folded(range(4), 4)

    hosts(own_redis.url, body)
