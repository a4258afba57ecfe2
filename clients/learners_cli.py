"""`feedrank learners`: every call on a learner from the command line, as JSON or as a table."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from .client import Client
from .connection import LearnerArgument, json_object, with_client
from .payloads import JSON

app = typer.Typer(help="Create learners, predict, send feedback.", no_args_is_help=True, add_completion=False)

JsonText = Annotated[str, typer.Argument(help="JSON, or `-` to read it from standard input")]


class OutputFormat(StrEnum):
    """How a reply is shown."""

    TABLE = "table"
    JSON = "json"


Format = Annotated[OutputFormat, typer.Option("--format", help="output format")]


def parsed(text: str) -> JSON:
    """An object given on the command line."""
    return json_object(sys.stdin.read() if text == "-" else text)


def show(reply: Any, form: OutputFormat) -> None:
    """A reply as JSON, or its fields as a table."""
    plain: Any = asdict(reply) if is_dataclass(reply) and not isinstance(reply, type) else reply
    if form is OutputFormat.JSON:
        print(json.dumps(plain, ensure_ascii=False, default=str))
        return
    table = Table(show_header=False, box=None)
    for name, value in without_nulls(plain).items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        table.add_row(name, text if len(text) <= 400 else text[:400] + " …")
    Console().print(table)


def without_nulls(value: Any) -> Any:
    """The same without the fields that say nothing here: a reply has those of every task."""
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list | tuple) else value


@app.command()
@with_client("learners")
def create(client: Client, name: LearnerArgument, spec: JsonText, form: Format = OutputFormat.TABLE) -> None:
    """Create a learner from a spec: '{"task": "multiclass"}'."""
    show(client.create(name, parsed(spec)), form)


@app.command("list")
@with_client("learners")
def list_learners(client: Client, form: Format = OutputFormat.TABLE) -> None:
    """List all learners that the key may see."""
    rows: list[JSON] = []
    cursor = None
    while True:
        page = client.learners(limit=1000, cursor=cursor)
        rows += [asdict(learner) for learner in page.learners]
        cursor = page.next
        if cursor is None:
            break
    if form is OutputFormat.JSON:
        print(json.dumps(rows))
        return
    table = Table("name", "task", "algorithm", "version")
    for row in rows:
        table.add_row(row["name"], row["task"], row["algorithm"], str(row["version"]))
    Console().print(table)


@app.command("show")
@with_client("learners")
def show_learner(client: Client, name: LearnerArgument, form: Format = OutputFormat.TABLE) -> None:
    """Show the spec, version, labels and progress of a learner."""
    show(client.learner(name), form)


@app.command()
@with_client("learners")
def predict(
    client: Client, name: LearnerArgument, request: JsonText, form: Format = OutputFormat.TABLE
) -> None:
    """Predict for an instance: '{"features": ["cheap", "pills"]}'."""
    show(client.predict(name, parsed(request)), form)


@app.command()
@with_client("learners")
def feedback(
    client: Client, name: LearnerArgument, request: JsonText, form: Format = OutputFormat.TABLE
) -> None:
    """Learn from an event: '{"features": ["cheap", "pills"], "label": "junk"}'."""
    show(client.feedback(name, parsed(request)), form)


@app.command()
@with_client("learners")
def retract(
    client: Client,
    name: LearnerArgument,
    feedback_id: Annotated[str | None, typer.Option(help="id of the feedback")] = None,
    prediction_id: Annotated[
        str | None, typer.Option(help="id of the prediction that the feedback was about")
    ] = None,
    form: Format = OutputFormat.TABLE,
) -> None:
    """Retract an event: the learner becomes what it would be without it."""
    if (feedback_id is None) == (prediction_id is None):
        raise typer.BadParameter("give --feedback-id or --prediction-id")
    show(client.retract(name, feedback_id=feedback_id, prediction_id=prediction_id), form)


@app.command()
@with_client("learners")
def erase(
    client: Client,
    name: LearnerArgument,
    feedback_id: Annotated[str | None, typer.Option(help="id of the feedback")] = None,
    prediction_id: Annotated[str | None, typer.Option(help="id of the prediction")] = None,
    subject: Annotated[str | None, typer.Option(help="whose data: all of it in this learner")] = None,
    form: Format = OutputFormat.TABLE,
) -> None:
    """Retract events, and remove for good what they held: what stays are checksums."""
    if [feedback_id, prediction_id, subject].count(None) != 2:
        raise typer.BadParameter("give --feedback-id, --prediction-id or --subject")
    show(client.erase(name, feedback_id=feedback_id, prediction_id=prediction_id, subject=subject), form)


@app.command("erase-subject")
@with_client("learners")
def erase_subject(
    client: Client,
    subject: Annotated[str, typer.Argument(help="whose data")],
    form: Format = OutputFormat.TABLE,
) -> None:
    """Erase all that somebody brought, in all learners and experiments that the key may see."""
    show(client.erase_subject(subject), form)


@app.command("rename-label")
@with_client("learners")
def rename_label(
    client: Client,
    name: LearnerArgument,
    old: Annotated[str, typer.Argument(help="label to rename")],
    new: Annotated[str, typer.Argument(help="its new name; another label: the two are merged")],
    form: Format = OutputFormat.TABLE,
) -> None:
    """Rename a label, or merge it into another: the learner becomes what it would be had it always been called so."""
    show(client.rename_label(name, old, new), form)


@app.command()
@with_client("learners")
def snapshot(
    client: Client,
    name: LearnerArgument,
    file: Annotated[Path, typer.Argument(help="file to write, or to read with --restore")],
    restore: Annotated[bool, typer.Option("--restore", help="create a learner from the file")] = False,
) -> None:
    """Write a learner to a portable file, or create a learner from such a file."""
    if restore:
        print(f"{name}: version {client.restore(name, file.read_bytes()).version}")
    else:
        data = client.snapshot(name)
        file.write_bytes(data)
        print(f"{len(data)} bytes in {file}")


@app.command()
@with_client("learners")
def alias(
    client: Client,
    name: Annotated[str, typer.Argument(help="the alias")],
    learner: Annotated[str, typer.Argument(help="the learner it points to from now on")],
) -> None:
    """Create an alias (a second name) of a learner, or point it to another learner."""
    client.alias(name, learner)
    print(f"{name} stands for {learner}")


@app.command()
@with_client("learners")
def delete(
    client: Client,
    name: LearnerArgument,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask for confirmation")] = False,
) -> None:
    """Delete a learner and everything that belongs to it."""
    if not yes:
        typer.confirm(f"Remove {name} with all its events?", abort=True)
    client.delete(name)
    print(f"{name} is removed")
