"""Answers as they come in real life: click by click, late, never, taken back; and experiments that nobody asks for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import experiment_runs
import orjson
import pytest
from experiment_runs import CLASSES, JSON, LISTS, two
from waiting import eventually

from feedrank.service.contract.faults import Conflict, NotFound, Unprocessable
from feedrank.service.experiments import cache
from feedrank.service.experiments.manager import Experiments
from feedrank.service.runtime import Host

PAGE = {"items": [{"id": f"d{i}", "features": {"g": i}} for i in range(4)]}


def run(url: str, body: Callable[[Host, Experiments], Awaitable[None]], spec: JSON, **settings: Any) -> None:
    async def with_arms(host: Host, experiments: Experiments) -> None:
        await two(host, spec, spec)
        await body(host, experiments)

    experiment_runs.run(url, with_arms, **settings)


async def counted(experiments: Experiments, rounds: int) -> JSON:
    """The report once so many rounds are counted."""

    async def info() -> JSON | None:
        report = await experiments.info("e")
        return report if sum(arm["rounds"] for arm in report["arms"].values()) >= rounds else None

    return await eventually(info)


async def taught(host: Host, versions: dict[str, int]) -> None:
    """Until the arms have learned: an event is in the log, and counted, before they do."""

    async def learned() -> bool:
        return {name: (await host.info(name))["version"] for name in versions} == versions

    await eventually(learned)


def test_an_unnamed_measure_follows_the_feedback_and_a_mismatch_is_refused(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await experiments.create("clicked", {"arms": ["a", "b"]})
        done = await experiments.feedback("clicked", {**PAGE, "unit": "u", "clicks": ["d1"]})
        assert done["value"] in (1.0, 1 / 2, 1 / 3, 1 / 4)
        none = await experiments.feedback("clicked", {**PAGE, "unit": "v", "clicks": []})
        assert none["value"] == 0.0
        info = await experiments.info("clicked")
        assert (info["measure"], info["better"]) == ("reciprocal-rank", "higher")
        await experiments.create("graded", {"arms": ["a", "b"]})
        await experiments.feedback("graded", {**PAGE, "unit": "u", "relevance": {"d1": 2}})
        assert (await experiments.info("graded"))["measure"] == "ndcg"
        before = (await host.info("a"))["version"]
        with pytest.raises(Unprocessable, match="reciprocal-rank"):
            await experiments.feedback("graded", {**PAGE, "unit": "v", "clicks": ["d1"]})
        assert (await host.info("a"))["version"] == before

    run(store_url, body, LISTS)


def test_clicks_join_one_by_one_and_count_once_when_the_window_is_over(
    store_url: str, later: Callable[[float], None]
) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await experiments.create("e", {"arms": ["a", "b"], "measure": "clicks", "wait": 600})
        page = await experiments.predict("e", {**PAGE, "unit": "u"})
        empty = await experiments.predict("e", {**PAGE, "unit": "v"})
        id = page["prediction_id"]
        assert (await experiments.clicks("e", {"prediction_id": id, "clicks": ["d1"]}))["clicks"] == ["d1"]
        again = await experiments.clicks("e", {"prediction_id": id, "clicks": ["d2", "d1"]})
        assert again["clicks"] == ["d1", "d2"]
        assert (await experiments.info("e"))["version"] == 0
        with pytest.raises(Unprocessable):
            await experiments.clicks("e", {"prediction_id": id, "clicks": ["other"]})
        with pytest.raises(NotFound):
            await experiments.clicks("e", {"prediction_id": "nobody's", "clicks": ["d1"]})
        later(601)
        info = await counted(experiments, 2)
        means = {name: arm["mean"] for name, arm in info["arms"].items() if arm["rounds"]}
        assert sum(arm["rounds"] for arm in info["arms"].values()) == 2
        assert sum(arm["answered"] for arm in info["arms"].values()) == 1
        assert sum(arm["served"] for arm in info["arms"].values()) >= 1
        assert set(means.values()) in ({0.5, 0.0}, {0.25})
        with pytest.raises(Conflict):
            await experiments.clicks("e", {"prediction_id": id, "clicks": ["d3"]})
        # The page without a click taught nothing; the other one taught both clicks at once.
        await taught(host, {"a": 1, "b": 1})
        events = (await host.events("a"))["events"]
        assert sorted(events[0]["truth"]["clicks"]) == ["d1", "d2"]
        # An answer after its window still teaches, and is not counted.
        late = await experiments.feedback("e", {"prediction_id": empty["prediction_id"], "clicks": ["d0"]})
        assert late["value"] is None
        assert (await host.info("a"))["version"] == 2
        assert sum(arm["rounds"] for arm in (await experiments.info("e"))["arms"].values()) == 2

    run(store_url, body, LISTS)


def test_the_window_of_clicks_is_that_of_the_arms_where_the_definition_has_none(
    store_url: str, later: Callable[[float], None]
) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        for name, wait in (("short", 200), ("long", 400)):
            await host.create(name, {**LISTS, "wait": wait})
        await experiments.create("e", {"arms": ["short", "long"], "method": "interleave"})
        before = time.time()
        page = await experiments.predict("e", {**PAGE, "unit": "u"})
        sent = {"prediction_id": page["prediction_id"], "clicks": ["d1"]}
        assert before + 400 <= (await experiments.clicks("e", sent))["closes_at"] <= time.time() + 400
        later(401)
        await counted(experiments, 1)
        await taught(host, {"short": 1, "long": 1})

    run(store_url, body, LISTS)


def test_answers_within_a_window_count_when_it_is_over(
    store_url: str, later: Callable[[float], None]
) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        definition = {"arms": ["a", "b"], "measure": "zero-one", "wait": 600, "default": 1.0}
        await experiments.create("e", definition)
        first = await experiments.predict("e", {"features": ["f"], "unit": "u"})
        await experiments.predict("e", {"features": ["f"], "unit": "w"})
        done = await experiments.feedback("e", {"prediction_id": first["prediction_id"], "label": "x"})
        assert done["arms"]["a"]["version"] == 1  # the arms learn at once
        info = await experiments.info("e")
        assert sum(arm["rounds"] for arm in info["arms"].values()) == 0
        assert info["waiting"] == 1
        later(601)
        info = await counted(experiments, 2)
        assert info["waiting"] == 0
        again = Experiments(host)
        assert orjson.dumps(await again.info("e")) == orjson.dumps(await experiments.info("e"))
        await again.close()

    run(store_url, body, CLASSES)


def test_an_answer_just_after_its_window_counts_as_none(
    store_url: str, later: Callable[[float], None]
) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await host.sweeper.close()
        definition = {"arms": ["a", "b"], "measure": "zero-one", "wait": 600, "default": 1.0}
        await experiments.create("e", definition)
        page = await experiments.predict("e", {"features": ["f"], "unit": "u"})
        later(601)  # the window is over, and nobody has written so yet
        late = await experiments.feedback(
            "e", {"prediction_id": page["prediction_id"], "label": page["label"]}
        )
        assert late["value"] == 1.0
        assert [(await host.info(name))["version"] for name in ("a", "b")] == [1, 1]
        info = await counted(experiments, 1)
        assert [arm["mean"] for arm in info["arms"].values() if arm["rounds"]] == [1.0]
        assert sum(arm["answered"] for arm in info["arms"].values()) == 0

    run(store_url, body, CLASSES)


@pytest.mark.parametrize("gone", [[7], [19, 7, 8]], ids=["one", "batch"])
def test_a_retracted_event_leaves_figures_and_arms_as_if_it_had_never_been(
    store_url: str, gone: list[int]
) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        for name in ("c", "d"):
            await host.create(name, CLASSES)
        await experiments.create("e", {"arms": ["a", "b"], "measure": "zero-one", "seed": "s"})
        await experiments.create("clean", {"arms": ["c", "d"], "measure": "zero-one", "seed": "s"})
        for i in range(30):
            event = {"features": {"f": i % 3, "h": 1}, "unit": f"u{i % 9}", "label": "xy"[i % 2]}
            if i not in gone:
                await experiments.feedback("clean", event)
            await experiments.feedback("e", {**event, "feedback_id": f"n{i}"})
        if len(gone) > 1:
            batch = await experiments.retract("e", {"events": [{"feedback_id": f"n{i}"} for i in gone]})
            done = batch["results"][1]
        else:
            done = await experiments.retract("e", {"feedback_id": "n7"})
        assert (done["retracted"], done["duplicate"]) == (8, False)
        assert (await experiments.retract("e", {"feedback_id": "n7"}))["duplicate"] is True
        with pytest.raises(NotFound):
            await experiments.retract("e", {"feedback_id": "none"})
        one, other = await experiments.info("e"), await experiments.info("clean")
        assert list(one["arms"].values()) == list(other["arms"].values())
        figures = ("difference", "lower", "upper", "units", "rounds")
        assert [one["differences"][0][name] for name in figures] == [
            other["differences"][0][name] for name in figures
        ]
        predicted = [
            (await host.predict(name, {"features": {"f": 2, "h": 1}, "remember": False}))["ranking"]
            for name in "acbd"
        ]
        assert predicted[0] == predicted[1]
        assert predicted[2] == predicted[3]
        fresh = Experiments(host)
        assert (await fresh.info("e"))["arms"] == one["arms"]
        await fresh.close()

    run(store_url, body, CLASSES)


def test_guardrails_stop_a_promotion_until_it_is_overridden(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        guardrails = [{"measure": "zero-one", "limit": 0.1}]
        await experiments.create(
            "e", {"arms": ["a", "b"], "measure": "reward", "guardrails": guardrails, "alias": "live"}
        )
        events = []
        for i in range(80):
            shown = await experiments.predict("e", {"features": ["f"], "unit": str(i)})
            won = shown["learner"] == "b"
            wrong = "y" if shown["label"] == "x" else "x"
            events.append(
                {
                    "prediction_id": shown["prediction_id"],
                    "reward": float(won),
                    "label": wrong if won else shown["label"],
                }
            )
        await experiments.feedback("e", {"events": events})
        info = await experiments.info("e")
        assert info["verdict"] == "b"
        (guardrail,) = info["guardrails"]
        assert (guardrail["arm"], guardrail["passed"]) == ("b", False)
        with pytest.raises(Conflict, match="zero-one"):
            await experiments.promote("e", {})
        assert (await experiments.promote("e", {"override": True}))["promoted"] == "b"

    run(store_url, body, CLASSES)


def test_a_callers_own_prediction_id_replies_as_the_first_time(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await experiments.create("e", {"arms": ["a", "b"], "method": "interleave"})
        first = await experiments.predict("e", {**PAGE, "prediction_id": "page-1", "unit": "u"})
        assert first["prediction_id"] == "page-1"
        assert await experiments.predict("e", {**PAGE, "prediction_id": "page-1", "unit": "u"}) == first
        with pytest.raises(Conflict):
            await experiments.predict("e", {**PAGE, "prediction_id": "page-1", "unit": "other"})
        done = await experiments.feedback("e", {"prediction_id": "page-1", "clicks": ["d3"]})
        assert sum(done["credits"].values()) == pytest.approx(1)

    run(store_url, body, LISTS)


def test_equal_arms_show_equal_means_whatever_the_draft_said(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await experiments.create("e", {"arms": ["a", "b"], "method": "interleave"})
        for i in range(12):
            page = await experiments.predict("e", {**PAGE, "unit": f"u{i}"})
            clicks = [page["ranking"][i % 4]["id"]]
            await experiments.feedback("e", {"prediction_id": page["prediction_id"], "clicks": clicks})
        info = await experiments.info("e")
        assert info["arms"]["a"]["mean"] == info["arms"]["b"]["mean"] == 0.5
        assert info["differences"][0]["difference"] == 0

    run(store_url, body, LISTS)


def test_experiments_leave_memory_when_nobody_asks_for_them(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        for name in ("e", "f", "g"):
            await experiments.create(name, {"arms": ["a", "b"]})
            await experiments.feedback(name, {"features": ["f"], "label": "x", "unit": "u"})
        assert sorted(experiments.loaded) == ["e", "f", "g"]
        monkeypatch.setattr(cache, "TIDIED", 0.0)
        monkeypatch.setattr(cache, "IDLE", 0.0)
        await experiments.info("g")
        assert experiments.loaded == []
        monkeypatch.setattr(cache, "IDLE", 900.0)
        info = await experiments.info("e")
        assert info["version"] == 1
        assert sum(arm["units"] for arm in info["arms"].values()) == 1
        assert experiments.loaded == ["e"]

    run(store_url, body, CLASSES)


def test_requests_that_tidy_at_the_same_time_do_not_fail(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        names = [f"e{i}" for i in range(6)]
        for name in names:
            await experiments.create(name, {"arms": ["a", "b"], "measure": "zero-one"})
            await experiments.feedback(name, {"features": ["f"], "label": "x", "unit": "u"})
        monkeypatch.setattr(cache, "TIDIED", 0.0)
        monkeypatch.setattr(cache, "IDLE", 0.0)
        # Saving takes a while: others come to tidy meanwhile.
        infos = await asyncio.gather(*(experiments.info(name) for name in names * 4))
        assert {info["version"] for info in infos} == {1}
        assert experiments.loaded == []

    run(store_url, body, CLASSES)


def test_delays_are_reported_by_arm(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await experiments.create("e", {"arms": ["a", "b"], "measure": "zero-one"})
        for i in range(8):
            shown = await experiments.predict("e", {"features": ["f"], "unit": str(i)})
            if i % 4:
                await experiments.feedback("e", {"prediction_id": shown["prediction_id"], "label": "x"})
        started = time.time()
        info = await experiments.info("e")
        assert sum(arm["answered"] for arm in info["arms"].values()) == 6
        assert sum(arm["served"] for arm in info["arms"].values()) == 8
        for arm in info["arms"].values():
            assert arm["delay_median"] is None or arm["delay_median"] <= 2 * (time.time() - started + 60)

    run(store_url, body, CLASSES)
