"""`feedrank experiment`: how often equal arms get a false verdict, and how long an experiment will take."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer

from feedrank.service.contract.faults import ServiceError
from feedrank.service.experiments.manager import Experiments
from feedrank.service.experiments.planning import duration
from feedrank.service.experiments.watch import aa_check
from feedrank.service.runtime import Host

from .serve import fail

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Plan experiments, and check their verdicts.",
)


Drawn = Annotated[str | None, typer.Option(help="draw the values from the log of this experiment")]
OfStore = Annotated[str, typer.Option(envvar="FEEDRANK_STORE", help="store of that experiment")]


@app.callback()
def _group() -> None:
    """Plan experiments, and check their verdicts."""


@app.command()
def aa(
    runs: Annotated[int, typer.Option(help="number of simulated experiments with two equal arms")] = 2000,
    events: Annotated[
        int, typer.Option(help="events per experiment; the verdict is checked after every one")
    ] = 1000,
    confidence: Annotated[float, typer.Option(help="confidence of the experiments")] = 0.95,
    weight: Annotated[float, typer.Option(help="share of units for the first arm")] = 0.5,
    mean: Annotated[float, typer.Option(help="mean of the values, which are 0 or 1")] = 0.5,
    seed: Annotated[int, typer.Option(help="seed of the simulation")] = 0,
    name: Drawn = None,
    store: OfStore = "sqlite:feedrank.db",
) -> None:
    """Count false verdicts between equal arms; exit with status 1 if there are more than the confidence allows."""
    try:
        values = None if name is None else asyncio.run(_values(store, name))
        report = aa_check(runs, events, confidence, weight, mean, seed, values)
    except ServiceError as error:
        raise fail(error) from None
    print(
        f"{report['false_verdicts']} of {runs} A/A experiments ever gave a verdict: {report['rate']:.2%}, "
        f"allowed {report['allowed']:.2%}"
    )
    if not report["passed"]:
        raise typer.Exit(1)


@app.command()
def plan(
    effect: Annotated[float, typer.Option(help="smallest difference of interest, such as 0.02")],
    mean: Annotated[float, typer.Option(help="mean of the values now, which are 0 or 1")] = 0.5,
    units_per_day: Annotated[float, typer.Option(help="new units a day that take part")] = 0.0,
    confidence: Annotated[float, typer.Option(help="confidence of the experiment")] = 0.95,
    power: Annotated[float, typer.Option(help="share of such experiments that are over by then")] = 0.8,
    weight: Annotated[float, typer.Option(help="share of units for the first arm")] = 0.5,
    name: Drawn = None,
    store: OfStore = "sqlite:feedrank.db",
) -> None:
    """Say how many units an experiment of two arms will take, and how long; from the log of another with --name."""
    try:
        values: Sequence[float] = [1.0] * round(10_000 * mean) + [0.0] * round(10_000 * (1 - mean))
        if name is not None:
            values, pace = asyncio.run(_traffic(store, name))
            units_per_day = units_per_day or pace
        outlook = duration(effect, values, confidence=confidence, weight=weight, power=power)
    except ServiceError as error:
        raise fail(error) from None

    def days(units: int) -> str:
        return f" ({units / units_per_day:,.1f} days)" if units_per_day > 0 else ""

    print(
        f"from a mean of {outlook.baseline:.4g}, to see a difference of {effect:g}: half of all experiments take at most "
        f"{outlook.median:,} units{days(outlook.median)}, {power:.0%} at most {outlook.most:,}{days(outlook.most)}, "
        f"looked at as often as you like; a single look at the end would take {outlook.fixed:,}{days(outlook.fixed)}"
    )


async def _traffic(store: str, name: str) -> tuple[Sequence[float], float]:
    async with Host.open(store) as host:
        experiments = Experiments(host)
        return await experiments.values(name), await experiments.units_per_day(name)


async def _values(store: str, name: str) -> Sequence[float]:
    async with Host.open(store) as host:
        return await Experiments(host).values(name)
