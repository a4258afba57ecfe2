"""`feedrank mail`: train, rank, watch, run, sort, undo, deliver, unit."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from .client import Client
from .connection import Key, LearnerName, Server, Store, service, text_or_json
from .mail.account import Account, AccountError, Secret, Trust, connect
from .mail.accounts_file import Watched, read_accounts
from .mail.bookkeeping import MailState
from .mail.extract import of
from .mail.filing import WatchSettings, asked, looked_at
from .mail.folder_names import is_choice
from .mail.imap_source import ImapSource
from .mail.message import read
from .mail.options import (
    HOME,
    Archive,
    CaFile,
    Command,
    DryRun,
    Exclude,
    Fingerprint,
    InboxName,
    OAuth,
    PasswordFile,
    Precision,
    Shared,
    StateFile,
    Url,
    WithoutInbox,
    announce,
    log,
    mode_of,
    note,
    one_line,
    out,
    printable,
    service_name,
)
from .mail.printing import UNIT, quoted, show_curve, show_ranking
from .mail.running import deliver as deliver_message
from .mail.running import run as run_accounts
from .mail.running import sort as sort_inbox
from .mail.running import trained, watch_one
from .mail.sources import MessageRef, find, stayed
from .mail.training import follow_log
from .mail.training import train as learn
from .mail.undo import undo as put_back

app = typer.Typer(
    help="Sort mail into folders, learning from every move.", no_args_is_help=True, add_completion=False
)


@app.command()
def train(
    source: Annotated[str, typer.Argument(help="Maildir, mbox, directory of messages, or imaps://user@host")],
    server: Server = None,
    store: Store = None,
    key: Key = None,
    learner: LearnerName = "mail",
    state: StateFile = HOME / "mail.db",
    exclude: Exclude = None,
    archive: Archive = False,
    without_inbox: WithoutInbox = False,
    precision: Precision = 0.95,
    password_command: Command = None,
    password_file: PasswordFile = None,
    oauth: OAuth = False,
    ca_file: CaFile = None,
    fingerprint: Fingerprint = None,
) -> None:
    """Learn from the messages in the folders, in date order. Run it again to continue where it stopped."""
    is_account = source.startswith(("imap://", "imaps://"))
    with one_line(), service(server, store, key) as client:
        secret, trust = Secret(password_command, password_file, oauth), Trust(ca_file, fingerprint)
        account = Account.of(source, secret, trust) if is_account else None
        name = account.name if account else ""
        with MailState(state, name, learner, service_name(server, store)) as record:
            if not follow_log(client, record):
                note(
                    f"the learner {learner!r} is not the one that was trained before: it is trained from the start"
                )
            if account:
                with connect(account) as imap:
                    messages = ImapSource(imap, record, note).find(
                        exclude or (), archive=archive, with_inbox=not without_inbox
                    )
                    _train(client, record, messages, precision)
            else:
                now = datetime.now(UTC)
                listed = [
                    one
                    for one in _counted(find(source, note))
                    if is_choice(one.folder, exclude or (), archive)
                    or (not without_inbox and stayed(one, now))
                ]
                _train(client, record, listed, precision)


def _counted(messages: Iterator[MessageRef]) -> Iterator[MessageRef]:
    with log.status("reading") as status:
        for number, one in enumerate(messages, 1):
            if number % 100 == 0:
                status.update(f"reading: {number} messages")
            yield one


def _train(client: Client, record: MailState, messages: list[MessageRef], precision: float) -> None:
    columns = (TextColumn("learning"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=log) as progress:
        task = progress.add_task("learning", total=len(messages))
        curve = learn(client, record, messages, lambda count: progress.advance(task, count), note, precision)
    show_curve(curve, len({one.folder for one in messages}))


@app.command()
def rank(
    server: Server = None,
    store: Store = None,
    key: Key = None,
    learner: LearnerName = "mail",
    state: StateFile = HOME / "mail.db",
    top: Annotated[int, typer.Option(min=1, help="folders to print")] = 3,
    reasons: Annotated[int, typer.Option(min=0, help="reasons for each")] = 5,
    precision: Precision = 0.95,
    format: Annotated[str, typer.Option(help="`text` or `json`")] = "text",
) -> None:
    """Rank the folders for the message on standard input."""
    text_or_json(format)
    names = service_name(server, store)
    with one_line(), service(server, store, key) as client, MailState(state, "", learner, names) as record:
        trained(client, record)
        message = read(sys.stdin.buffer.read())
        words = record.with_copies(of(message), message.id)
        request = {**asked(words, precision), "top": top, "explain": True}
        prediction = client.predict(learner, {**request, "prediction_id": looked_at(request)})
        sure = prediction.label is not None or bool(prediction.audit)
        show_ranking(prediction, record, sure, reasons, format)


@app.command()
def watch(
    account: Url,
    server: Server = None,
    store: Store = None,
    key: Key = None,
    learner: LearnerName = "mail",
    state: StateFile = HOME / "mail.db",
    mode: Annotated[str, typer.Option(help="`suggest`, or `file`: move what is sure")] = "suggest",
    precision: Precision = 0.95,
    exclude: Exclude = None,
    shared: Shared = None,
    archive: Archive = False,
    inbox: InboxName = "INBOX",
    poll: Annotated[
        float,
        typer.Option(min=1, help="seconds between two checks, if the server does not announce new mail"),
    ] = 60.0,
    keep_days: Annotated[
        float,
        typer.Option(
            min=0, help="days after which a read message that is still in the inbox counts as kept there"
        ),
    ] = 3.0,
    dry_run: DryRun = False,
    page: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="port of a page to file the inbox by hand; 0 takes a free one"),
    ] = None,
    password_command: Command = None,
    password_file: PasswordFile = None,
    oauth: OAuth = False,
    ca_file: CaFile = None,
    fingerprint: Fingerprint = None,
) -> None:
    """Rank, suggest or file new mail as it comes, and learn from every move."""
    if page is not None and dry_run:
        raise typer.BadParameter("--page files what one clicks: it is no --dry-run")
    settings = WatchSettings(
        mode=mode_of(mode),
        precision=precision,
        exclude=exclude or (),
        shared=shared or (),
        archive=archive,
        inbox=inbox,
        dry_run=dry_run,
        keep=86_400.0 * keep_days,
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with one_line(), service(server, store, key) as client:
        secret, trust = Secret(password_command, password_file, oauth), Trust(ca_file, fingerprint)
        watched = Watched(Account.of(account, secret, trust), learner, settings, poll, page)
        prefix = "would: " if dry_run else ""
        watch_one(
            watched, client, state, service_name(server, store), lambda line: note(prefix + line), announce
        )


@app.command()
def run(
    accounts: Annotated[Path, typer.Argument(help="a TOML file with accounts and rules")],
    key: Key = None,
) -> None:
    """Watch all accounts of a file."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with one_line():
        chosen = read_accounts(accounts)
        with service(chosen.server, chosen.store, key) as client:
            names = service_name(chosen.server, chosen.store)
            path = chosen.state or HOME / "mail.db"
            if not run_accounts(chosen.accounts, client, path, names, note, announce):
                raise AccountError("no account is watched any longer")


@app.command()
def sort(
    account: Url,
    server: Server = None,
    store: Store = None,
    key: Key = None,
    learner: LearnerName = "mail",
    state: StateFile = HOME / "mail.db",
    mode: Annotated[str, typer.Option(help="`suggest`, or `file`: move what is sure")] = "suggest",
    precision: Precision = 0.95,
    exclude: Exclude = None,
    shared: Shared = None,
    archive: Archive = False,
    inbox: InboxName = "INBOX",
    most: Annotated[int, typer.Option(min=1, help="messages, the newest first")] = 1000,
    dry_run: DryRun = False,
    password_command: Command = None,
    password_file: PasswordFile = None,
    oauth: OAuth = False,
    ca_file: CaFile = None,
    fingerprint: Fingerprint = None,
) -> None:
    """Rank the messages in the inbox now, and suggest or file; with --dry-run only show the table."""
    names = service_name(server, store)
    settings = WatchSettings(
        mode=mode_of(mode),
        precision=precision,
        exclude=exclude or (),
        shared=shared or (),
        archive=archive,
        inbox=inbox,
        dry_run=dry_run,
    )
    with one_line(), service(server, store, key) as client:
        secret, trust = Secret(password_command, password_file, oauth), Trust(ca_file, fingerprint)
        place = Account.of(account, secret, trust)
        with MailState(state, place.name, learner, names) as stored:
            record = stored.copy() if dry_run else stored
            trained(client, record)
            table = Table("subject", "from", "folder", "sure", "then")
            rows = list(sort_inbox(place, client, record, settings, note, most))
            for row in rows:
                top = list(row.advice.top)
                sure = "filed" if row.filed else "yes" if row.advice.sure else ""
                first = row.advice.folder or "stays"
                cells = (row.subject[:60], row.sender[:30], first, sure, ", ".join(top[1:]))
                table.add_row(*(Text(printable(cell)) for cell in cells))
            out.print(table)
            done = "would be " if dry_run else ""
            out.print(f"{sum(row.filed for row in rows)} of {len(rows)} messages {done}filed")


@app.command()
def undo(
    account: Url,
    count: Annotated[int, typer.Option(min=1, help="how many of the latest")] = 1,
    learner: LearnerName = "mail",
    state: StateFile = HOME / "mail.db",
    password_command: Command = None,
    password_file: PasswordFile = None,
    oauth: OAuth = False,
    ca_file: CaFile = None,
    fingerprint: Fingerprint = None,
) -> None:
    """Undo the latest filings: move the messages back."""
    with one_line():
        secret, trust = Secret(password_command, password_file, oauth), Trust(ca_file, fingerprint)
        place = Account.of(account, secret, trust)
        with MailState(state, place.name, learner) as record, connect(place) as imap:
            done = put_back(imap, record, count, note)
        out.print(f"{done} put back")


@app.command()
def deliver(
    account: Url,
    server: Server = None,
    store: Store = None,
    key: Key = None,
    learner: LearnerName = "mail",
    state: StateFile = HOME / "mail.db",
    precision: Precision = 0.95,
    accounts: Annotated[Path | None, typer.Option(help="file with the rules of this account")] = None,
) -> None:
    """Print the folder of the message on standard input, or nothing if unsure. Never fails (for Sieve and LMTP)."""
    raw = sys.stdin.buffer.read()
    try:
        place = Account.of(account, Secret())
        settings = WatchSettings(mode="file", precision=precision)
        for watched in read_accounts(accounts).accounts if accounts else ():
            if watched.account.name == place.name:
                settings, learner = replace(watched.settings, mode="file"), watched.learner
        names = service_name(server, store)
        with service(server, store, key) as client, MailState(state, place.name, learner, names) as record:
            folder = deliver_message(client, record, settings, raw)
    except Exception as error:  # mail must be delivered, whatever is wrong here
        note(f"feedrank mail: {' '.join(str(error).split()) or type(error).__name__}; the inbox it is")
        return
    if folder:
        sys.stdout.write(folder)


@app.command()
def unit(
    accounts: Annotated[Path, typer.Argument(help="the file for `feedrank mail run`")],
) -> None:
    """Print a systemd user unit that watches the accounts of a file."""
    with one_line():
        read_accounts(accounts)
    command = [sys.executable, "-m", "feedrank.cli", "mail", "run", str(accounts.absolute())]
    sys.stdout.write(UNIT.format(command=" ".join(map(quoted, command))))


def main(arguments: Sequence[str] | None = None) -> Any:
    """Run the commands on their own."""
    return app(arguments, prog_name="feedrank mail")
