"""`feedrank import` and `feedrank export`: learn from a file of events, write a log to a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from .client import Client
from .connection import LearnerName, with_client
from .exceptions import NotFound
from .history.formats import READERS, Columns, FormatError, Line, Source, format_of
from .history.transfer import VIEWS, ImportReport, events, load, write
from .letor import LetorError
from .payloads import JSON

import_app = typer.Typer(add_completion=False)
export_app = typer.Typer(add_completion=False)
BLOCKS = "▁▂▃▄▅▆▇█"


@import_app.command()
@with_client("import", FormatError, LetorError)
def load_history(
    client: Client,
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="the file, plain or gzip")],
    learner: LearnerName,
    truth: Annotated[str, typer.Option(help="column with the right label")] = "label",
    features: Annotated[
        list[str] | None, typer.Option(help="column to use as a feature; default: all; may be repeated")
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(help="column of raw text; then other columns are not used; may be repeated"),
    ] = None,
    id: Annotated[
        str | None, typer.Option(help="column that identifies a row; default: the line number")
    ] = None,
    several: Annotated[str, typer.Option(help="separator, if the truth is a set of labels")] = "",
    form: Annotated[
        str | None, typer.Option("--format", help=f"{', '.join(READERS)}; default: by the file's name")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="first part of each feedback id; default: the file's name")
    ] = None,
    task: Annotated[str | None, typer.Option(help="task of a new learner")] = None,
    spec: Annotated[str, typer.Option(help="spec of a new learner, as JSON")] = "{}",
) -> None:
    """Learn from a file of past events. Each line counts once, so an interrupted import can be run again."""
    columns = Columns(truth, tuple(features or ()), tuple(text or ()), id, several)
    name = form or format_of(file)
    if name not in READERS:
        raise FormatError(f"there is no format {name!r}; there are {', '.join(READERS)}")
    reading = Source(file, columns)
    lines = READERS[name](reading)
    first = list(islice(lines, 1))  # a file that cannot be read makes no learner
    _ensure(client, learner, _object(spec) | ({"task": task} if task else {}))
    report = _load(client, learner, chain(first, lines), reading, source or file.name)
    _print(report, client, learner)


def _object(text: str) -> JSON:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise FormatError(f"--spec is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise FormatError("--spec must be an object")
    return value


def _ensure(client: Client, learner: str, spec: JSON) -> None:
    try:
        client.learner(learner)
    except NotFound:
        if "task" not in spec:
            raise FormatError(f"there is no learner {learner!r}: name the --task of a new one") from None
        client.create(learner, spec)


def _load(client: Client, learner: str, lines: Iterator[Line], reading: Source, source: str) -> ImportReport:
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    report = ImportReport()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("0 learned", total=reading.path.stat().st_size)
        for report in load(client, learner, lines, source):
            progress.update(bar, completed=reading.bytes_read, description=f"{report.learned} learned")
    return report


def _print(report: ImportReport, client: Client, learner: str) -> None:
    print(f"{report.learned} learned, {report.duplicates} known already, {report.refused} refused")
    for number, reason in report.refusals:
        print(f"  line {number}: {reason}")
    if report.refused > len(report.refusals):
        print(f"  and {report.refused - len(report.refusals)} more")
    if report.curve:
        top = max(*report.curve, 1e-12)
        bars = "".join(BLOCKS[min(7, int(8 * value / top))] for value in report.curve)
        print(
            f"loss {bars} from {report.curve[0]:.3f} to {report.curve[-1]:.3f}, mean {report.loss / report.learned:.4f}"
        )
    print(f"{learner} is at version {client.learner(learner).version}")


@export_app.command()
@with_client("export", FormatError)
def save_history(
    client: Client,
    file: Annotated[Path, typer.Argument(dir_okay=False, help="`.jsonl` or `.parquet`")],
    learner: LearnerName,
    what: Annotated[str, typer.Option(help=f"{', '.join(VIEWS)}")] = "events",
) -> None:
    """Write a learner's log to a file: all events, the training set, or the predictions with their feedback."""
    if what not in VIEWS:
        raise FormatError(f"there is no view {what!r}; there are {', '.join(VIEWS)}")
    form = format_of(file)
    if form not in ("jsonl", "parquet"):
        raise FormatError("a log is written as .jsonl or .parquet")
    client.learner(learner)
    print(f"{write(events(client, learner), VIEWS[what], file, form)} rows in {file}")
