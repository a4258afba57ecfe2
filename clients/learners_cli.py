"""`feedrank learners`: every call on a learner from the command line, as JSON or as a table."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from .client import Client
from .connection import Key, Server, Store, service
from .exceptions import ClientError
from .payloads import JSON

app = typer.Typer(help="Create learners, ask them, teach them.", no_args_is_help=True, add_completion=False)

Name = Annotated[str, typer.Argument(help="the learner, or an alias of it")]
Body = Annotated[str, typer.Argument(help="JSON, or `-` to read it from standard input")]
Form = Annotated[str, typer.Option("--format", help="`table` or `json`")]


@contextmanager
def connected(server: str | None, store: str | None, key: str | None) -> Iterator[Client]:
    """A client; what a person can mend ends in one line."""
    try:
        with service(server, store, key) as client:
            yield client
    except (ClientError, OSError) as error:
        print(f"feedrank learners: {error}", file=sys.stderr)
        raise typer.Exit(1) from error


def parsed(text: str) -> JSON:
    """An object given on the command line."""
    try:
        value = json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise typer.BadParameter(f"is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise typer.BadParameter("must be an object")
    return value


def show(reply: Any, form: str) -> None:
    """A reply as JSON, or its fields as a table."""
    plain: Any = asdict(reply) if is_dataclass(reply) and not isinstance(reply, type) else reply
    if form == "json":
        print(json.dumps(plain, ensure_ascii=False, default=str))
        return
    table = Table(show_header=False, box=None)
    for name, value in plain.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        table.add_row(name, text if len(text) <= 400 else text[:400] + " …")
    Console().print(table)


@app.command()
def create(
    name: Name, spec: Body, server: Server = None, store: Store = None, key: Key = None, form: Form = "table"
) -> None:
    """Create a learner of a spec: '{"task": "multiclass"}'."""
    with connected(server, store, key) as client:
        show(client.create(name, parsed(spec)), form)


@app.command("list")
def list_learners(server: Server = None, store: Store = None, key: Key = None, form: Form = "table") -> None:
    """All learners that the key may see."""
    with connected(server, store, key) as client:
        rows: list[JSON] = []
        cursor = None
        while True:
            page = client.learners(limit=1000, cursor=cursor)
            rows += [asdict(learner) for learner in page.learners]
            cursor = page.next
            if cursor is None:
                break
    if form == "json":
        print(json.dumps(rows))
        return
    table = Table("name", "task", "algorithm", "version")
    for row in rows:
        table.add_row(row["name"], row["task"], row["algorithm"], str(row["version"]))
    Console().print(table)


@app.command("show")
def show_learner(
    name: Name, server: Server = None, store: Store = None, key: Key = None, form: Form = "table"
) -> None:
    """Spec, version, labels and progress of a learner."""
    with connected(server, store, key) as client:
        show(client.learner(name), form)


@app.command()
def predict(
    name: Name,
    request: Body,
    server: Server = None,
    store: Store = None,
    key: Key = None,
    form: Form = "table",
) -> None:
    """Decide on an instance: '{"features": ["cheap", "pills"]}'."""
    with connected(server, store, key) as client:
        show(client.predict(name, parsed(request)), form)


@app.command()
def feedback(
    name: Name,
    request: Body,
    server: Server = None,
    store: Store = None,
    key: Key = None,
    form: Form = "table",
) -> None:
    """Learn from an event: '{"features": ["cheap", "pills"], "label": "junk"}'."""
    with connected(server, store, key) as client:
        show(client.feedback(name, parsed(request)), form)


@app.command()
def retract(
    name: Name,
    feedback_id: Annotated[str | None, typer.Option(help="id of the feedback")] = None,
    prediction_id: Annotated[str | None, typer.Option(help="id of the prediction that it answered")] = None,
    server: Server = None,
    store: Store = None,
    key: Key = None,
    form: Form = "table",
) -> None:
    """Take an event back: the learner becomes what it would be without it."""
    if (feedback_id is None) == (prediction_id is None):
        raise typer.BadParameter("give --feedback-id or --prediction-id")
    with connected(server, store, key) as client:
        show(client.retract(name, feedback_id=feedback_id, prediction_id=prediction_id), form)


@app.command()
def snapshot(
    name: Name,
    file: Annotated[Path, typer.Argument(help="where the learner is written, or read with --restore")],
    restore: Annotated[bool, typer.Option("--restore", help="make a learner of the file")] = False,
    server: Server = None,
    store: Store = None,
    key: Key = None,
) -> None:
    """Write the whole learner to one portable file, or make a learner of it."""
    with connected(server, store, key) as client:
        if restore:
            print(f"{name} is at version {client.restore(name, file.read_bytes()).version}")
        else:
            data = client.snapshot(name)
            file.write_bytes(data)
            print(f"{len(data)} bytes in {file}")


@app.command()
def alias(
    name: Annotated[str, typer.Argument(help="the second name")],
    learner: Annotated[str, typer.Argument(help="what it stands for from now on")],
    server: Server = None,
    store: Store = None,
    key: Key = None,
) -> None:
    """Let a second name stand for a learner."""
    with connected(server, store, key) as client:
        client.alias(name, learner)
        print(f"{name} stands for {learner}")


@app.command()
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    server: Server = None,
    store: Store = None,
    key: Key = None,
) -> None:
    """Remove a learner and all that belongs to it."""
    if not yes:
        typer.confirm(f"Remove {name} with all its events?", abort=True)
    with connected(server, store, key) as client:
        client.delete(name)
        print(f"{name} is removed")
