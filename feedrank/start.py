"""`feedrank start FILE`: from a file of one's own to a first prediction, in one command.

It finds out what the columns are, says so, learns from every row that has a label, predicts those that have none, and ends
with the lines that predict the next row.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import typer

from feedrank.clients.client import Client
from feedrank.clients.connection import Key, Server, Store, one_line, service
from feedrank.clients.exceptions import NotFound
from feedrank.clients.history.formats import Source, format_of, reader_of
from feedrank.clients.history.predictions import PredictedLine, answers, least_sure_first
from feedrank.clients.history.tables import Columns, FormatError, Line
from feedrank.clients.history.transfer import event_id
from feedrank.clients.history_cli import import_lines, show_report
from feedrank.clients.payloads import JSON, Payload
from feedrank.table_roles import Table, recognize

app = typer.Typer(add_completion=False)

STORE = "sqlite:feedrank.db"  # that of `feedrank serve` too
SAMPLE = 1_000  # rows that are looked at
SHOWN = 10
LONGEST = 160  # characters of a text in the lines to try
MAIL = re.compile(rb"From \S+.*\d{4}\r?$")
TABLES = ("csv", "jsonl", "parquet")


@app.command()
def start(
    file: Annotated[Path, typer.Argument(help="CSV, TSV, JSONL or Parquet, also gzip")],
    learner: Annotated[str | None, typer.Option(help="name of the learner; default: the file's name")] = None,
    truth: Annotated[str | None, typer.Option(help="the column that is to be predicted")] = None,
    several: Annotated[str, typer.Option(help="separator, if the truth is a set of labels")] = "",
    role: Annotated[
        list[str] | None, typer.Option(help="correct a role: `column=role`; may be repeated")
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="keep blanks around labels and names")] = False,
    form: Annotated[str | None, typer.Option("--format", help=", ".join(TABLES))] = None,
    server: Server = None,
    store: Store = None,
    key: Key = None,
) -> None:
    """Learn from a table of your own, predict its rows without a label, and print the lines that predict the next row."""
    if not server and not store:
        store = STORE
    with one_line("start", FormatError):
        refuse_mail(file)
        table, rows = look(file, form, truth, several, exact)
        correct(table, role or [])
        print(
            f"{file.name}: {len(rows)} rows looked at"
            if len(rows) < SAMPLE
            else f"{file.name}: looked at {SAMPLE} rows"
        )
        for column, found in table.input.items():
            print(f"  {found:<9} {column}")
        for note in table.notes:
            print(f"  {note}")
        with service(server, store, key) as client:
            name = ensure(client, learner or name_of(file), table)
            columns = Columns(table.truth, several=several, exact=exact, roles=table.input)
            unlabelled, last = learn(client, name, file, form, columns)
            if unlabelled:
                show(file, table, least_sure_first(answers(client, name, unlabelled, remember=True)))
            print(next_steps(name, last, server, store, key))


def refuse_mail(file: Path) -> None:
    """Mail has commands of its own."""
    if not file.exists():
        raise FormatError(f"there is no file {file}")
    is_folder = file.is_dir()
    if (
        is_folder
        and not (file / "cur").is_dir()
        and not any(path.suffix == ".eml" for path in file.iterdir())
    ):
        raise FormatError(f"{file} is a folder: name one table")
    if not is_folder:
        with file.open("rb") as opened:
            if not MAIL.match(opened.readline(1000)):
                return
    raise FormatError(f"{file} is mail: `feedrank mail train` learns from it, see docs/mail.md")


def look(
    file: Path, form: str | None, truth: str | None, several: str, exact: bool
) -> tuple[Table, list[JSON]]:
    """The roles of the columns, and the rows that show them."""
    if (form or format_of(file)) not in TABLES:
        raise FormatError(
            f"start reads tables: {', '.join(TABLES)}. `feedrank import` reads the other formats"
        )
    rows: list[JSON] = []

    class Sample(Columns):
        """Columns that only look on."""

        def check(self, names: Sequence[str]) -> None:
            if not names:
                raise FormatError(f"{file} is empty")

        def line(self, number: int, row: Payload) -> Line:
            rows.append(dict(row) if exact else {name.strip(): value for name, value in row.items()})
            return Line(number)

    for _ in islice(reader_of(file, form)(Source(file, Sample(exact=exact))), SAMPLE):
        pass
    return recognize(rows, truth, several), rows


def correct(table: Table, roles: Iterable[str]) -> None:
    """What the person said of a column."""
    for said in roles:
        column, equals, role = said.rpartition("=")
        if not equals or column not in table.input:
            raise FormatError(f"--role {said}: write column=role; there are {', '.join(table.input)}")
        table.input[column] = role


def name_of(file: Path) -> str:
    """A learner's name made of a file's."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", file.name.split(".")[0]).strip("._-")[:100]
    return name or "table"


def ensure(client: Client, name: str, table: Table) -> str:
    """Make the learner; one that is there must read the same columns."""
    spec = {"task": table.task, "input": table.input}
    try:
        known = client.learner(name).spec.get("input")
    except NotFound:
        client.create(name, spec)
        return name
    if known != table.input:
        raise FormatError(
            f"there is a learner {name!r} that reads other columns: name a new one with --learner"
        )
    return name


def learn(
    client: Client, name: str, file: Path, form: str | None, columns: Columns
) -> tuple[list[Line], JSON]:
    """Import the file; the rows without a label, and the last row, in the shape in which the next one will come."""
    source = Source(file, columns)
    unlabelled: list[Line] = []
    last: JSON = {}

    def noted() -> Iterator[Line]:
        for line in reader_of(file, form)(source):
            if line.body is not None:
                last.clear()
                last.update(line.body["row"])
            if line.unlabelled:
                unlabelled.append(replace(line, id=event_id(file.name, line)))
            yield line

    lines = noted()
    first = list(islice(lines, 1))
    show_report(import_lines(client, name, chain(first, lines), source, file.name), source)
    return unlabelled, last


def show(file: Path, table: Table, predicted: Sequence[PredictedLine]) -> None:
    """The rows without a label, least sure first."""
    print(f"\nRows without {table.truth!r}, the least sure first:")
    for answer in predicted[:SHOWN]:
        sure = "" if answer.probability is None else f"{answer.probability:4.0%}"
        print(f"  line {answer.line.number:<7} {sure:>4}  {answer.shown}")
    if len(predicted) > SHOWN:
        print(f"  and {len(predicted) - SHOWN} more")


def next_steps(name: str, row: JSON, server: str | None, store: str | None, key: str | None) -> str:
    """The lines that predict the next row, and those that teach what was right."""
    example = {column: value[:LONGEST] if isinstance(value, str) else value for column, value in row.items()}
    base = server or "http://127.0.0.1:8000"
    header = " -H 'Authorization: Bearer KEY'" if key else ""
    body = json.dumps({"row": example}, ensure_ascii=False)
    lines = ["\nPredict the next row:"]
    if not server:
        serve = "" if store == STORE else f" --store {store}"
        lines.append(f"  feedrank serve{serve} &")
    lines.append(f"  curl -s {base}/v1/learners/{name}/predict{header} -d {shlex.quote(body)}")
    lines.append("\nor in Python:")
    opened = f'Client("{base}")' if server or not store else f'Client(transport=Embedded("{store}"))'
    lines.append("  from feedrank.clients import Client")
    if not server:
        lines.append("  from feedrank.embedded import Embedded")
    lines.append(
        f"  with {opened} as client: print(client.predict({name!r}, {{'row': {example!r}}}).ranking[:3])"
    )
    lines.append(
        f"\nA whole file: feedrank predict {name} FILE -o OUT.csv. What was right goes to .../{name}/feedback."
    )
    return "\n".join(lines)
