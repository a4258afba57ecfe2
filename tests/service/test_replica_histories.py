"""Two replicas on a real Redis whose log goes back, whose writes are refused, or whose names switch quickly."""

import asyncio
import logging
from contextlib import AsyncExitStack

import pytest
import redis

from feedrank import learners
from feedrank.service.contract import faults as errors
from feedrank.service.runtime import Host

SPEC = {"task": "multiclass", "algorithm": "predtron"}


def event(i, **more):
    return {"features": {f"w{i % 7}": 1.0, f"v{i % 5}": 0.5, "x": 2.0}, "label": "abc"[i % 3], **more}


async def eventually(test, seconds=120.0):
    deadline = asyncio.get_running_loop().time() + seconds
    while not await test():
        assert asyncio.get_running_loop().time() < deadline, "it did not happen"
        await asyncio.sleep(0.005)


async def version(host, name="a"):
    return (await host.predict(name, {"features": ["x"], "remember": False}))["version"]


def two_hosts(url, body):
    async def main():
        async with AsyncExitStack() as stack:
            await body(*[await stack.enter_async_context(Host.open(url)) for _ in range(2)])

    asyncio.run(main())


def fold(count):
    learner = learners.build(SPEC)
    for i in range(count):
        learner.learn({"features": event(i)["features"]}, {"label": event(i)["label"]})
    return learners.dump(learner)


@pytest.mark.parametrize("kept", [0, 3])
def test_a_log_that_went_back_is_said_and_folded_again(own_redis, caplog, kept):
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

    two_hosts(own_redis.url, body)
    server.close()


def test_a_replica_whose_own_append_is_refused_follows_all_the_same(redis_server):
    redis_server.ask(b"FLUSHALL")

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

    two_hosts(redis_server.url, body)


def test_the_last_switch_of_an_alias_is_the_one_that_counts(redis_server):
    redis_server.ask(b"FLUSHALL")

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

    two_hosts(redis_server.url, body)
