"""An outage of the store is said once, and counted, whatever the service is asked meanwhile."""

import asyncio
import logging

import pytest
from rude_proxy import RudeProxy
from waiting import eventually

from feedrank.service.contract import faults as errors
from feedrank.service.contract.settings import Settings
from feedrank.service.runtime import Host
from feedrank.service.store import redis_pipes

SPEC = {"task": "multiclass", "algorithm": "predtron"}


def test_a_partitioned_replica_counts_what_it_refuses_and_says_it_once(own_redis, caplog, monkeypatch):
    monkeypatch.setattr(redis_pipes, "CALM", 0.0)

    async def main(proxy):
        url = own_redis.url.replace(str(own_redis.port), str(proxy.port))
        async with Host.open(url, Settings()) as host:
            await host.create("a", SPEC)
            await host.feedback("a", {"features": ["x"], "label": "l"})
            proxy.rude("close")
            refused = 0
            for _ in range(60):
                for call in (
                    lambda: host.feedback("a", {"features": ["x"], "label": "l"}),
                    lambda: host.predict("a", {"features": ["x"]}),
                    lambda: host.events("a"),
                    host.list,
                ):
                    with pytest.raises(errors.StoreUnavailable):
                        await call()
                    refused += 1
                await asyncio.sleep(0.02)
            assert host.stats()["store_errors"] >= refused
            proxy.rude("pass")

            async def works():
                return await host.feedback("a", {"features": ["x"], "label": "l"})

            await eventually(works, not_yet=errors.StoreUnavailable)

    with RudeProxy(own_redis.port) as proxy:
        asyncio.run(main(proxy))
    said = [record.getMessage().split(":")[0] for record in caplog.records if record.levelno > logging.INFO]
    assert said == ["Redis did not take or answer a call", "Redis takes and answers calls again"]
