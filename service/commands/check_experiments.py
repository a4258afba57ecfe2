"""`feedrank experiment aa`: how often equal arms get a false verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer

from feedrank.service.contract.faults import ServiceError
from feedrank.service.experiments.manager import Experiments
from feedrank.service.experiments.watch import aa_check
from feedrank.service.runtime import Host

from .serve import fail

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Check the verdicts of experiments.",
)


@app.callback()
def _group() -> None:
    """Check the verdicts of experiments."""


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
    name: Annotated[str | None, typer.Option(help="draw the values from the log of this experiment")] = None,
    store: Annotated[
        str, typer.Option(envvar="FEEDRANK_STORE", help="store of that experiment")
    ] = "sqlite:feedrank.db",
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


async def _values(store: str, name: str) -> Sequence[float]:
    async with Host.open(store) as host:
        return await Experiments(host).values(name)
