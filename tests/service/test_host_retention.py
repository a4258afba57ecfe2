"""How much of a log is kept, by number and by age, and what that costs."""

import time

import pytest
from host_events import SPEC, event, folded, settle, teach

from feedrank.service.contract import faults as errors
from feedrank.service.runtime import checkpoints


def test_what_the_log_no_longer_holds_cannot_be_retracted(with_host):
    async def body(host):
        await host.create("a", SPEC)
        # Nothing is saved while a save is on its way: which versions are is known where each is waited for.
        for count in (5, 10, 15, 20):
            await teach(host, "a", count)
            await settle(host)
        head = await host.store.head((await host._catalogue.find("a")).log)
        assert head.snapshots == (15, 20)
        assert head.floor == 16
        for i in (0, 14):
            with pytest.raises(errors.Conflict):
                await host.retract("a", {"feedback_id": f"f{i}"})
        await host.retract("a", {"feedback_id": "f15"})
        assert await host.export("a") == folded([i for i in range(20) if i != 15], 21)
        assert (await host.feedback("a", event(0, feedback_id="f0")))["duplicate"]  # ids outlive the log
        page = await host.events("a")
        assert (page["floor"], page["events"][0]["version"]) == (16, 16)

    with_host(body, snapshot_every=5, log_retention=2)


def test_after_the_end_of_the_log_there_are_no_events_however_far(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await teach(host, "a", 3)
        for after in (3, 4, 2**32, 2**63 - 1):
            assert await host.events("a", after=after) == {"events": [], "next": None, "floor": 1}

    with_host(body)


@pytest.mark.parametrize("passed", [True, False])
def test_retention_by_age_keeps_what_is_young_though_the_clock_is_set_ahead(with_host, monkeypatch, passed):
    wall, steady = [1_000_000.0], [0.0]
    monkeypatch.setattr(time, "time", lambda: wall[0])
    monkeypatch.setattr(checkpoints, "CLOCK", checkpoints.Clock(lambda: wall[0], lambda: steady[0]))

    async def body(host):
        await host.create("a", SPEC)
        for start in (0, 4, 8, 12):
            if start == 8:
                wall[0] += 1000
                steady[0] += 1000 * passed
            await teach(host, "a", 4, start=start)
            await settle(host)
        assert (await host.events("a"))["floor"] == (9 if passed else 1)
        assert (await host.events("a"))["events"][0]["version"] == (9 if passed else 1)

    with_host(body, snapshot_every=4, snapshots_kept=2, log_retention_age=500.0)


def test_a_clock_that_is_set_back_makes_nothing_old():
    wall, steady = [500.0], [3.0]
    clock = checkpoints.Clock(lambda: wall[0], lambda: steady[0])
    wall[0], steady[0] = 100.0, 4.0
    assert clock.now() == 100.0
    wall[0], steady[0] = 900.0, 5.0
    assert clock.now() == 502.0
