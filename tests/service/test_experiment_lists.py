"""Experiments on lists: interleaved, credited by clicks or by a loss, read by the list that was served."""

from __future__ import annotations

import numpy as np
import pytest
from experiment_runs import LISTS, items, opposed, run, two

from feedrank.service.contract.faults import Unprocessable
from feedrank.service.experiments.manager import Experiments
from feedrank.service.runtime import Host


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
