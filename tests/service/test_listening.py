"""Replicas keep following whatever lies between them and Redis, and say when they do not."""

import asyncio

import pytest
import uvloop
from rude_proxy import RudeProxy
from waiting import eventually

from feedrank.service.contract.faults import NotReady
from feedrank.service.contract.settings import Settings
from feedrank.service.runtime import Host, changes, supervisor
from feedrank.service.store import redis_listen, redis_open

SPEC = {"task": "multiclass", "algorithm": "predtron"}


def event(i):
    return {"features": {f"w{i % 7}": 1.0}, "label": "abc"[i % 3], "feedback_id": f"f{i}"}


@pytest.mark.parametrize("mode", ["close", "reset"])
@pytest.mark.parametrize("loop", [asyncio, uvloop])
def test_a_replica_goes_on_following_after_a_network_that_accepts_and_closes(own_redis, mode, loop):
    async def main(proxy):
        url = own_redis.url.replace(str(own_redis.port), str(proxy.port))
        async with Host.open(own_redis.url, Settings()) as one, Host.open(url, Settings()) as two:
            await one.create("a", SPEC)
            await one.feedback("a", event(0))
            await two.info("a")
            proxy.rude(mode)
            for i in range(1, 30):
                await one.feedback("a", event(i))
                await asyncio.sleep(0.05)
            proxy.mode = "pass"

            async def followed():
                await two.predict("a", {"features": ["w1"], "remember": False})
                return two.stats()["log_lag"] == 0 and (await two.info("a"))["version"] == 30

            await eventually(followed)
            assert not [task for task in asyncio.all_tasks() if task.done()]
            await one.feedback("a", event(30))

            async def heard():
                return (await two.info("a"))["version"] == 31

            await eventually(heard)

    with RudeProxy(own_redis.port) as proxy:
        loop.run(main(proxy))


def test_a_listener_that_hears_nothing_is_not_ready_by_name(own_redis, monkeypatch):
    monkeypatch.setattr(redis_listen, "IDLE", 0.1)
    monkeypatch.setattr(changes, "SILENT", 1.0)
    monkeypatch.setattr(redis_open, "TIMEOUT", 0.5)

    async def main(proxy):
        async with Host.open(own_redis.url.replace(str(own_redis.port), str(proxy.port))) as host:

            async def ready():
                return await host.ready()

            assert set(await eventually(ready, not_yet=NotReady)) == {
                "store",
                "logs",
                "listener",
                "positions",
                "sweeper",
                "eraser",
            }
            assert host.stats()["ready:listener"] == 1
            proxy.rude("silent")
            await eventually(lambda: host.stats()["ready:listener"] == 0)
            with pytest.raises(NotReady) as caught:
                await host.ready()
            assert "has not answered on its channel" in caught.value.problem()["checks"]["listener"]
            assert caught.value.problem()["checks"]["logs"] == "ok"
            assert host.stats()["ready:store"] == 0
            proxy.rude("pass")
            await eventually(ready, not_yet=NotReady)
            assert host.stats()["ready:listener"] == host.stats()["ready:store"] == 1

    with RudeProxy(own_redis.port) as proxy:
        uvloop.run(main(proxy))


def test_positions_are_compared_whatever_is_heard(replicas, monkeypatch):
    monkeypatch.setattr(changes, "COMPARED", 0.05)

    async def deaf(self):
        yield ("lost", "", 0)
        await asyncio.Event().wait()

    monkeypatch.setattr(redis_listen.Listener, "changes", deaf)

    async def body(one, two):
        await one.create("a", SPEC)
        await one.feedback("a", event(0))
        await two.predict("a", {"features": ["x"], "remember": False})
        for i in range(1, 20):
            await one.feedback("a", event(i))

        async def level():
            reply = await two.predict("a", {"features": ["x"], "remember": False})
            return reply["version"] == 20

        await eventually(level)

    replicas(body)


def test_what_must_keep_running_is_started_again_and_named(caplog, monkeypatch):
    monkeypatch.setattr(supervisor, "FIRST", 0.01)
    monkeypatch.setattr(supervisor, "SETTLED", 0.3)
    starts = []

    async def work():
        starts.append(1)
        if len(starts) < 4:
            raise RuntimeError("unable to perform operation on <TCPTransport closed=True>")
        if len(starts) == 4:
            asyncio.current_task().cancel()  # by somebody else, as redis-py does to itself at times
        await asyncio.Event().wait()

    async def main():
        kept = supervisor.Supervisor()
        kept.check("reason", lambda: "why")
        kept.keep("listener", work)
        assert kept.checks() == {"reason": "why", "listener": ""}
        await eventually(lambda: kept.checks()["listener"])
        assert "TCPTransport" in kept.checks()["listener"]
        await eventually(lambda: len(starts) == 5 and not kept.checks()["listener"])
        assert kept.restarts == 4
        await kept.stop("listener")

    asyncio.run(main())
    said = [record.getMessage() for record in caplog.records]
    assert said == ["the listener ended and is started again", "the listener runs again"]
