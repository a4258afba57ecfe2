"""Experiments on real stores: served by units, credited once, taught once to every arm, alike on every replica."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import orjson
import pytest

from feedrank.service.contract.faults import Conflict, Gone, NotFound, StoreUnavailable, Unprocessable
from feedrank.service.contract.settings import Settings
from feedrank.service.experiments.manager import Experiments
from feedrank.service.runtime import Host

JSON = dict[str, Any]
CLASSES = {"task": "multiclass", "algorithm": "predtron", "labels": ["x", "y"]}
SLOW = {**CLASSES, "learning_rate": 0.5, "bias": True}
LISTS = {"task": "subset-ranking", "algorithm": "listnet"}


@asynccontextmanager
async def hosted(url: str, **settings: Any) -> AsyncIterator[tuple[Host, Experiments]]:
    async with Host.open(url, Settings(**settings)) as host:
        experiments = Experiments(host)
        try:
            yield host, experiments
        finally:
            await experiments.close()


async def two(host: Host, a: JSON = CLASSES, b: JSON = SLOW) -> None:
    await host.create("a", a)
    await host.create("b", b)


def run(url: str, body: Callable[[Host, Experiments], Awaitable[Any]], **settings: Any) -> Any:
    async def main() -> Any:
        async with hosted(url, **settings) as (host, experiments):
            return await body(host, experiments)

    return asyncio.run(main())


async def opposed(host: Host) -> None:
    """Two rankers of lists: "a" has learned that g is good, "b" that it is bad, and does not forget it soon."""
    await two(host, LISTS, LISTS)
    for name, relevance in (("a", {"d2": 2, "d1": 1}), ("b", {"d0": 2, "d1": 1})):
        await host.feedback(name, {"events": [{**items(0, 1, 2), "relevance": relevance}] * 200})


def items(*grades: float) -> JSON:
    return {"items": [{"id": f"d{i}", "features": {"g": grade, "one": 1}} for i, grade in enumerate(grades)]}


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


def test_an_interleaved_list_credits_the_arm_that_brings_what_is_clicked(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await opposed(host)
        await experiments.create(
            "e", {"arms": ["a", "b"], "method": "interleave", "measure": "clicks", "share": 1}
        )
        frozen = [(await host.info(name))["version"] for name in ("a", "b")]
        rng = np.random.default_rng(0)
        for i in range(60):
            grades = rng.permutation(6).tolist()
            reply = await experiments.predict("e", {**items(*grades), "top": 4, "explain": True})
            names = [entry["id"] for entry in reply["ranking"]]
            assert len(names) == 4
            assert all("contributions" in entry for entry in reply["ranking"])
            best = f"d{grades.index(5)}"
            assert best in names
            done = await experiments.feedback(
                "e", {"prediction_id": reply["prediction_id"], "clicks": [best]}
            )
            assert sum(done["credits"].values()) == 1
            if i == 0:
                # Both arms learn from the list as it was served: what stood above the click was passed over.
                for name in ("a", "b"):
                    (event,) = (await host.events(name, after=frozen[0]))["events"]
                    assert event["served"] == {"ranking": names}
        info = await experiments.info("e")
        assert info["verdict"] == "a"
        assert info["arms"]["a"]["mean"] > info["arms"]["b"]["mean"]
        assert [(await host.info(name))["version"] for name in ("a", "b")] == [frozen[0] + 60, frozen[1] + 60]

    run(store_url, body)


def test_clicks_beside_an_instance_are_read_by_the_list_that_was_served(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await two(host, LISTS, LISTS)
        shown = {"ranking": ["d2", "d1", "d0"]}
        reply = await host.predict("a", items(2, 1, 0))
        assert [entry["id"] for entry in reply["ranking"]] == ["d0", "d1", "d2"]
        done = await host.feedback("a", {**items(2, 1, 0), "clicks": ["d1"], "served": shown})
        assert done["served_loss"] > 0  # d2 stood above the click
        done = await host.feedback("b", {**items(2, 1, 0), "clicks": ["d2"], "served": shown})
        assert done["served_loss"] == 0
        for wrong in ({"label": "x"}, {"ranking": "d1"}, {"ranking": ["d1", "d1"]}, ["d1"]):
            with pytest.raises(Unprocessable):
                await host.feedback("a", {**items(2, 1, 0), "clicks": ["d1"], "served": wrong})
        await experiments.create("e", {"arms": ["a", "b"], "measure": "clicks"})
        with pytest.raises(Unprocessable):
            await experiments.feedback("e", {**items(2, 1, 0), "clicks": ["d1"], "served": shown})

    run(store_url, body)


def test_a_loss_compares_interleaved_arms_on_the_same_lists_and_shadows_never_serve(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await opposed(host)
        await host.create("quiet", LISTS)
        await experiments.create(
            "e", {"arms": ["a", "b"], "method": "interleave", "measure": "ndcg", "shadow": ["quiet"]}
        )
        for _ in range(4):
            reply = await experiments.predict("e", items(0, 1, 2, 3))
            assert set(reply["versions"]) == {"a", "b"}
            done = await experiments.feedback(
                "e", {"prediction_id": reply["prediction_id"], "relevance": {"d3": 3, "d2": 1}}
            )
            assert done["credits"]["a"] < done["credits"]["b"]
        info = await experiments.info("e")
        assert info["better"] == "lower"
        assert info["differences"][0]["difference"] < 0
        assert info["shadow"]["quiet"]["rounds"] == 4
        assert (await host.info("quiet"))["version"] == 4

    run(store_url, body)


def test_state_survives_and_replicas_agree(store_url: str) -> None:
    if store_url.startswith("sqlite"):
        rounds = [(0, 20), (20, 40)]
    else:
        rounds = [(0, 40)]

    async def some(experiments: Experiments, start: int, end: int) -> None:
        for i in range(start, end):
            reply = await experiments.predict("e", {"features": {"f": i % 3}, "unit": f"u{i % 7}"})
            await experiments.feedback("e", {"prediction_id": reply["prediction_id"], "label": "xy"[i % 2]})

    async def main() -> list[JSON]:
        seen = []
        for start, end in rounds:
            async with hosted(store_url, snapshot_every=15) as (host, first):
                await two(host)
                await first.create("e", {"arms": ["a", "b"]})
                if store_url.startswith("sqlite"):
                    await some(first, start, end)
                    seen = [await first.info("e")]
                    continue
                async with hosted(store_url, snapshot_every=15) as (_, second):
                    await asyncio.gather(some(first, start, 20), some(second, 20, end))
                    seen = [await first.info("e"), await second.info("e")]
        async with hosted(store_url) as (host, fresh):
            seen.append(await fresh.info("e"))
            versions = [(await host.info(name))["version"] for name in ("a", "b")]
            assert versions == [40, 40]
        return seen

    seen = asyncio.run(main())
    assert len(seen) > 1
    assert all(orjson.dumps(reply) == orjson.dumps(seen[0]) for reply in seen)
    assert seen[0]["version"] == 40


def test_a_crash_between_the_log_and_the_arms_is_healed(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(host: Host, experiments: Experiments) -> str:
        await two(host)
        await experiments.create("e", {"arms": ["a", "b"]})
        reply = await experiments.predict("e", {"features": ["f"], "unit": "u"})
        real = host.feedback

        async def broken(name: str, request: JSON, key: str | None = None) -> JSON:
            if name == "b":
                raise StoreUnavailable("the connection is lost")
            return await real(name, request, key)

        monkeypatch.setattr(host, "feedback", broken)
        with pytest.raises(StoreUnavailable):
            await experiments.feedback("e", {"prediction_id": reply["prediction_id"], "label": "y"})
        return str(reply["prediction_id"])

    async def versions(host: Host) -> list[int]:
        return [(await host.info(name))["version"] for name in ("a", "b")]

    first = run(store_url, crash)

    async def other_traffic(host: Host, experiments: Experiments) -> None:
        assert await versions(host) == [1, 0]
        monkeypatch.setattr("feedrank.service.experiments.loaded.DOUBT", 0.0)
        await experiments.feedback("e", {"features": ["f"], "label": "x", "feedback_id": "other"})
        assert await versions(host) == [2, 2]

    run(store_url, other_traffic)

    async def retry(host: Host, experiments: Experiments) -> None:
        done = await experiments.feedback("e", {"prediction_id": first, "label": "y"})
        assert done["duplicate"] is True
        assert done["version"] == 1
        assert await versions(host) == [2, 2]

    run(store_url, retry)


def test_another_replica_follows_a_pause(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await two(host)
        await experiments.create("e", {"arms": ["a", "b"]})
        other = Experiments(host)
        units = [{"features": ["f"], "unit": str(i), "remember": False} for i in range(12)]
        assert {(await other.predict("e", unit))["learner"] for unit in units} == {"a", "b"}
        await experiments.step("e", "pause")
        monkeypatch.setattr("feedrank.service.experiments.loaded.FRESH", 0.0)
        assert {(await other.predict("e", unit))["learner"] for unit in units} == {"a"}

    run(store_url, body)


def test_pause_stop_and_promote(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await two(host)
        await experiments.create("e", {"arms": ["a", "b"], "measure": "reward", "alias": "live"})
        pending = await experiments.predict("e", {"features": ["f"], "unit": "early"})
        assert (await experiments.step("e", "pause"))["status"] == "paused"
        for i in range(8):
            reply = await experiments.predict("e", {"features": ["f"], "unit": str(i)})
            assert reply["learner"] == "a"
            await experiments.feedback(
                "e", {"prediction_id": reply["prediction_id"], "label": "y", "reward": 1}
            )
        await experiments.feedback("e", {"prediction_id": pending["prediction_id"], "reward": 0.5})
        info = await experiments.step("e", "resume")
        assert sum(arm["rounds"] for arm in info["arms"].values()) == 1
        with pytest.raises(Conflict):
            await experiments.promote("e", {})
        for i in range(60):
            reply = await experiments.predict("e", {"features": ["f"], "unit": f"late-{i}"})
            reward = float(reply["learner"] == "b")
            await experiments.feedback("e", {"prediction_id": reply["prediction_id"], "reward": reward})
        info = await experiments.promote("e", {})
        assert (info["verdict"], info["promoted"], info["status"]) == ("b", "b", "stopped")
        assert (await host.info("live"))["name"] == "b"
        assert (await experiments.predict("e", {"features": ["f"], "unit": "late-1"}))["learner"] == "b"
        with pytest.raises(Conflict):
            await experiments.step("e", "resume")
        assert (await host.info("a"))["version"] == 8
        values = await experiments.values("e")
        assert len(values) == 61
        assert set(values) <= {0.0, 0.5, 1.0}
        with pytest.raises(Unprocessable):
            await experiments.promote("e", {"arm": "c"})

    run(store_url, body)


def test_deleting_frees_the_name(store_url: str) -> None:
    async def body(host: Host, experiments: Experiments) -> None:
        await two(host)
        await experiments.create("e", {"arms": ["a", "b"]})
        reply = await experiments.predict("e", {"features": ["f"]})
        other = Experiments(host)
        await other.info("e")
        assert [entry["name"] for entry in (await experiments.page())["experiments"]] == ["e"]
        await experiments.delete("e")
        for call in (
            experiments.info("e"),
            experiments.delete("e"),
            other.feedback("e", {"features": [], "label": "x"}),
        ):
            with pytest.raises(NotFound):
                await call
        await experiments.create("e", {"arms": ["b", "a"]})
        assert (await experiments.info("e"))["version"] == 0
        with pytest.raises(NotFound):
            await experiments.feedback("e", {"prediction_id": reply["prediction_id"], "label": "x"})
        assert (await host.info("a"))["version"] == 0

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
