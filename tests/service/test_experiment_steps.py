"""The life of an experiment: paused, stopped, promoted and deleted, across restarts, crashes and replicas."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from experiment_runs import JSON, hosted, run, two

from feedrank.service.contract.faults import Conflict, NotFound, StoreUnavailable, Unprocessable
from feedrank.service.experiments.manager import Experiments
from feedrank.service.runtime import Host


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
