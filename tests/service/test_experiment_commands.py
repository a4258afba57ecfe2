"""`feedrank experiment aa`: on simulated values, and on those of an experiment that has run."""

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from feedrank.service.commands.check_experiments import app
from feedrank.service.experiments.manager import Experiments
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


@pytest.mark.parametrize(
    "wrong", [["--weight", "2"], ["--name", "nobody"], ["--store", "nowhere:", "--name", "e"]]
)
def test_what_cannot_be_checked_is_said_in_one_line(wrong: list[str], tmp_path: Path) -> None:
    store = [] if "--store" in wrong else ["--store", f"sqlite:{tmp_path / 'feedrank.db'}"]
    done = CliRunner().invoke(app, [*SMALL, *wrong, *store])
    assert done.exit_code == 1
    assert done.output.startswith("feedrank: ")
    assert len(done.output.strip().splitlines()) == 1
