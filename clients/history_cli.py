"""`feedrank import` and `feedrank export`: learn from a file of events, write a log to a file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from .client import Client
from .connection import LearnerArgument, LearnerName, json_object, with_client
from .exceptions import NotFound
from .history.formats import READERS, Source, format_of, reader_of
from .history.predictions import PredictedLine, answers, write_answers
from .history.tables import Columns, FormatError, Line
from .history.transfer import VIEWS, ImportReport, by_new_labels, events, load, write
from .letor import LetorError
from .payloads import JSON

import_app = typer.Typer(add_completion=False)
predict_app = typer.Typer(add_completion=False)
export_app = typer.Typer(add_completion=False)
HINTED, HOPELESS = 50, 0.95  # events, and a share of wrong ones, from which a hint is given
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
    exact: Annotated[bool, typer.Option("--exact", help="keep blanks around labels and names")] = False,
    task: Annotated[str | None, typer.Option(help="task of a new learner")] = None,
    spec: Annotated[str, typer.Option(help="spec of a new learner, as JSON")] = "{}",
) -> None:
    """Learn from a file of past events. Each line counts once, so an interrupted import can be run again."""
    asked = json_object(spec) | ({"task": task} if task else {})
    roles = _spec_of(client, learner, asked).get("input", {})
    columns = Columns(truth, tuple(features or ()), tuple(text or ()), id, several, exact, roles=roles)
    if roles and (features or text):
        raise FormatError(f"{learner} reads records by its own input: leave --features and --text out")
    reading = Source(file, columns)
    lines = reader_of(file, form)(reading)
    first = list(islice(lines, 1))  # a file that cannot be read makes no learner
    _ensure(client, learner, asked)
    report = import_lines(client, learner, chain(first, lines), reading, source or file.name)
    show_report(report, reading)
    print(f"{learner} is at version {client.learner(learner).version}")


def _spec_of(client: Client, learner: str, asked: JSON) -> JSON:
    """The spec of the learner, or, where there is none yet, that of the one to be made."""
    try:
        return client.learner(learner).spec
    except NotFound:
        return asked


def _ensure(client: Client, learner: str, spec: JSON) -> None:
    try:
        client.learner(learner)
    except NotFound:
        if "task" not in spec:
            raise FormatError(f"there is no learner {learner!r}: name the --task of a new one") from None
        client.create(learner, spec)


def import_lines(
    client: Client, learner: str, lines: Iterator[Line], reading: Source, source: str
) -> ImportReport:
    """Learn from the lines, with a bar of progress."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    report = ImportReport()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("0 learned", total=reading.path.stat().st_size)
        for report in load(client, learner, lines, source):
            progress.update(bar, completed=reading.bytes_read, description=f"{report.learned} learned")
    return report


def show_report(report: ImportReport, reading: Source) -> None:
    """What was recognized in the file, what was learned of it, and how well beside two guesses."""
    for note in filter(None, [*reading.notes, reading.columns.note()]):
        print(f"{reading.path.name}: {note}")
    print(f"{report.learned} learned, {report.duplicates} known already, {report.refused} refused")
    if report.unlabelled:
        print(f"{report.unlabelled} without a label: rows to predict, with `feedrank predict`")
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
    guesses = report.baselines
    if guesses.rounds:
        commonest, last = guesses.commonest_wrong / guesses.rounds, guesses.last_wrong / guesses.rounds
        print(f'  beside it: "always the commonest" {commonest:.4f}, "as last time" {last:.4f}')
    if report.learned >= HINTED and report.loss >= HOPELESS * report.learned:
        print(
            "nearly every prediction was wrong: is --truth the right column, and are texts read as --text, not as one"
            " category each?"
        )


@predict_app.command()
@with_client("predict", FormatError, LetorError)
def predict_file(
    client: Client,
    learner: LearnerArgument,
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="the rows, plain or gzip")],
    output: Annotated[Path, typer.Option("--output", "-o", help="`.csv`, `.tsv`, `.jsonl` or `.parquet`")],
    features: Annotated[
        list[str] | None, typer.Option(help="column to use as a feature, as in `import`")
    ] = None,
    text: Annotated[list[str] | None, typer.Option(help="column of raw text, as in `import`")] = None,
    truth: Annotated[str, typer.Option(help="column that holds labels, which is not used")] = "label",
    id: Annotated[str | None, typer.Option(help="column that identifies a row, which is not used")] = None,
    form: Annotated[
        str | None, typer.Option("--format", help=f"{', '.join(READERS)}; default: by the file's name")
    ] = None,
    remember: Annotated[
        bool, typer.Option("--remember", help="keep the predictions, so that feedback can name them")
    ] = False,
) -> None:
    """Predict every row of a file. The output has the columns of the file, and those of the prediction."""
    roles = client.learner(learner).spec.get("input", {})
    columns = Columns(truth, tuple(features or ()), tuple(text or ()), id, roles=roles, needs_truth=False)
    source = Source(file, columns)
    strange = 0

    def counted() -> Iterator[PredictedLine]:
        nonlocal strange
        for answer in answers(client, learner, reader_of(file, form)(source), remember):
            strange += answer.prediction is not None and answer.prediction.known == 0
            yield answer

    count = write_answers(counted(), output)
    for note in source.notes:
        print(f"{file.name}: {note}")
    print(f"{count} rows in {output}")
    if strange:
        print(
            f"{strange} of them hold nothing that {learner} has learned from: are the columns those it was taught?"
        )


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
    log, renames = events(client, learner), client.learner(learner).renames
    if what != "events":  # which shows the labels as they were sent, and the renames
        log = by_new_labels(log, renames)
    print(f"{write(log, VIEWS[what], file, form)} rows in {file}")
