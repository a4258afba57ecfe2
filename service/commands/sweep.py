"""`feedrank sweep`: the loss of many specs on one log, computed on all cores or on a Dask cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table

from feedrank.service.contract.faults import ServiceError
from feedrank.service.contract.json_types import JSON
from feedrank.service.runtime import trials
from feedrank.service.runtime.trials import Lessons, Trial
from feedrank.service.store import Store

from .rebuild import Dask, LearnerArgument, StoreUrl, Until, Workers, bar, counted, executor, run

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
Form = Annotated[str, typer.Option("--format", help="`table` or `json`")]


@app.command()
def sweep(
    learner: LearnerArgument,
    grid: Annotated[str | None, typer.Option(help="try every combination: '{\"C\": [0.1, 1, 10]}'")] = None,
    random: Annotated[
        int, typer.Option(min=0, help="try this many random settings of the algorithm's parameters")
    ] = 0,
    specs: Annotated[Path | None, typer.Option(help="JSON file with a list of specs to try")] = None,
    base: Annotated[
        str, typer.Option(help="JSON fields that replace those of the learner's spec in all trials")
    ] = "{}",
    seed: Annotated[int, typer.Option(help="seed of the random settings")] = 0,
    until: Until = None,
    workers: Workers = None,
    dask: Dask = None,
    state: Annotated[
        Path | None, typer.Option(help="file for results; an interrupted sweep continues from it")
    ] = None,
    form: Form = "table",
    store: StoreUrl = None,
) -> None:
    """Compute the loss of other specs on a learner's log, and show the best."""

    async def body(opened: Store) -> Lessons:
        return await trials.collect(opened, learner, until)

    lessons = run(store, body)
    try:
        chosen = _specs(lessons, grid, random, specs, base, seed)
        trials.check_specs(chosen)
        with executor(workers, dask) as pool, bar("specs") as progress:
            results = trials.sweep(lessons, chosen, pool, state, progress)
    except (ServiceError, ValueError, OSError) as error:
        print(f"feedrank sweep: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    show(lessons, results, form)


def _specs(
    lessons: Lessons, grid: str | None, random: int, specs: Path | None, base: str, seed: int
) -> list[JSON]:
    """The learner's own spec first, then all that were asked for."""
    own = lessons.spec
    start = trials.changed(own, orjson.loads(base))
    chosen = [own] + ([start] if start != own else [])
    if grid is not None:
        values = orjson.loads(grid)
        if not isinstance(values, dict) or not all(isinstance(each, list) for each in values.values()):
            raise ValueError("--grid must be an object of lists")
        chosen += trials.grid(start, values)
    if random:
        chosen += trials.sampled(start, random, seed)
    if specs is not None:
        chosen += orjson.loads(specs.read_bytes())
    unique: dict[str, JSON] = {}
    for spec in chosen:
        unique.setdefault(trials.key_of(trials.completed(spec)), spec)
    return list(unique.values())


def show(lessons: Lessons, results: list[Trial], form: str) -> None:
    """The table, the best first."""
    if form == "json":
        for trial in results:
            print(orjson.dumps(trial).decode())
        return
    table = Table("", "mean loss", "95 %", "refused", "what differs from its own spec")
    for place, trial in enumerate(results, 1):
        differs = {name: value for name, value in trial.spec.items() if lessons.spec.get(name) != value}
        text = trial.problem or (orjson.dumps(differs).decode() if differs else "(its own)")
        mean = "" if trial.mean_loss is None else f"{trial.mean_loss:.4f}"
        interval = "" if trial.half_width is None else f"± {trial.half_width:.4f}"
        table.add_row(str(place), mean, interval, str(trial.refused or ""), text)
    Console().print(table)
    print(counted(lessons, len(results)))
    losses = sorted({str(trial.spec["loss"]) for trial in results if "loss" in trial.spec})
    if len(losses) > 1:
        print(f"no best: the specs lose by {', '.join(losses)}, which cannot be compared")
    elif results and results[0].mean_loss is not None:
        print(f"best: {orjson.dumps(results[0].spec).decode()}")
