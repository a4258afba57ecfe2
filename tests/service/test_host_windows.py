"""Predictions under the caller's ids, clicks that come one by one, and retractions that take long."""

import asyncio
import math
import time

import pytest
from host_events import SPEC, event

from feedrank import learners
from feedrank.service.contract import faults
from feedrank.service.contract.settings import Settings
from feedrank.service.runtime import Host, folding, rebuilding

RANKING = {"task": "subset-ranking", "algorithm": "listnet", "wait": 60}
ITEMS = [{"id": name, "features": {name: 1.0, "all": 0.5}} for name in "abcd"]


def test_the_same_request_under_one_id_replies_as_the_first_time(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await host.feedback("a", event(0))
        asked = {"features": event(1)["features"], "prediction_id": "order-7"}
        first = await host.predict("a", asked)
        assert first["prediction_id"] == "order-7"
        for i in range(5):
            await host.feedback("a", event(i))
        assert await host.predict("a", asked) == first
        with pytest.raises(faults.Conflict):
            await host.predict("a", {**asked, "top": 1})
        reply = await host.feedback("a", {"prediction_id": "order-7", "label": "b"})
        assert reply["served_loss"] is not None
        assert await host.predict("a", asked) == first  # after its feedback as well
        again = await host.feedback("a", {"prediction_id": "order-7", "label": "b"})
        assert again == {**reply, "duplicate": True}
        lines = [
            ("predict", {"features": ["x"], "prediction_id": "in-a-stream"}),
            ("feedback", {"prediction_id": "in-a-stream", "label": "c"}),
            ("predict", {"features": ["y"], "prediction_id": "in-a-stream"}),
        ]
        stream = await host.stream("a")
        await stream.put(lines)
        one, two, three = await stream.get()
        assert one["prediction_id"] == "in-a-stream"
        assert two["version"] == one["version"] + 1
        assert isinstance(three, faults.Conflict)
        for wrong in ({"remember": False}, {"prediction_id": ""}, {"prediction_id": "x" * 201}):
            with pytest.raises(faults.Unprocessable) as caught:
                await host.predict("a", {"features": ["x"], "prediction_id": "new", **wrong})
            assert caught.value.errors[0]["pointer"] == "/prediction_id"

    with_host(body)


def test_one_id_asked_for_at_the_same_time_has_one_reply(with_host):
    async def body(host):
        await host.create("a", SPEC)
        asked = {"features": ["x"], "prediction_id": "p"}
        writes = [host.feedback("a", event(i)) for i in range(20)]
        replies = await asyncio.gather(*(host.predict("a", asked) for _ in range(20)), *writes)
        assert all(reply == replies[0] for reply in replies[:20])

    with_host(body)


def test_clicks_become_one_event_when_the_window_is_over(with_host):
    async def body(host):
        await host.create("r", RANKING)
        begun = math.floor(1000 * time.time()) / 1000  # an id has its time in whole milliseconds
        shown = [(await host.predict("r", {"items": ITEMS}))["prediction_id"] for _ in range(3)]
        one, none, plain = shown
        assert (await host.clicks("r", {"prediction_id": one, "clicks": ["c"]}))["clicks"] == ["c"]
        assert (await host.clicks("r", {"prediction_id": one, "clicks": ["a", "c"]}))["clicks"] == ["c", "a"]
        reply = await host.clicks("r", {"prediction_id": none, "clicks": []})
        assert begun + 60 <= reply["closes_at"] <= time.time() + 60
        await host.sweeper.sweep(begun + 59)
        assert (await host.info("r"))["version"] == 0
        await host.sweeper.sweep(time.time() + 61)
        await host.sweeper.sweep(time.time() + 61)
        events = (await host.events("r"))["events"]
        assert len(events) == 2
        assert {e["prediction_id"]: e["truth"]["clicks"] for e in events} == {one: ["c", "a"], none: []}
        with pytest.raises(faults.Conflict):
            await host.clicks("r", {"prediction_id": one, "clicks": ["b"]})
        with pytest.raises(faults.NotFound):
            await host.clicks("r", {"prediction_id": "never", "clicks": ["b"]})
        for wrong in ({"clicks": ["z"]}, {"clicks": "a"}, {}):
            with pytest.raises(faults.Unprocessable) as refused:
                await host.clicks("r", {"prediction_id": plain, **wrong})
            assert refused.value.errors[0]["pointer"].startswith("/clicks")
        # What is said outright wins over the window.
        await host.clicks("r", {"prediction_id": plain, "clicks": ["a"]})
        await host.feedback("r", {"prediction_id": plain, "relevance": {"b": 2}})
        await host.sweeper.sweep(time.time() + 61)
        assert (await host.info("r"))["version"] == 3

    with_host(body)


def test_clicks_need_a_list(with_host):
    async def body(host):
        await host.create("a", SPEC)
        id = (await host.predict("a", {"features": ["x"]}))["prediction_id"]
        with pytest.raises(faults.Unprocessable) as caught:
            await host.clicks("a", {"prediction_id": id, "clicks": ["x"]})
        assert caught.value.errors[0]["pointer"] == "/clicks"

    with_host(body)


def test_two_replicas_close_a_window_once(shared_url):

    async def main():
        settings = Settings()
        async with (
            Host.open(shared_url, settings) as one,
            Host.open(shared_url, settings) as two,
        ):
            await one.create("r", RANKING)
            ids = [(await one.predict("r", {"items": ITEMS}))["prediction_id"] for _ in range(20)]
            await asyncio.gather(
                *(
                    host.clicks("r", {"prediction_id": id, "clicks": [item]})
                    for id in ids
                    for host, item in ((one, "a"), (two, "b"))
                )
            )
            late = time.time() + 61
            await asyncio.gather(*(host.sweeper.sweep(late) for host in (one, two, one, two)))
            await one.sweeper.sweep(late)
            events = (await two.events("r"))["events"]
            assert sorted(event["prediction_id"] for event in events) == sorted(ids)
            assert all(sorted(event["truth"]["clicks"]) == ["a", "b"] for event in events)

    asyncio.run(main())


def test_a_long_retraction_runs_beside_the_others(with_host, monkeypatch):
    monkeypatch.setattr(rebuilding, "LONG", 10)
    monkeypatch.setattr(folding, "PAGE", 8)

    async def body(host):
        await host.create("a", SPEC)
        await host.feedback("a", {"events": [event(i, feedback_id=f"f{i}") for i in range(200)]})
        replies = await asyncio.gather(
            *(host.retract("a", {"feedback_id": f"f{i}"}) for i in (3, 50, 120)),
            *(host.feedback("a", event(i, feedback_id=f"f{i}")) for i in range(200, 210)),
        )
        assert {reply["state"] for reply in replies[:3]} <= {"pending", "done"}
        last = max(reply["version"] for reply in replies)
        await host.predict("a", {"features": ["x"], "remember": False, "min_version": last})
        assert (await host.info("a"))["retracting"] == []
        expected = learners.build(SPEC)
        for entry in [e for after in (0, 100, 200) for e in (await host.events("a", after))["events"]]:
            if entry["kind"] == "feedback" and not entry["retracted"]:
                expected.learn(entry["instance"], entry["truth"])
        expected.version = last
        assert await host.export("a") == learners.dump(expected)

    with_host(body, snapshot_every=1000)


def test_weights_count_and_are_part_of_the_truth(with_host):
    async def body(host):
        await host.create("a", SPEC)
        await host.feedback("a", event(0, feedback_id="f", weight=3))
        assert (await host.events("a"))["events"][0]["weight"] == 3
        learner = learners.build(SPEC)
        learner.learn({"features": event(0)["features"]}, {"label": "a"}, weight=3.0)
        assert await host.export("a") == learners.dump(learner)
        with pytest.raises(faults.Conflict):
            await host.feedback("a", event(0, feedback_id="f", weight=2))
        for wrong in (0, -1, 1001, True, "2"):
            with pytest.raises(faults.Unprocessable) as caught:
                await host.feedback("a", event(0, weight=wrong))
            assert caught.value.errors[0]["pointer"] == "/weight"

    with_host(body)


def test_aliases_are_listed_in_order_of_name(with_host):
    async def body(host):
        await host.create("a", SPEC)
        for name in ("z", "m", "k"):
            await host.alias(name, "a")
        first = await host.aliases(2)
        assert first["aliases"] == [{"name": "k", "learner": "a"}, {"name": "m", "learner": "a"}]
        rest = await host.aliases(2, first["next"])
        assert rest == {"aliases": [{"name": "z", "learner": "a"}], "next": None}
        with pytest.raises(faults.Unprocessable):
            await host.aliases(2, "!!")

    with_host(body)
