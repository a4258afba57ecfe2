"""`feedrank replay` and `feedrank verify`: the parts of the command line that read logs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeVar

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from feedrank.service.contract.faults import ServiceError
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.settings import Settings, SettingsError
from feedrank.service.runtime.learner_state import LearnerState
from feedrank.service.runtime.replay import Replay, Report
from feedrank.service.runtime.replay import replay as run_replay
from feedrank.service.runtime.replay import verify as run_verify
from feedrank.service.store import Store, StoreSignal, open_store

T = TypeVar("T")
ROWS = 20

replay = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
verify = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
StoreUrl = Annotated[str | None, typer.Option("--store", help="sqlite:PATH or redis://HOST:PORT/DB")]


@replay.command()
def _replay(
    learner: Annotated[str, typer.Argument(help="its name, or an alias")],
    spec: Annotated[Path | None, typer.Option(help="a JSON file: learn by this spec beside its own")] = None,
    until: Annotated[int | None, typer.Option(help="stop after this version", min=1)] = None,
    store: StoreUrl = None,
) -> None:
    """Rebuild a learner from its log, as it was or as another algorithm would have learned it."""

    async def body(source: Store) -> Replay:
        other = None if spec is None else orjson.loads(spec.read_bytes())
        with bar("events") as progress:
            return await run_replay(source, learner, spec=other, until=until, progress=progress)

    show(run(store, body))


@verify.command()
def _verify(
    learners: Annotated[list[str] | None, typer.Argument(help="names; all learners if none is given")] = None,
    store: StoreUrl = None,
) -> None:
    """Check that every log can be read, and that every snapshot is what its log folds to."""

    async def body(source: Store) -> list[Report]:
        with bar("learners") as progress:
            return await run_verify(source, learners or None, progress=progress)

    reports = run(store, body)
    for report in reports:
        for problem in report.problems:
            print(f"{report.name}: {problem}")
    bad = sum(bool(report.problems) for report in reports)
    print(
        f"{len(reports)} learners, {sum(r.version for r in reports)} events: {f'{bad} with problems' if bad else 'sound'}"
    )
    raise typer.Exit(1 if bad else 0)


def run(url: str | None, body: Callable[[Store], Awaitable[T]]) -> T:
    """Open the store, run, close; what cannot be done is one line."""

    async def main() -> T:
        source = await open_store(Settings.from_env(store=url).store, read_only=True)
        try:
            return await body(source)
        finally:
            await source.close()

    try:
        return asyncio.run(main())
    except (ServiceError, StoreSignal, SettingsError, OSError, orjson.JSONDecodeError) as error:
        print(f"feedrank: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on the terminal; nothing where there is none."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def show(result: Replay) -> None:
    """The learning curve of both, at the same rounds."""
    print(f"{result.name}: versions {result.first} to {result.last}")
    folds = {"its own": result.own} | ({"the other": result.other} if result.other is not None else {})
    table = Table("rounds", *(f"{name}: {what}" for name in folds for what in ("mean loss", "window")))
    curves = [points(fold) for fold in folds.values()]
    rounds = sorted(set.union(*(set(curve) for curve in curves)))
    for number in rounds[:: -(-len(rounds) // ROWS)] if rounds else []:
        cells = [
            f"{curve[number][what]:.4f}" if number in curve else ""
            for curve in curves
            for what in ("mean_loss", "window_loss")
        ]
        table.add_row(str(number), *cells)
    Console().print(table)
    for name, fold in folds.items():
        done = fold.learner.progress.to_json()
        algorithm = fold.learner.spec["algorithm"]
        print(
            f"{name} ({algorithm}): {done['rounds']} rounds, {done['mistakes']} mistakes, mean loss {done['mean_loss']}"
        )
    if result.refused:
        print(f"{result.refused} events do not fit the other spec and were left out")


def points(fold: LearnerState) -> dict[int, JSON]:
    return {point["rounds"]: point for point in fold.history()}
