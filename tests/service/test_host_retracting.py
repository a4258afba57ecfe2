"""A retracted event never happened: the learner is the fold of the others, whatever else is done meanwhile."""

import asyncio

import pytest
from host_events import SPEC, crash, event, folded, settle, teach
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from feedrank.service.contract import faults as errors
from feedrank.service.contract.settings import Settings
from feedrank.service.runtime import Host


@pytest.mark.parametrize("every", [1, 4, 1000])
def test_many_retractions_are_all_or_none_and_folded_once(with_host, every):
    async def body(host):
        await host.create("a", SPEC)
        replies = await teach(host, "a", 12)
        ids = [{"feedback_id": f"f{i}"} for i in (7, 2, 9, 2)]
        with pytest.raises(errors.NotFound):
            await host.retract("a", {"events": [*ids, {"feedback_id": "unknown"}]})
        with pytest.raises(errors.Unprocessable) as refused:
            await host.retract("a", {"events": [*ids, {}]})
        assert refused.value.errors[0]["pointer"] == "/events/4"
        assert (await host.info("a"))["version"] == 12
        done = await host.retract("a", {"events": ids})
        assert done["state"] == "done"
        assert [one["retracted"] for one in done["results"]] == [8, 3, 10, 3]
        assert sorted({one["version"] for one in done["results"]}) == [13, 14, 15]
        kept = [i for i in range(12) if i not in (2, 7, 9)]
        assert await host.export("a") == folded(kept, 15)
        again = await host.retract("a", {"events": [*ids, {"feedback_id": "f0"}]})
        assert [one["duplicate"] for one in again["results"]] == [True] * 4 + [False]
        assert await host.export("a") == folded(kept[1:], 16)
        assert await host.feedback("a", event(2, feedback_id="f2")) == {**replies[2], "duplicate": True}

    with_host(body, snapshot_every=every)


@pytest.mark.parametrize("every", [1, 4, 1000])
def test_a_retracted_event_never_happened(with_host, every):
    async def body(host):
        await host.create("a", SPEC)
        replies = await teach(host, "a", 10)
        answer = await host.predict("a", {"features": event(10)["features"]})
        await host.feedback("a", {"prediction_id": answer["prediction_id"], "label": event(10)["label"]})
        await settle(host)
        assert await host.retract("a", {"feedback_id": "f4"}) == {
            "version": 12,
            "retracted": 5,
            "duplicate": False,
            "state": "done",
        }
        assert await host.export("a") == folded([i for i in range(11) if i != 4], 12)
        assert await host.retract("a", {"feedback_id": "f4"}) == {
            "version": 12,
            "retracted": 5,
            "duplicate": True,
            "state": "done",
        }
        await host.retract("a", {"prediction_id": answer["prediction_id"]})
        await host.retract("a", {"feedback_id": "f0"})
        await teach(host, "a", 2, start=11)
        numbers = [i for i in range(13) if i not in (0, 4, 10)]
        assert await host.export("a") == folded(numbers, 16)
        assert (await host.info("a"))["progress"]["rounds"] == 10
        assert (await host.history("a"))["points"][-1]["rounds"] == 10
        # Its id stays known, and the reply is the first one.
        assert await host.feedback("a", event(4, feedback_id="f4")) == {**replies[4], "duplicate": True}
        with pytest.raises(errors.Conflict):
            await host.feedback("a", {**event(4), "feedback_id": "f4", "label": "other"})
        with pytest.raises(errors.NotFound):
            await host.retract("a", {"feedback_id": "unknown"})
        shown = (await host.events("a"))["events"]
        assert [e["version"] for e in shown if e.get("retracted")] == [1, 5, 11]
        assert [e["retracts"] for e in shown if e["kind"] == "retraction"] == [5, 11, 1]
        return numbers, replies

    async def after(host):
        assert await host.export("a") == folded(numbers, 16)
        assert await teach(host, "a", 10) == [{**reply, "duplicate": True} for reply in replies]

    numbers, replies = with_host(body, snapshot_every=every)
    with_host(after, snapshot_every=every)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("learn"), st.integers(0, 30)),
        st.tuples(st.just("retract"), st.integers(0, 30)),
        st.tuples(st.just("restart"), st.booleans()),
    ),
    max_size=40,
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=steps, every=st.sampled_from([1, 2, 5, 1000]))
def test_any_history_folds_to_the_events_that_stand(tmp_path_factory, steps, every):
    """Learn, withdraw, stop and crash in any order: the learner is the fold of what was not withdrawn."""
    url = f"sqlite:{tmp_path_factory.mktemp('any') / 'a.db'}"
    standing, withdrawn, version = [], set(), 0
    todo = [*steps, ("restart", False)]

    async def main():
        nonlocal version
        async with Host.open(url, Settings(snapshot_every=every)) as host:
            await host.create("a", SPEC)
            while todo:
                step, value = todo.pop(0)
                if step == "restart":
                    assert await host.export("a") == folded(standing, version)
                    if value:
                        await settle(host)
                        await crash(host)
                    return
                if step == "learn":
                    new = value not in standing and value not in withdrawn
                    reply = await host.feedback("a", event(value, feedback_id=f"f{value}"))
                    assert reply["duplicate"] is not new
                    standing.extend([value] * new)
                elif value in standing:
                    new = True
                    await host.retract("a", {"feedback_id": f"f{value}"})
                    standing.remove(value)
                    withdrawn.add(value)
                else:
                    continue
                version += new
                assert (await host.info("a"))["version"] == version

    while todo:
        asyncio.run(main())
