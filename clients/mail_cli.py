"""`feedrank mail`: train, rank, watch, undo."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from .client import Client
from .errors import ClientError, NotFound
from .mail.account import PASSWORD, Account, AccountError, Secret, connect
from .mail.certainty import WINDOW, Certainty
from .mail.choices import is_choice
from .mail.extract import features
from .mail.imap_source import fetch
from .mail.inbox import Inbox
from .mail.loop import watch as watch_account
from .mail.page import serving
from .mail.sources import Found, SourceError, find
from .mail.state import State
from .mail.training import Curve
from .mail.training import train as learn
from .mail.undo import undo as put_back
from .mail.watch import Settings
from .replies import Prediction
from .serving import Key, Server, Store, service

app = typer.Typer(
    help="Sort mail into folders, learning from every move.", no_args_is_help=True, add_completion=False
)
out, log = Console(soft_wrap=True, highlight=False), Console(stderr=True, soft_wrap=True, highlight=False)

HOME = Path(typer.get_app_dir("feedrank"))
Name = Annotated[str, typer.Option(help="the learner")]
StateFile = Annotated[Path, typer.Option(help="what was seen and done, kept between runs")]
Command = Annotated[str | None, typer.Option(help="command that prints the password or token")]
PasswordFile = Annotated[Path | None, typer.Option(help=f"file with it; else it is taken from {PASSWORD}")]
OAuth = Annotated[bool, typer.Option("--oauth", help="it is an XOAUTH2 token, not a password")]
Exclude = Annotated[
    list[str] | None, typer.Option(help="pattern of folders never learned, e.g. 'Lists/*'; repeat it")
]


@contextmanager
def told() -> Iterator[None]:
    """What a person can mend ends in one line, not in a stack trace."""
    try:
        yield
    except (ClientError, AccountError, SourceError, OSError, ValueError) as error:
        log.print(f"feedrank mail: {error}", style="red", markup=False)
        raise typer.Exit(1) from error


@app.command()
def train(
    source: Annotated[str, typer.Argument(help="Maildir, mbox, directory of messages, or imaps://user@host")],
    server: Server = None,
    store: Store = None,
    key: Key = None,
    learner: Name = "mail",
    state: StateFile = HOME / "mail.db",
    exclude: Exclude = None,
    password_command: Command = None,
    password_file: PasswordFile = None,
    oauth: OAuth = False,
) -> None:
    """Learn from folders as they are, in date order. Run it again to go on where it stopped."""
    with told(), service(server, store, key) as client, State(state, learner=learner) as record:
        if source.startswith(("imap://", "imaps://")):
            account = Account.of(source, Secret(password_command, password_file, oauth))
            with tempfile.TemporaryDirectory() as spool, connect(account) as imap:
                _train(client, record, list(_counted(fetch(imap, record, Path(spool), exclude or ()))))
        else:
            _train(
                client,
                record,
                [one for one in _counted(find(source)) if is_choice(one.folder, exclude or ())],
            )


def _counted(found: Iterator[Found]) -> Iterator[Found]:
    with log.status("reading") as status:
        for number, one in enumerate(found, 1):
            if number % 100 == 0:
                status.update(f"reading: {number} messages")
            yield one


def _train(client: Client, record: State, found: list[Found]) -> None:
    columns = (TextColumn("learning"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=log) as progress:
        task = progress.add_task("learning", total=len(found))
        curve = learn(client, record, found, lambda count: progress.advance(task, count))
    _show(curve, len({one.folder for one in found}))


def _show(curve: Curve, folders: int) -> None:
    out.print(f"{len(curve.mistakes)} messages learned from {folders} folders")
    if not curve.mistakes:
        return
    table = Table("messages", "mistakes so far", "since the line above", "")
    for rounds, total, recent in curve.points():
        table.add_row(str(rounds), f"{total:.1%}", f"{recent:.1%}", "█" * round(40 * recent))
    out.print(table)


@app.command()
def rank(
    server: Server = None,
    store: Store = None,
    key: Key = None,
    learner: Name = "mail",
    state: StateFile = HOME / "mail.db",
    top: Annotated[int, typer.Option(min=1, help="folders to print")] = 3,
    reasons: Annotated[int, typer.Option(min=0, help="reasons for each")] = 5,
    precision: Annotated[float, typer.Option(min=0.5, max=0.999, help="asked of `sure`")] = 0.95,
    format: Annotated[str, typer.Option(help="`text` or `json`")] = "text",
) -> None:
    """Rank the folders for the message on standard input."""
    if format not in ("text", "json"):
        raise typer.BadParameter("--format is text or json")
    with told(), service(server, store, key) as client, State(state, learner=learner) as record:
        instance = {"features": features(sys.stdin.buffer.read())}
        found = client.predict(learner, instance, top=top, explain=True, remember=False)
        certainty = Certainty(record.rounds(WINDOW), precision)
        sure = found.label is not None and (found.margin or 0.0) >= certainty.least(found.label)
        _print(found, sure, reasons, format)


def _print(found: Prediction, sure: bool, reasons: int, form: str) -> None:
    ranking = [
        {"folder": entry.name, "score": entry.score, "reasons": _reasons(entry.contributions or {}, reasons)}
        for entry in found.ranking
    ]
    if form == "json":
        out.print_json(
            json.dumps({"folder": found.label, "margin": found.margin, "sure": sure, "ranking": ranking})
        )
        return
    for entry in ranking:
        why = ", ".join(f"{name} {value:+.2f}" for name, value in entry["reasons"].items())  # type: ignore[attr-defined]
        out.print(f"{entry['score']:8.3f}  {entry['folder']}  ({why})", markup=False)


def _reasons(contributions: dict[str, float], most: int) -> dict[str, float]:
    return dict(sorted(contributions.items(), key=lambda item: -abs(item[1]))[:most])


@app.command()
def watch(
    account: Annotated[str, typer.Argument(help="imaps://user@host")],
    server: Server = None,
    store: Store = None,
    key: Key = None,
    learner: Name = "mail",
    state: StateFile = HOME / "mail.db",
    mode: Annotated[str, typer.Option(help="`suggest`, or `file`: move what is sure")] = "suggest",
    precision: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="share of filed mail to be right")
    ] = 0.95,
    exclude: Exclude = None,
    inbox: Annotated[str, typer.Option(help="folder that new mail comes into")] = "INBOX",
    poll: Annotated[
        float, typer.Option(min=1, help="seconds between looks where the server says nothing")
    ] = 60.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="say what would be done, and do nothing")
    ] = False,
    page: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="port of a page to file the inbox by hand; 0 takes a free one"),
    ] = None,
    password_command: Command = None,
    password_file: PasswordFile = None,
    oauth: OAuth = False,
) -> None:
    """Rank, suggest or file new mail as it comes, and learn from every move."""
    if mode not in ("suggest", "file"):
        raise typer.BadParameter("--mode is suggest or file")
    if page is not None and dry_run:
        raise typer.BadParameter("--page files what one clicks: it is no --dry-run")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with told(), service(server, store, key) as client:
        place = Account.of(account, Secret(password_command, password_file, oauth))
        settings = Settings(
            mode=mode, precision=precision, exclude=exclude or (), inbox=inbox, dry_run=dry_run
        )
        with State(state, place.name, learner) as kept:
            record = kept.copy() if dry_run else kept
            try:
                client.learner(learner)
            except NotFound as error:
                raise AccountError(
                    f"there is no learner {learner!r} yet: run `feedrank mail train` first"
                ) from error
            prefix = "would: " if dry_run else ""

            def report(line: str) -> None:
                log.print(prefix + line, markup=False)

            with ExitStack() as stack:
                if page is not None:
                    shown = partial(Inbox, place, client, state, learner, settings, report)
                    out.print(f"the inbox is on {stack.enter_context(serving(shown, page))}", markup=False)
                watch_account(place, client, record, settings, report, poll=poll)


@app.command()
def undo(
    account: Annotated[str, typer.Argument(help="imaps://user@host")],
    count: Annotated[int, typer.Option(min=1, help="how many of the latest")] = 1,
    learner: Name = "mail",
    state: StateFile = HOME / "mail.db",
    password_command: Command = None,
    password_file: PasswordFile = None,
    oauth: OAuth = False,
) -> None:
    """Put back the latest messages that were filed."""
    with told():
        place = Account.of(account, Secret(password_command, password_file, oauth))
        with State(state, place.name, learner) as record, connect(place) as imap:
            done = put_back(imap, record, count, lambda line: log.print(line, markup=False))
        out.print(f"{done} put back")


def main(arguments: list[str] | None = None) -> Any:
    """Run the commands on their own."""
    return app(arguments, prog_name="feedrank mail")
