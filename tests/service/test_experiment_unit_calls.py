"""Calls about units on real stores: exposed once, valued once, listed as counted, and let in by the same draw."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from experiment_runs import JSON, hosted, run, two
from waiting import eventually

from feedrank.service.contract.faults import Conflict, Unprocessable
from feedrank.service.experiments.manager import Experiments
from feedrank.service.runtime import Host

LONG = {"window": 3600, "value": "total", "cap": 10}


async def units(experiments: Experiments, limit: int = 1000) -> dict[str, JSON]:
    """All units, by their names, over as many pages as it takes."""
    listed: list[JSON] = []
    page = await experiments.units("e", None, limit)
    listed += page["units"]
    while page["next"]:
        page = await experiments.units("e", page["next"], limit)
        listed += page["units"]
    assert len({one["unit"] for one in listed}) == len(listed)
    return {one["unit"]: one for one in listed}


async def per(host: Host, experiments: Experiments, **fields: Any) -> JSON:
    await two(host)
    definition = {"arms": ["a", "b"], "measure": "reward", "per": LONG, **fields}
    return (await experiments.create("e", definition))[0]


def test_predictions_and_assignments_are_exposures(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await per(host, experiments, segments={"country": ["DE"]})
        asked = {"features": ["f"], "unit": "u", "segments": {"country": "DE"}, "before": 0.25}
        first = await experiments.predict("e", {**asked, "prediction_id": "p"})
        assert await experiments.predict("e", {**asked, "prediction_id": "p"}) == first
        with pytest.raises(Conflict):
            await experiments.predict("e", {**asked, "prediction_id": "p", "unit": "other"})
        await experiments.predict("e", {"features": ["f"], "unit": "u", "remember": False})
        assigned = await experiments.assign("e", {"unit": "u"})
        assert assigned == {"experiment": "e", "unit": "u", "arm": first["learner"], "counted": True}
        alone = await experiments.predict("e", {"features": ["f"]})
        done = await experiments.feedback(
            "e", {"prediction_id": alone["prediction_id"], "label": "x", "reward": 7}
        )
        assert done["value"] == 7
        beside = {"features": ["f"], "unit": "v", "label": "x", "reward": 4}
        for i in range(3):
            await experiments.feedback("e", {**beside, "feedback_id": str(i)})
        listed = await units(experiments, 1)
        assert list(listed) == ["u", alone["prediction_id"], "v"]
        assert listed["u"]["exposures"] == 3
        assert (listed["u"]["segments"], listed["u"]["before"]) == ({"country": "DE"}, 0.25)
        assert [one["values"]["reward"] for one in listed.values()] == [0.0, 7.0, 10.0]
        assert not any(one["counted"] for one in listed.values())
        info = await experiments.info("e")
        assert info["waiting"] == 3
        assert sum(arm["exposed"] for arm in info["arms"].values()) == 3
        assert sum(arm["units"] for arm in info["arms"].values()) == 0
        # Every arm learned every event, though no unit has counted.
        assert [(await host.info(name))["version"] for name in ("a", "b")] == [4, 4]

    run(store_url, body)


def test_values_of_units_count_once_and_can_be_retracted(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await per(host, experiments, guardrails=[{"measure": "cost:refunds", "limit": 0.1}])
        await experiments.assign("e", {"unit": "u"})
        event = {"unit": "u", "metric": "reward", "value": 2.5, "feedback_id": "f"}
        first = await experiments.events("e", event)
        assert await experiments.events("e", event) == {**first, "duplicate": True}
        with pytest.raises(Conflict):
            await experiments.events("e", {**event, "value": 3})
        batch = [
            {"unit": "u", "metric": "reward", "value": -1},
            {"unit": "u", "metric": "refunds", "value": 1},
        ]
        done = await experiments.events("e", {"events": batch}, "key")
        again = await experiments.events("e", {"events": batch}, "key")
        assert again == {"results": [{**one, "duplicate": True} for one in done["results"]]}
        assert (await units(experiments))["u"]["values"] == {"reward": 1.5, "cost:refunds": 1.0}
        with pytest.raises(Unprocessable) as refused:
            await experiments.events(
                "e", {"events": [batch[0], {"unit": "u", "metric": "refunds", "value": 2}]}
            )
        assert refused.value.errors[0]["pointer"] == "/events/1/value"
        retracted = await experiments.retract("e", {"feedback_id": "f"})
        assert retracted["retracted"] == first["version"]
        # A unit that was never exposed is none: its values are in the log and count nothing.
        await experiments.events("e", {"unit": "stranger", "metric": "reward", "value": 1})
        listed = await units(experiments)
        assert listed.keys() == {"u"}
        assert listed["u"]["values"] == {"reward": 0.0, "cost:refunds": 1.0}

    run(store_url, body)


@pytest.mark.parametrize(
    ("event", "pointer"),
    [
        ({"metric": "reward", "value": 1}, "/unit"),
        ({"unit": "u", "value": 1}, "/metric"),
        ({"unit": "u", "metric": "__class__", "value": 1}, "/metric"),
        ({"unit": "u", "metric": ["reward"], "value": 1}, "/metric"),
        ({"unit": "u", "metric": "reward"}, "/value"),
        ({"unit": "u", "metric": "reward", "value": True}, "/value"),
        ({"unit": "u", "metric": "reward", "value": float("inf")}, "/value"),
        ({"unit": "u", "metric": "reward", "value": float("nan")}, "/value"),
        ({"unit": "u", "metric": "reward", "value": 1e300}, "/value"),
        ({"unit": "u", "metric": "reward", "value": 10**400}, "/value"),
        ({"unit": "u", "metric": "reward", "value": 1, "arm": "a"}, "/arm"),
        ({"unit": "", "metric": "reward", "value": 1}, "/unit"),
    ],
)
def test_an_event_of_a_unit_that_says_too_little_is_refused(tmp_path: Any, event: JSON, pointer: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await per(host, experiments)
        with pytest.raises(Unprocessable) as refused:
            await experiments.events("e", event)
        assert refused.value.errors[0]["pointer"] == pointer
        assert (await experiments.info("e"))["version"] == 0

    run(f"sqlite:{tmp_path}/e.db", body)


def test_a_guardrail_takes_values_by_unit_without_windows(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await two(host)
        guardrails = [{"measure": "cost:refunds", "limit": 0.5}]
        await experiments.create("e", {"arms": ["a", "b"], "measure": "zero-one", "guardrails": guardrails})
        with pytest.raises(Unprocessable):
            await experiments.events("e", {"unit": "u", "metric": "zero-one", "value": 1})
        for i in range(300):
            arm = (await experiments.assign("e", {"unit": str(i)}))["arm"]
            await experiments.events("e", {"unit": str(i), "metric": "refunds", "value": float(arm == "b")})
        (guard,) = (await experiments.info("e"))["guardrails"]
        assert guard["violated"]
        assert -1 <= guard["lower"] <= guard["upper"] < -0.5

    run(store_url, body)


def test_both_totals_of_a_ratio_are_sent_and_listed(store_url: str) -> None:
    ratio = {"window": 3600, "value": "ratio", "cap": 10, "over": {"measure": "metric:visits", "cap": 4}}

    async def body(host: Host, experiments: Experiments) -> None:
        made = await per(host, experiments, per=ratio)
        assert made["definition"]["per"] == ratio
        for unit in ("u", "v"):
            await experiments.assign("e", {"unit": unit})
            for metric, value in (("reward", 7), ("visits", 2), ("visits", 3)):
                await experiments.events("e", {"unit": unit, "metric": metric, "value": value})
        with pytest.raises(Unprocessable):
            await experiments.events("e", {"unit": "u", "metric": "orders", "value": 1})
        listed = await units(experiments)
        assert listed["u"]["values"] == {"reward": 7.0, "metric:visits": 4.0}
        info = await experiments.info("e")
        assert (info["verdict"], info["waiting"]) == ("undecided", 2)
        assert (await experiments.history("e"))["points"]

    run(store_url, body)


def test_units_are_listed_by_their_first_outcomes(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await two(host)
        guardrails = [{"measure": "cost:refunds", "limit": 0.5}]
        await experiments.create("e", {"arms": ["a", "b"], "measure": "reward", "guardrails": guardrails})
        asked = {"features": ["f"], "label": "x"}
        for unit, reward in (("u", 0.25), ("v", 1.0), ("u", 0.75), ("w", 0.5)):
            await experiments.feedback("e", {**asked, "unit": unit, "reward": reward})
        await experiments.events("e", {"unit": "v", "metric": "refunds", "value": 1})
        served = await experiments.predict("e", {"features": ["f"], "unit": "z", "before": 0.5})
        answer = {"prediction_id": served["prediction_id"], "label": "x", "reward": 0}
        await experiments.feedback("e", answer)
        listed = list((await units(experiments, 2)).values())
        assert [one["values"] for one in listed] == [
            {"reward": 0.25},
            {"reward": 1.0, "cost:refunds": 1.0},
            {"reward": 0.5},
            {"reward": 0.0},
        ]
        assert [one["exposures"] for one in listed] == [2, 1, 1, 1]
        assert [one["before"] for one in listed] == [None, None, None, 0.5]
        assert listed[3]["arm"] == served["learner"]
        assert all(
            one["counted"] and one["first_exposure"] > 1e9 and len(one["unit"]) == 16 for one in listed
        )
        await experiments.retract("e", {"prediction_id": served["prediction_id"]})
        assert len(await units(experiments)) == 3
        await experiments.create("rounds", {"arms": ["a", "b"], "measure": "reward", "count": "rounds"})
        with pytest.raises(Conflict):
            await experiments.units("rounds", None, 10)

    run(store_url, body)


def test_a_window_is_over_by_the_time_of_the_log_and_ramps_move_nobody(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await per(host, experiments, per={"window": 0.5, "value": "any"}, share=0.3)
        names = [f"u{i}" for i in range(60)]
        before = {name: await experiments.assign("e", {"unit": name}) for name in names}
        inside = {name for name, one in before.items() if one["counted"]}
        assert 5 < len(inside) < 35
        assert {one["arm"] for name, one in before.items() if name not in inside} == {"a"}
        assert (await units(experiments)).keys() == inside

        async def closed() -> bool:
            return (await experiments.info("e"))["waiting"] == 0

        await eventually(closed)
        counted = (await experiments.info("e"))["arms"]
        assert sum(arm["units"] for arm in counted.values()) == len(inside)
        assert {arm["mean"] for arm in counted.values()} == {0.0}
        for share, kind in ((0.2, Conflict), (0, Unprocessable), (1.5, Unprocessable), ("1", Unprocessable)):
            with pytest.raises(kind):
                await experiments.ramp("e", {"share": share})
        assert (await experiments.ramp("e", {"share": 0.8}))["share"] == 0.8
        assert (await experiments.ramp("e", {"share": 0.8}))["share"] == 0.8
        after = {name: await experiments.assign("e", {"unit": name}) for name in names}
        more = {name for name, one in after.items() if one["counted"]}
        assert inside < more
        assert all(after[name] == before[name] for name in inside)
        # What has counted stays counted, and a second exposure begins no second window.
        assert sum(arm["units"] for arm in (await experiments.info("e"))["arms"].values()) >= len(inside)
        listed = await units(experiments)
        assert listed.keys() == more
        await experiments.step("e", "stop")
        with pytest.raises(Conflict):
            await experiments.ramp("e", {"share": 0.9})

    run(store_url, body)


def test_two_replicas_and_a_restart_list_the_same_units(store_url: str) -> None:
    async def main() -> None:
        settings = {"snapshot_every": 7}
        async with hosted(store_url, **settings) as (host, one):
            await per(host, one)
            if store_url.startswith("sqlite"):
                await play(one, one)
            else:
                async with hosted(store_url, **settings) as (_, two_):
                    await play(one, two_)
                    assert await units(two_) == await units(one)
            await one.retract("e", {"feedback_id": "0"})
            shown, info = await units(one), await one.info("e")
        async with hosted(store_url) as (_, again):
            assert await units(again) == shown
            assert await again.info("e") == info
            assert shown["u1"]["values"] == {"reward": 3.0}
            assert shown["u0"]["values"] == {"reward": 2.0}

    async def play(one: Experiments, other: Experiments) -> None:
        for i in range(20):
            await (one, other)[i % 2].assign("e", {"unit": f"u{i}"})
        for i in range(60):
            value = {"unit": f"u{i % 20}", "metric": "reward", "value": 1, "feedback_id": str(i)}
            await asyncio.gather(*(each.events("e", value) for each in (one, other)))

    asyncio.run(main())


def test_drafted_lists_have_no_arm_for_a_unit(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        lists = {"task": "subset-ranking", "algorithm": "listnet"}
        await two(host, lists, lists)
        await experiments.create("e", {"arms": ["a", "b"], "method": "interleave", "measure": "clicks"})
        for call in (experiments.assign, experiments.events):
            with pytest.raises(Conflict):
                await call("e", {"unit": "u"})
        assert (await experiments.ramp("e", {"share": 1}))["share"] == 1

    run(store_url, body)
