"""`feedrank evaluate`: what other specs would have lost or earned on a log, on all cores or on a Dask cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table

from feedrank import learners
from feedrank.service.contract.faults import ServiceError
from feedrank.service.contract.json_types import JSON
from feedrank.service.experiments import evaluation
from feedrank.service.runtime.catalogue import Catalogue
from feedrank.service.runtime.folding import PAGE
from feedrank.service.runtime.trials import Job, Lessons, key_of, renames_of, run_jobs
from feedrank.service.runtime.views import audit
from feedrank.service.store import Store

from .rebuild import Dask, LearnerArgument, StoreUrl, Until, Workers, bar, counted, executor, run
from .sweep import Form

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def evaluate(
    learner: LearnerArgument,
    spec: Annotated[
        list[Path], typer.Option(help="JSON file with a spec or a list of specs; may be repeated")
    ],
    measure: Annotated[
        str | None, typer.Option(help="measure to compare; default: the learner's loss")
    ] = None,
    confidence: Annotated[float, typer.Option(help="confidence of the intervals")] = 0.95,
    until: Until = None,
    workers: Workers = None,
    dask: Dask = None,
    state: Annotated[
        Path | None, typer.Option(help="file for results; an interrupted evaluation continues from it")
    ] = None,
    form: Form = "table",
    store: StoreUrl = None,
) -> None:
    """Estimate what other specs would have lost or earned on a learner's log, as `POST .../evaluate`, without its limit.

    One spec uses one core; several specs use several cores.
    """

    async def body(opened: Store) -> Lessons:
        return await collect(opened, learner, until)

    lessons = run(store, body)
    try:
        evaluation.confidence_of({"confidence": confidence})
        specs = [each for path in spec for each in read(path)]
        requests: list[JSON] = [{"spec": each, "confidence": confidence} for each in specs]
        if measure is not None:
            requests = [{**request, "measure": measure} for request in requests]
        with executor(workers, dask) as pool, bar("specs") as progress:
            replies = run_jobs(jobs(lessons, requests), pool, state, progress)
    except (ServiceError, ValueError, OSError) as error:
        print(f"feedrank evaluate: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    show(lessons, specs, replies, form)
    if all("problem" in reply for reply in replies):
        raise typer.Exit(1)


def read(path: Path) -> list[JSON]:
    """The specs of a file."""
    value = orjson.loads(path.read_bytes())
    specs = value if isinstance(value, list) else [value]
    if not specs or not all(isinstance(each, dict) for each in specs):
        raise ValueError(f"{path} must contain a spec or a list of specs")
    return specs


async def collect(store: Store, name: str, until: int | None = None) -> Lessons:
    """The feedback that a learner's log still has, one event as `GET .../events` shows it a line."""
    entry = await Catalogue(store, 0).resolve(name)
    head = await store.head(entry.log)
    last = head.version if until is None else min(until, head.version)
    lines: list[bytes] = []
    renames = await renames_of(store, entry)
    at = max(0, head.floor - 1)
    while at < last:
        entries = await store.read(entry.log, at, min(PAGE, last - at))
        if not entries:
            break
        shown = (event for event in map(audit, entries) if evaluation.teaches(event))
        lines += [orjson.dumps(evaluation.by_new_names(event, renames)) for event in shown]
        at = entries[-1].version
    spec = learners.build(entry.spec, renames).spec
    return Lessons(entry.name, spec, b"\n".join(lines), len(lines), renames)


def jobs(lessons: Lessons, requests: list[JSON]) -> list[Job]:
    """One job for each request."""
    name, own, lines, digest = lessons.name, lessons.spec, lessons.lines, lessons.digest
    return [
        Job(
            key_of("evaluate", name, own, digest, request),
            evaluation.evaluate,
            (name, own, lessons.renames, request, lines),
        )
        for request in requests
    ]


def show(lessons: Lessons, specs: list[JSON], replies: list[JSON], form: str) -> None:
    """One row for each spec, in the order of the files."""
    if form == "json":
        for spec, reply in zip(specs, replies, strict=True):
            print(orjson.dumps({"spec": spec, **reply}).decode())
        return
    table = Table("measure", "better", "rounds", "its own", "the other", "interval", "spec")
    for spec, reply in zip(specs, replies, strict=True):
        text = orjson.dumps(spec).decode()
        if "problem" in reply:
            table.add_row("", "", "", "", "", "", f"{text}: {reply['problem']}")
            continue
        row = [reply["measure"], reply["better"], str(reply["rounds"])]
        row += [number(reply[whose]["mean"]) for whose in ("own", "other")]
        table.add_row(*row, interval(reply), text)
    Console().print(table)
    print(counted(lessons, len(specs)))


def interval(reply: JSON) -> str:
    """Of the difference: the other minus its own."""
    return f"{number(reply['difference'])} in [{number(reply['lower'])}, {number(reply['upper'])}]"


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
