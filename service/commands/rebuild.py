"""`feedrank replay` and `feedrank verify`: rebuild learners from their logs, and check the store."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ProcessPoolExecutor
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
from feedrank.service.contract.store_url import FORMS
from feedrank.service.runtime.learner_state import LearnerState
from feedrank.service.runtime.replay import Replay, Report, replay_job
from feedrank.service.runtime.replay import replay as run_replay
from feedrank.service.runtime.replay import verify as run_verify
from feedrank.service.runtime.trials import Job, Lessons, run_jobs
from feedrank.service.store import Store, StoreSignal, open_store

T = TypeVar("T")
ROWS = 20
DIED = "a worker has died, killed or out of memory. Run it again: with --state FILE it goes on where it was"

replay = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
verify = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
Workers = Annotated[int | None, typer.Option(min=1, help="number of processes; default: one per core")]
Dask = Annotated[str | None, typer.Option(help="scheduler of a Dask cluster: tcp://HOST:PORT")]
Until = Annotated[int | None, typer.Option(min=1, help="stop after this version")]
LearnerArgument = Annotated[str, typer.Argument(help="name of the learner, or an alias")]
StoreUrl = Annotated[str | None, typer.Option("--store", help=FORMS)]


@replay.command()
def _replay(
    learners: Annotated[list[str], typer.Argument(help="names of learners, or aliases")],
    spec: Annotated[
        Path | None, typer.Option(help="JSON file: also rebuild with this spec, and compare")
    ] = None,
    until: Until = None,
    workers: Workers = None,
    dask: Dask = None,
    state: Annotated[
        Path | None,
        typer.Option(help="file for results; an interrupted replay of several learners continues from it"),
    ] = None,
    store: StoreUrl = None,
) -> None:
    """Rebuild learners from their logs, optionally with another spec. Nothing is saved.

    One learner uses one core; several learners use several cores, or the workers of a Dask cluster, which open the
    store themselves. For a single learner, the learning curve is shown.
    """

    async def alone(source: Store) -> Replay:
        with bar("events") as progress:
            return await run_replay(source, learners[0], spec=other(), until=until, progress=progress)

    async def several(source: Store) -> list[Job]:
        url = Settings.from_env(store=store).store
        return [await replay_job(source, url, name, other(), until) for name in learners]

    def other() -> JSON | None:
        return None if spec is None else orjson.loads(spec.read_bytes())

    if len(learners) == 1 and dask is None and state is None:
        show(run(store, alone))
        return
    jobs = run(store, several)
    try:
        with executor(workers, dask) as pool, bar("learners") as progress:
            summaries = run_jobs(jobs, pool, state, progress)
    except (ServiceError, StoreSignal, ValueError, OSError) as error:
        print(f"feedrank: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    for summary in summaries:
        print(f"{summary['name']}: versions {summary['first']} to {summary['last']}")
        show_summary(summary)


@verify.command()
def _verify(
    learners: Annotated[list[str] | None, typer.Argument(help="names of learners; default: all")] = None,
    store: StoreUrl = None,
) -> None:
    """Check that every log is undamaged, and that every snapshot equals the state rebuilt from its log."""

    async def body(source: Store) -> list[Report]:
        with bar("learners") as progress:
            return await run_verify(source, learners or None, progress=progress)

    reports = run(store, body)
    for report in reports:
        for problem in (*report.problems, *report.notes):
            print(f"{report.name}: {problem}")
    bad = sum(bool(report.problems) for report in reports)
    print(
        f"{len(reports)} learners, {sum(r.version for r in reports)} events: {f'{bad} with problems' if bad else 'sound'}"
    )
    raise typer.Exit(1 if bad else 0)


def run(url: str | None, body: Callable[[Store], Awaitable[T]]) -> T:
    """Open the store, run, close; what cannot be done is one line."""
    # Events are plain data in large numbers and leave no cycles: they are looked through for garbage seldom.
    gc.freeze()
    gc.set_threshold(50_000)

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
def executor(workers: int | None, dask: str | None) -> Iterator[Executor]:
    """A pool of processes, or the workers of a Dask cluster. One that dies is an OSError: no trace, and a way on."""
    # Weights must not depend on how many threads a product is shared among.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if dask is None:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            try:
                yield pool
            except (BrokenExecutor, MemoryError):
                raise ChildProcessError(DIED) from None
        return
    try:
        from distributed import Client, KilledWorker  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError:
        raise ValueError("a Dask cluster needs distributed; run: pip install 'feedrank[dask]'") from None
    with Client(dask, set_as_default=False) as client:  # type: ignore[no-untyped-call]
        try:
            yield client.get_executor(pure=False)
        except (KilledWorker, CancelledError, MemoryError):
            raise ChildProcessError(DIED) from None


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
    show_summary(result.summary())


def show_summary(summary: JSON) -> None:
    """One line for each spec."""
    for name, done in summary["folds"].items():
        print(
            f"{name} ({done['algorithm']}): {done['rounds']} rounds, {done['mistakes']} mistakes, "
            f"mean loss {done['mean_loss']}, fingerprint {done['fingerprint']}"
        )
    if summary["refused"]:
        print(f"{summary['refused']} events do not fit the other spec and were left out")


def points(fold: LearnerState) -> dict[int, JSON]:
    return {point["rounds"]: point for point in fold.history()}


def counted(lessons: Lessons, specs: int) -> str:
    """What was learned from, in a line."""
    return f"{lessons.name}: {lessons.count} events under {specs} specs"
