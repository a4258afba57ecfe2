"""A learner is exported as one file, and restored from it under a name that is free."""

import pytest
from host_events import SPEC, crash, event, teach

from feedrank import learners
from feedrank.service.contract import faults as errors
from feedrank.service.contract.faults import StorageFull, Unprocessable
from feedrank.service.store import LAST


def test_a_name_that_is_taken_while_a_snapshot_is_restored_is_a_conflict(with_host, monkeypatch):
    async def body(host):
        await host.create("a", SPEC)
        await host.feedback("a", event(0))
        data = await host.export("a")
        own = host.store.save

        async def save(*arguments, **options):
            await host.create("b", SPEC)  # whoever comes first clears what a crash may have left of the name
            return await own(*arguments, **options)

        monkeypatch.setattr(host.store, "save", save)
        with pytest.raises(errors.Conflict, match="another request"):
            await host.restore("b", data)
        monkeypatch.setattr(host.store, "save", own)
        assert (await host.info("b"))["version"] == 0
        await host.feedback("b", event(1))

    with_host(body)


def test_a_learner_travels_as_one_file(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", 10)
        await host.retract("a", {"feedback_id": "f3"})
        data = await host.export("a")
        assert learners.load(data).version == 11
        info = await host.restore("b", data)
        assert (info["name"], info["version"]) == ("b", 11)
        assert await host.export("b") == data
        with pytest.raises(errors.Conflict):
            await host.restore("a", data)
        for damaged in (b"", data[:-1], data[:50] + b"\0" + data[51:], b"FEEDRANK" + bytes(100)):
            with pytest.raises(errors.Unprocessable):
                await host.restore("c", damaged)
        with pytest.raises(errors.NotFound):
            await host.info("c")
        for name in ("a", "b"):
            await teach(host, name, 5, start=10)
        assert await host.export("a") == await host.export("b")
        with pytest.raises(errors.NotFound):  # the log of b starts with b
            await host.retract("b", {"feedback_id": "f1"})
        await host.restore("empty", learners.dump(learners.build(SPEC)))
        assert (await host.info("empty"))["version"] == 0
        await crash(host)

    async def after(host):
        assert (await host.info("b"))["version"] == 16
        assert await host.export("a") == await host.export("b")

    with_host(body)
    with_host(after)


def test_a_file_with_more_events_than_a_log_has_numbers_is_refused(with_host):
    async def body(host):
        learner = learners.build({"task": "multiclass", "algorithm": "predtron"})
        learner.learn({"features": ["x"]}, {"label": "a"})
        learner.version = LAST + 1
        with pytest.raises(Unprocessable, match="at most"):
            await host.restore("a", learners.dump(learner))
        learner.version = LAST
        await host.restore("a", learners.dump(learner))
        for _ in range(2):
            with pytest.raises(StorageFull):
                await host.feedback("a", {"features": ["x"], "label": "a"})
        assert (await host.predict("a", {"features": ["x"]}))["version"] == LAST
        await host.ready()

    with_host(body)
