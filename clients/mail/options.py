"""What the mail commands have in common: options, and errors in one line."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from imapclient.exceptions import IMAPClientError
from rich.console import Console

from ..exceptions import ClientError, Unauthorized
from .account import PASSWORD, AccountError
from .sources import SourceError

out, log = Console(soft_wrap=True, highlight=False), Console(stderr=True, soft_wrap=True, highlight=False)

_CONTROLS = dict.fromkeys([*range(32), *range(127, 160)], "\ufffd")
HOME = Path(typer.get_app_dir("feedrank"))
Url = Annotated[str, typer.Argument(help="the account: imaps://user@host")]
StateFile = Annotated[Path, typer.Option(help="file that keeps what was seen and done between runs")]
Command = Annotated[str | None, typer.Option(help="command that prints the password or token")]
PasswordFile = Annotated[
    Path | None, typer.Option(help=f"file with the password or token; else {PASSWORD} is read")
]
OAuth = Annotated[bool, typer.Option("--oauth", help="log in with an XOAUTH2 token instead of a password")]
CaFile = Annotated[Path | None, typer.Option(help="certificates of the authorities to trust, in PEM")]
Fingerprint = Annotated[str | None, typer.Option(help="SHA-256 of the server's certificate: trust only that")]
Exclude = Annotated[
    list[str] | None, typer.Option(help="pattern of folders to ignore, e.g. 'Lists/*'; may be repeated")
]
Shared = Annotated[
    list[str] | None,
    typer.Option(help="folder of others that mail may be filed into, e.g. 'Public/Sales'; may be repeated"),
]
Archive = Annotated[bool, typer.Option("--archive", help="learn from the archive too")]
Precision = Annotated[float, typer.Option(min=0.5, max=0.999, help="precision required to file a message")]
InboxName = Annotated[str, typer.Option(help="folder in which new mail arrives")]
WithoutInbox = Annotated[
    bool, typer.Option("--without-inbox", help="do not learn that what was read there days ago belongs there")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="print what would be done, and do nothing")]


@contextmanager
def one_line() -> Iterator[None]:
    """What a person can mend ends in one line, not in a stack trace."""
    try:
        yield
    except Unauthorized as error:
        _fail(f"the service does not accept the key: {error}", error)
    except (
        ClientError, AccountError, SourceError, IMAPClientError, OSError, ValueError, sqlite3.Error
    ) as error:  # fmt: skip
        _fail(str(error) or type(error).__name__, error)


def _fail(reason: str, error: Exception) -> None:
    log.print(f"feedrank mail: {printable(' '.join(reason.split()))}", style="red", markup=False)
    raise typer.Exit(1) from error


def service_name(server: str | None, store: str | None) -> str:
    """What the state file knows a service by: an address, or a store."""
    scheme, _, path = (store or "").partition(":")
    return f"sqlite:{Path(path).absolute()}" if scheme == "sqlite" else store or (server or "").rstrip("/")


def printable(text: str) -> str:
    """Without control characters: subjects, ids and folders are written by others, and could steer a terminal."""
    return text.translate(_CONTROLS)


def note(line: str) -> None:
    """A line on standard error."""
    log.print(printable(line), markup=False)


def announce(line: str) -> None:
    """A line on standard output."""
    out.print(printable(line), markup=False)


def mode_of(mode: str) -> str:
    """`suggest` or `file`."""
    if mode not in ("suggest", "file"):
        raise typer.BadParameter("--mode is suggest or file")
    return mode
