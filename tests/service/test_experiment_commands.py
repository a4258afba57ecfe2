"""`feedrank experiment aa`: on simulated values, and on those of an experiment that has run."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from feedrank.service.commands.check_experiments import app
from feedrank.service.experiments.manager import Experiments
from feedrank.service.experiments.planning import duration
from feedrank.service.experiments.watch import split_verdicts
from feedrank.service.runtime import Host

SMALL = ["aa", "--runs", "60", "--events", "100"]


def test_equal_arms_rarely_get_a_verdict() -> None:
    done = CliRunner().invoke(app, SMALL)
    assert done.exit_code == 0, done.output
    assert "of 60 A/A experiments ever gave a verdict" in done.output


def test_values_can_come_from_an_experiment(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'feedrank.db'}"

    async def play() -> None:
        async with Host.open(store) as host:
            for name in ("a", "b"):
                await host.create(name, {"task": "multiclass", "algorithm": "predtron"})
            experiments = Experiments(host)
            await experiments.create("e", {"arms": ["a", "b"], "measure": "reward"})
            events = [{"features": ["f"], "reward": i % 3 / 2} for i in range(12)]
            await experiments.feedback("e", {"events": events})

    asyncio.run(play())
    done = CliRunner().invoke(app, [*SMALL, "--name", "e", "--store", store])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["plan", "--effect", "0.2", "--name", "e", "--store", store])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("from a mean of 0.5, to see a difference of 0.2: half of all")


def test_a_plan_says_units_and_days() -> None:
    known = ["plan", "--mean", "0.1", "--units-per-day", "500"]
    done = CliRunner().invoke(app, [*known, "--effect", "0.1"])
    assert done.exit_code == 0, done.output
    assert done.output.count("days)") == 3
    for wrong in (["--effect", "0"], ["--effect", "0.95"], ["--effect", "0.1", "--power", "1"]):
        refused = CliRunner().invoke(app, [*known, *wrong])
        assert refused.exit_code == 1
        assert refused.output.startswith("feedrank: ")


@pytest.mark.parametrize("effect", [0.1, -0.1])
def test_as_planned_so_it_lasts(effect: float) -> None:
    """Other simulated experiments than those of the plan: half are over by its median, and four in five by its end."""
    planned = duration(effect, [0.0] * 4 + [1.0], seed=1)
    rng = np.random.default_rng(2)
    first = rng.random((200, planned.most)) < 0.5
    y = (rng.random(first.shape) < np.where(first, 0.2, 0.2 + effect)).astype(np.float64)
    verdicts = split_verdicts(y, first)
    assert 0.3 < (verdicts <= planned.median).mean() < 0.7
    assert 0.65 < (verdicts <= planned.most).mean() < 0.95
    assert planned.median < planned.most < 3 * planned.fixed
    assert duration(effect / 10, [0.0] * 4 + [1.0], runs=20).median > 50 * planned.median


@pytest.mark.parametrize(
    "wrong", [["--weight", "2"], ["--name", "nobody"], ["--store", "nowhere:", "--name", "e"]]
)
def test_what_cannot_be_checked_is_said_in_one_line(wrong: list[str], tmp_path: Path) -> None:
    store = [] if "--store" in wrong else ["--store", f"sqlite:{tmp_path / 'feedrank.db'}"]
    done = CliRunner().invoke(app, [*SMALL, *wrong, *store])
    assert done.exit_code == 1
    assert done.output.startswith("feedrank: ")
    assert len(done.output.strip().splitlines()) == 1
