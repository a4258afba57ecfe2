"""A release whose arithmetic is another one folds logs anew, and never serves a log beside the one before it."""

import asyncio

import pytest
from host_events import SPEC, event, folded, settle, teach
from store_logs import draft, opened

from feedrank import learners
from feedrank.service.contract.faults import StoreRefused, StoreUnavailable
from feedrank.service.runtime import host as hosting
from feedrank.service.runtime import learner_state
from feedrank.service.runtime.learner_state import LearnerState

LATER = learner_state.ARITHMETIC + 1


def other_weights(state, version, one, apply=LearnerState.apply):
    """As a release that gives every event twice its weight."""
    one.weight *= 2
    return apply(state, version, one)


def an_earlier_release(with_host, monkeypatch, **settings):
    """A learner that one of another arithmetic has taught, and saved: its last replies and its snapshot."""

    async def body(host):
        await host.create("a", SPEC)
        replies = await teach(host, "a", 12)
        await settle(host)
        return replies, await host.export("a")

    with monkeypatch.context() as patched:
        patched.setattr(LearnerState, "apply", other_weights)
        return with_host(body, snapshot_every=4, **settings)


def a_release_later(monkeypatch):
    for module in (hosting, learner_state):
        monkeypatch.setattr(module, "ARITHMETIC", LATER)


def test_learners_are_folded_anew_and_every_repeat_has_its_first_reply(with_host, monkeypatch):
    replies, before = an_earlier_release(with_host, monkeypatch)
    a_release_later(monkeypatch)

    async def after(host):
        (notice,) = [one for one in host.notices if "folded anew" in one]
        assert "other weights" in notice
        assert await host.export("a") == folded(range(12), 12) != before
        assert await teach(host, "a", 12) == [{**reply, "duplicate": True} for reply in replies]
        await teach(host, "a", 3, start=12)
        await settle(host)
        assert host.stats()["divergences"] == 0

    with_host(after, snapshot_every=4)

    async def again(host):
        assert not [one for one in host.notices if "folded anew" in one]
        assert await host.export("a") == folded(range(15), 15)

    with_host(again, snapshot_every=4)


def test_a_learner_that_came_as_a_snapshot_keeps_its_weights_and_goes_on(with_host, monkeypatch):
    _, snapshot = an_earlier_release(with_host, monkeypatch)

    async def arrive(host):
        await host.restore("copy", snapshot)

    with_host(arrive)
    a_release_later(monkeypatch)

    async def after(host):
        assert await host.export("copy") == snapshot
        await host.feedback("copy", event(12))
        learner = learners.load(snapshot)
        learner.learn({"features": event(12)["features"]}, {"label": event(12)["label"]})
        assert await host.export("copy") == learners.dump(learner)
        # From a file of the release before, too.
        await host.restore("new", snapshot)
        assert await host.export("new") == snapshot

    with_host(after)


def test_a_learner_without_its_whole_log_keeps_its_weights(with_host, monkeypatch):
    _, before = an_earlier_release(with_host, monkeypatch, log_retention=3, snapshots_kept=1)
    a_release_later(monkeypatch)

    async def after(host):
        assert await host.export("a") == before
        await teach(host, "a", 5, start=12)
        assert (await host.info("a"))["version"] == 17

    with_host(after)


def test_a_store_of_a_later_arithmetic_is_refused_in_one_line(store_url):
    async def main():
        async with opened(store_url, arithmetic=3) as store:
            assert store.notices == () or "other weights" not in store.notices[-1]
            await store.append("a", [draft("body")])
        with pytest.raises(
            StoreRefused, match=r"learns other weights .*arithmetic 3, this one has 2.*backup"
        ):
            async with opened(store_url, arithmetic=2):
                pass
        async with opened(store_url, arithmetic=4) as store:
            assert "folded anew" in store.notices[-1]
        async with opened(store_url) as store:  # a tool that makes no states
            assert len(await store.read("a", 0, 1)) == 1

    asyncio.run(main())


def test_who_has_the_store_open_by_an_earlier_arithmetic_writes_no_more(shared_url):

    async def main():
        async with (
            opened(shared_url, arithmetic=2) as before,
            opened(shared_url, arithmetic=2) as beside,
        ):
            await before.append("a", [draft("one")])
            await beside.append("a", [draft("two")])
            async with (
                opened(shared_url, arithmetic=3) as after,
                opened(shared_url, arithmetic=3) as also,
            ):
                for store in (before, beside):
                    with pytest.raises(StoreUnavailable, match="newer release"):
                        await store.append("a", [draft("three")])
                    with pytest.raises(StoreUnavailable):
                        await store.check()
                await after.append("a", [draft("three")])
                await also.append("a", [draft("four")])
                await also.check()
                assert len(await after.read("a", 0, 9)) == 4

    asyncio.run(main())


def test_all_who_come_at_once_with_a_later_arithmetic_may_write(shared_url):

    async def one(number):
        async with opened(shared_url, arithmetic=3) as store:
            await store.append("a", [draft(f"body{number}")])
            await asyncio.sleep(0)
            await store.check()

    async def main():
        async with opened(shared_url, arithmetic=2) as store:
            await store.append("a", [draft("first")])
        await asyncio.gather(*map(one, range(6)))

    asyncio.run(main())
