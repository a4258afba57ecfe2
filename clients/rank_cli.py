"""`feedrank rank`: train on, and evaluate with, LETOR files."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from .client import Client
from .connection import LearnerName, json_object, text_or_json, with_client
from .exceptions import NotFound, Refused
from .letor import LetorError, Query, read
from .payloads import JSON
from .ranking_measures import Means
from .replies import Prediction

app = typer.Typer(
    help="Learn to rank from LETOR files, and measure the ranking.",
    no_args_is_help=True,
    add_completion=False,
)

Files = Annotated[
    list[Path],
    typer.Argument(help="lines `grade qid:Q 1:v 2:v ...`, plain or gzip", exists=True, dir_okay=False),
]
Cutoff = Annotated[int, typer.Option(min=1, help="cutoff k of NDCG and ERR")]
Most = Annotated[float, typer.Option(min=1, help="highest possible grade, for ERR")]
FormatOption = Annotated[str, typer.Option("--format", help="`text` or `json`")]


@app.command()
@with_client("rank", LetorError)
def train(
    client: Client,
    files: Files,
    learner: LearnerName = "letor",
    spec: Annotated[str, typer.Option(help='spec of a new learner, as JSON: {"algorithm": "slam"}')] = "{}",
    cutoff: Cutoff = 10,
    max_grade: Most = 4.0,
    form: FormatOption = "text",
) -> None:
    """Learn in one pass: rank each list, measure the ranking, then learn from the list."""
    parameters = json_object(spec)
    try:
        client.learner(learner)
    except NotFound:
        client.create(learner, {"task": "subset-ranking", **parameters})
    _run(client, learner, files, Means(cutoff, max_grade), learn=True, form=form)


@app.command()
@with_client("rank", LetorError)
def evaluate(
    client: Client,
    files: Files,
    learner: LearnerName = "letor",
    cutoff: Cutoff = 10,
    max_grade: Most = 4.0,
    form: FormatOption = "text",
) -> None:
    """Rank every list and measure the ranking, without learning."""
    _run(client, learner, files, Means(cutoff, max_grade), learn=False, form=form)


def _run(client: Client, name: str, files: list[Path], means: Means, *, learn: bool, form: str) -> None:
    text_or_json(form)
    waiting: deque[Query] = deque()
    for line in client.stream(name, _entries(_listed(files, means), waiting, learn)):
        if isinstance(line, Refused):
            raise line
        if isinstance(line, Prediction):
            query = waiting.popleft()
            means.add(query.ranked(entry.key for entry in line.ranking))
    _show(means, client.learner(name).version, form)


def _entries(queries: Iterable[Query], waiting: deque[Query], learn: bool) -> Iterator[JSON]:
    """The lines of a stream; `waiting` holds the lists whose ranking has not come back."""
    for query in queries:
        waiting.append(query)
        instance = query.instance
        yield {"predict": {**instance, "remember": False}}
        if learn:
            yield {"feedback": {**instance, "relevance": query.relevance}}


def _advance(progress: Progress, task: TaskID, before: int, now: int) -> None:
    progress.update(task, completed=before + now)


def _listed(files: list[Path], means: Means) -> Iterator[Query]:
    """The lists of all files, with a bar of the bytes read."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    sizes = [file.stat().st_size for file in files]
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("reading", total=sum(sizes))
        done = 0
        for file, size in zip(files, sizes, strict=True):
            for query in read(file, partial(_advance, progress, task, done)):
                shown = means.of(means.lists).get(f"NDCG@{means.cutoff}")
                if shown is not None:
                    progress.update(task, description=f"{means.lists} lists, NDCG@{means.cutoff} {shown:.4f}")
                yield query
            done += size


def _show(means: Means, version: int, form: str) -> None:
    over_all, over_judged = means.of(means.lists), means.of(means.judged)
    if form == "json":
        counts = {"lists": means.lists, "judged": means.judged, "version": version}
        print(json.dumps({**counts, "all": over_all, "over_judged": over_judged}))
        return
    table = Table("", f"all {means.lists} lists", f"the {means.judged} with something relevant")
    for name, value in over_all.items():
        table.add_row(name, f"{value:.4f}", f"{over_judged[name]:.4f}")
    Console().print(table)
    print(f"the learner is at version {version}")
