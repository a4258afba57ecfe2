"""Redis that is gone, frozen, full or restarted; and what is said of one that would lose data."""

import asyncio

import pytest
from waiting import eventually

from feedrank.service.contract import faults as errors
from feedrank.service.contract.settings import Settings
from feedrank.service.runtime import Host
from feedrank.service.store import Draft, keys, open_store, redis_open

SPEC = {"task": "multiclass", "algorithm": "predtron"}


def event(i):
    return {"features": {f"w{i % 7}": 1.0, "x": 2.0}, "label": "abc"[i % 3], "feedback_id": f"f{i}"}


async def recovered(call):
    """The reply once the store answers again."""
    return await eventually(call, "it does not recover", not_yet=errors.StoreUnavailable)


async def refused(call):
    with pytest.raises(errors.StoreUnavailable) as caught:
        await call
    assert caught.value.headers["Retry-After"]


def test_while_redis_is_gone_nothing_is_acknowledged_and_then_all_goes_on(own_redis):
    async def main():
        async with (
            Host.open(own_redis.url, Settings(snapshot_every=5)) as one,
            Host.open(own_redis.url, Settings(snapshot_every=5)) as two,
        ):
            await one.create("a", SPEC)
            replies = [await one.feedback("a", event(i)) for i in range(12)]
            asked = await one.predict("a", {"features": {"x": 1.0}})
            await two.info("a")
            own_redis.kill()
            for host in (one, two):
                await refused(host.feedback("a", event(99)))
                await refused(host.predict("a", {"features": ["x"]}))
                await refused(host.create("b", SPEC))
                await refused(host.ready())
                # What needs no store is served from memory.
                assert (await host.predict("a", {"features": ["x"], "remember": False}))["version"] == 12
            assert one.stats()["store_errors"] >= 2
            own_redis.start()
            reply = await recovered(
                lambda: one.feedback("a", {"prediction_id": asked["prediction_id"], "label": "b"})
            )
            assert (reply["version"], reply["duplicate"]) == (13, False)
            for i in range(12):
                assert await two.feedback("a", event(i)) == {**replies[i], "duplicate": True}
            await recovered(lambda: one.feedback("a", event(50)))

            async def followed():
                return (await two.predict("a", {"features": ["x"], "remember": False}))["version"] == 14

            await eventually(followed)  # listening was taken up again by itself
            assert await one.export("a") == await two.export("a")

    asyncio.run(main())


def test_a_frozen_redis_is_given_up_in_time(own_redis, monkeypatch):
    monkeypatch.setattr(redis_open, "TIMEOUT", 1.0)

    async def main():
        async with Host.open(own_redis.url) as host:
            await host.create("a", SPEC)
            first = await host.feedback("a", event(0))
            own_redis.freeze()
            await asyncio.wait_for(refused(host.feedback("a", event(1))), 600)  # as long as it is frozen
            own_redis.thaw()
            # It may have been written all the same; under its id it is taken once.
            again = await recovered(lambda: host.feedback("a", event(1)))
            assert again["version"] == 2
            assert await host.feedback("a", event(0)) == {**first, "duplicate": True}
            assert (await host.info("a"))["version"] == 2

    asyncio.run(main())


def test_a_full_redis_refuses_and_recovers(own_redis):
    async def main():
        async with Host.open(own_redis.url) as host:
            await host.create("a", SPEC)
            await host.feedback("a", event(0))
            own_redis.ask(b"CONFIG SET maxmemory 1")
            await refused(host.feedback("a", event(1)))
            await refused(host.predict("a", {"features": ["x"]}))
            await refused(host.ready())
            own_redis.ask(b"CONFIG SET maxmemory 0")
            assert (await host.feedback("a", event(1)))["version"] == 2

    asyncio.run(main())


def test_scripts_that_the_server_forgot_are_sent_again(own_redis):
    async def main():
        store = await open_store(own_redis.url)
        own_redis.ask(b"SCRIPT FLUSH")
        placements = await asyncio.gather(
            *(store.append("a", [Draft(b"x", ids=(f"{i}",))]) for i in range(20))
        )
        assert sorted(one.version for (one,) in placements) == list(range(1, 21))
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        ([], []),
        ([b"CONFIG SET appendfsync everysec"], ["appendfsync"]),
        ([b"CONFIG SET appendonly no"], ["all is lost"]),
        ([b"CONFIG SET appendonly no", b'CONFIG SET save "60 1"'], ["not yet saved is lost"]),
    ],
)
def test_a_server_that_would_lose_data_is_named_at_the_start(own_redis, commands, said):
    for command in commands:
        assert own_redis.ask(command).startswith(b"+OK")

    async def main():
        async with Host.open(own_redis.url) as host:
            return host.notices

    notices = asyncio.run(main())
    assert len(notices) == len(said)
    assert all(word in notice for word, notice in zip(said, notices, strict=True))


def test_a_server_that_cannot_be_used_is_refused_in_one_line(own_redis):
    def refusal(url):
        with pytest.raises(errors.StoreRefused) as caught:
            asyncio.run(open_store(url))
        assert "\n" not in caught.value.detail
        return caught.value.detail

    own_redis.ask(b"SET feedrank:format %d" % (keys.LAYOUT + 1))
    assert "newer feedrank" in refusal(own_redis.url)
    own_redis.ask(b"DEL feedrank:format")
    for policy in (b"allkeys-lru", b"volatile-ttl"):
        own_redis.ask(b"CONFIG SET maxmemory-policy " + policy)
        assert f"has maxmemory-policy {policy.decode()} and would evict" in refusal(own_redis.url)
    own_redis.ask(b"CONFIG SET requirepass secret")
    assert "Authentication" in refusal(own_redis.url)
    wrong = refusal(own_redis.url.replace("redis://", "redis://:wrong-password@"))
    assert "password" in wrong
    assert "wrong-password" not in wrong
    own_redis.kill()
    assert "is Redis 6.2 or later running there?" in refusal(own_redis.url)
    assert "cannot use" in refusal(f"redis+cluster://127.0.0.1:{own_redis.port}")
    own_redis.start()


def test_a_node_of_a_cluster_may_go_and_come_back(redis_cluster):
    async def main():
        async with Host.open(redis_cluster.url) as host:
            names = [f"n{i}" for i in range(40)]  # so many that some are sure to live on the node
            for name in names:
                await host.create(name, SPEC)
                await host.feedback(name, event(0))
            redis_cluster.servers[1].kill()
            replies = await asyncio.gather(
                *(host.feedback(n, event(1)) for n in names), return_exceptions=True
            )
            lost = [name for name, reply in zip(names, replies, strict=True) if isinstance(reply, Exception)]
            assert lost
            assert all(isinstance(reply, dict | errors.StoreUnavailable) for reply in replies)
            redis_cluster.servers[1].start()
            for name in names:
                reply = await recovered(lambda name=name: host.feedback(name, event(1)))
                assert (reply["version"], reply["duplicate"]) == (2, name not in lost)

    asyncio.run(main())
