"""Rounds of an experiment on real stores: served by units, credited once, taught once to every arm."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from experiment_runs import CLASSES, JSON, run, two

from feedrank.service.contract.faults import Conflict, Gone, NotFound, Unprocessable
from feedrank.service.experiments.manager import Experiments
from feedrank.service.runtime import Host


def test_a_split_serves_each_unit_by_one_arm_and_every_arm_learns(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await two(host)
        info, made = await experiments.create("e", {"arms": ["a", "b"], "measure": "zero-one"})
        assert made
        assert info["verdict"] == "undecided"
        assert (await experiments.create("e", {"arms": ["a", "b"], "measure": "loss"}))[1] is False
        with pytest.raises(Conflict):
            await experiments.create("e", {"arms": ["b", "a"]})
        served: dict[str, set[str]] = {}
        for i in range(30):
            unit = f"user-{i % 10}"
            reply = await experiments.predict("e", {"features": {"f": i % 2, "h": 1}, "unit": unit, "top": 1})
            assert reply["experiment"] == "e"
            assert len(reply["ranking"]) == 1
            served.setdefault(unit, set()).add(reply["learner"])
            truth = {"label": "x" if i % 2 else "y"}
            done = await experiments.feedback("e", {"prediction_id": reply["prediction_id"], **truth})
            assert done["version"] == i + 1
            assert done["value"] == float(reply["label"] != truth["label"])
            assert done["served_loss"] == done["value"]
            assert done["duplicate"] is False
            assert set(done["arms"]) == {"a", "b"}
            again = await experiments.feedback("e", {"prediction_id": reply["prediction_id"], **truth})
            assert again["duplicate"] is True
            assert {**again, "duplicate": False, "arms": 0} == {**done, "arms": 0}
            with pytest.raises(Conflict):
                await experiments.feedback("e", {"prediction_id": reply["prediction_id"], "label": "z"})
        assert all(len(arms) == 1 for arms in served.values())
        assert {arm for arms in served.values() for arm in arms} == {"a", "b"}
        for name in ("a", "b"):
            assert (await host.info(name))["version"] == 30
        info = await experiments.info("e")
        assert sum(arm["units"] for arm in info["arms"].values()) == 10
        assert sum(arm["rounds"] for arm in info["arms"].values()) == 30
        assert info["version"] == 30

    run(store_url, body)


def test_only_the_arm_that_served_learns_if_asked(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await two(host)
        await experiments.create("e", {"arms": ["a", "b"], "learn": "served"})
        counts = {"a": 0, "b": 0}
        for i in range(12):
            reply = await experiments.predict("e", {"features": ["f"], "unit": str(i)})
            counts[reply["learner"]] += 1
            done = await experiments.feedback("e", {"prediction_id": reply["prediction_id"], "label": "y"})
            assert list(done["arms"]) == [reply["learner"]]
        assert {name: (await host.info(name))["version"] for name in counts} == counts

    run(store_url, body)


def test_batches_are_whole_and_refusals_leave_nothing(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await two(host)
        await experiments.create("e", {"arms": ["a", "b"]})
        asked = [{"features": ["f"], "unit": f"u{i}"} for i in range(5)]
        reply = (await experiments.predict("e", {"instances": asked}))["predictions"]
        events = [{"prediction_id": one["prediction_id"], "label": "y"} for one in reply]
        with pytest.raises(Unprocessable) as refused:
            await experiments.feedback("e", {"events": [*events, {"features": ["f"], "labels": ["x"]}]})
        assert refused.value.errors[0]["pointer"].startswith("/events/5")
        assert (await experiments.info("e"))["version"] == 0
        done = (await experiments.feedback("e", {"events": events}))["results"]
        assert [one["version"] for one in done] == [1, 2, 3, 4, 5]
        again = (await experiments.feedback("e", {"events": events}, "key"))["results"]
        assert all(one["duplicate"] for one in again)
        assert (await host.info("b"))["version"] == 5
        for wrong, error in (
            ({"prediction_id": "0" * 32, "label": "x"}, NotFound),
            ({"prediction_id": "no", "label": "x"}, NotFound),
            ({"features": ["f"]}, Unprocessable),
            ({"features": ["f"], "label": "x", "reward": 1}, Unprocessable),
            ({"features": ["f"], "label": "x", "what": 1}, Unprocessable),
            ({"features": ["f"], "label": 3}, Unprocessable),
            ({"prediction_id": reply[0]["prediction_id"], "label": [1]}, Unprocessable),
            ({"features": {"f": "high"}, "label": "x"}, Unprocessable),
        ):
            with pytest.raises(error):
                await experiments.feedback("e", wrong)
        for bad in (
            {"features": ["f"], "top": 0},
            {"features": ["f"], "unit": 3},
            {"items": []},
            {"features": ["f"], "x": 1},
        ):
            with pytest.raises(Unprocessable):
                await experiments.predict("e", {"features": ["f"], **bad})
        assert (await experiments.info("e"))["version"] == 5
        quiet = await experiments.predict("e", {"features": ["f"], "remember": False})
        assert "prediction_id" not in quiet

    run(store_url, body)


def test_an_expired_prediction_is_gone(store_url: str, later: Callable[[float], None]) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await two(host)
        await experiments.create("e", {"arms": ["a", "b"]})
        reply = await experiments.predict("e", {"features": ["f"]})
        later(101)
        with pytest.raises(Gone):
            await experiments.feedback("e", {"prediction_id": reply["prediction_id"], "label": "x"})

    run(store_url, body, prediction_ttl=100.0)


def test_an_arm_that_is_gone_keeps_nobody_from_learning(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await two(host)
        await host.create("quiet", CLASSES)
        await experiments.create("e", {"arms": ["a", "b"], "shadow": ["quiet"], "share": 0.5})
        await host.delete("quiet")
        outside = 0
        for i in range(20):
            reply = await experiments.predict("e", {"features": ["f"], "unit": str(i)})
            done = await experiments.feedback("e", {"prediction_id": reply["prediction_id"], "label": "y"})
            assert done["arms"]["quiet"]["problem"]["status"] == 404
            outside += done["value"] is None
        assert 0 < outside < 20
        info = await experiments.info("e")
        assert sum(arm["rounds"] for arm in info["arms"].values()) == 20 - outside
        with pytest.raises(Unprocessable, match="no learner"):
            await experiments.create("f", {"arms": ["a", "quiet"]})
        await host.alias("nick", "a")
        with pytest.raises(Unprocessable, match="alias"):
            await experiments.create("f", {"arms": ["nick", "b"]})

    run(store_url, body)


def test_a_trimmed_log_still_answers_repeats(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await two(host)
        await experiments.create("e", {"arms": ["a", "b"], "measure": "reward"})
        first: JSON = {}
        for i in range(25):
            done = await experiments.feedback(
                "e", {"features": ["f"], "reward": 0.25, "feedback_id": f"n{i}"}
            )
            first = first or done
        again = await Experiments(host).feedback(
            "e", {"features": ["f"], "reward": 0.25, "feedback_id": "n0"}
        )
        assert again == {**first, "duplicate": True}
        assert (await Experiments(host).info("e"))["version"] == 25

    run(store_url, body, snapshot_every=5, log_retention=2)


def test_a_prediction_that_is_not_known_leaves_the_experiment_in_memory(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await two(host)
        await experiments.create("e", {"arms": ["a", "b"]})
        asked = {"features": {"f": 1.0}, "unit": "u"}
        first = await experiments.predict("e", asked)
        (live,) = experiments._cache._live.values()

        async def wrong(i: int) -> None:
            with pytest.raises(NotFound):
                await experiments.feedback("e", {"prediction_id": f"nobody-gave-{i}", "label": "x"})

        async def good() -> None:
            assert (await experiments.predict("e", asked))["label"] == first["label"]

        await asyncio.gather(*(wrong(i) if i % 2 else good() for i in range(40)))
        assert list(experiments._cache._live.values()) == [live]
        await experiments.delete("e")
        with pytest.raises(NotFound):
            await experiments.predict("e", asked)
        assert experiments.loaded == []

    run(store_url, body)
