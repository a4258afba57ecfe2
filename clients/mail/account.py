"""An IMAP account: where it is, how to log in, which of its folders hold the person's choices."""

from __future__ import annotations

import os
import shlex
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from imapclient import IMAPClient, SocketTimeout
from imapclient.exceptions import IMAPClientError

from .choices import is_choice

__all__ = ["Account", "AccountError", "Box", "Secret", "boxes", "connect"]

PASSWORD = "FEEDRANK_MAIL_PASSWORD"  # noqa: S105  (the name of a variable)
TIMEOUT = SocketTimeout(connect=20, read=60)
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_SPECIAL = {
    b"\\trash",
    b"\\junk",
    b"\\sent",
    b"\\drafts",
    b"\\all",
    b"\\flagged",
    b"\\noselect",
    b"\\nonexistent",
}


class AccountError(Exception):
    """The account cannot be used as it is given."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A password, or with `oauth` an XOAUTH2 token: from a command's first line, a file's, or the environment."""

    command: str | None = None
    file: Path | None = None
    oauth: bool = False

    def read(self) -> str:
        """The secret as it is now: tokens expire, so it is asked for at every connection."""
        if self.command:
            ran = subprocess.run(shlex.split(self.command), capture_output=True, text=True, check=False)  # noqa: S603
            if ran.returncode:
                raise AccountError(
                    f"the command for the password failed: {ran.stderr.strip() or ran.returncode}"
                )
            text = ran.stdout
        elif self.file:
            text = self.file.read_text()
        else:
            text = os.environ.get(PASSWORD, "")
        lines = text.splitlines()
        if not lines or not lines[0]:
            raise AccountError(f"no password: give --password-command, --password-file, or {PASSWORD}")
        return lines[0]


@dataclass(frozen=True, slots=True)
class Account:
    """`imaps://user@host[:port]` (TLS), or `imap://` (STARTTLS; without any only on this machine)."""

    host: str
    port: int
    user: str
    tls: bool
    secret: Secret

    @classmethod
    def of(cls, url: str, secret: Secret) -> Account:
        """The account of a URL."""
        parts = urlsplit(url)
        if parts.scheme not in ("imaps", "imap") or not parts.hostname or not parts.username:
            raise AccountError(f"{url!r} must be imaps://user@host")
        if parts.password:
            raise AccountError("a password does not belong into a URL: others on this machine can see it")
        tls = parts.scheme == "imaps"
        return cls(parts.hostname, parts.port or (993 if tls else 143), unquote(parts.username), tls, secret)

    @property
    def name(self) -> str:
        """What the state file knows the account by."""
        return f"{self.user}@{self.host}:{self.port}"


@contextmanager
def connect(account: Account) -> Iterator[IMAPClient]:
    """A connection, logged in; logged out at the end, or cut if something failed."""
    context = ssl.create_default_context()
    imap = IMAPClient(
        account.host,
        account.port,
        ssl=account.tls,
        ssl_context=context if account.tls else None,
        timeout=TIMEOUT,
    )
    try:
        if not account.tls and imap.has_capability("STARTTLS"):
            imap.starttls(context)
        elif not account.tls and account.host not in LOOPBACK:
            raise AccountError(f"{account.host} offers no TLS; a password is not sent in the clear")
        secret = account.secret.read()
        if account.secret.oauth:
            imap.oauth2_login(account.user, secret)
        else:
            imap.login(account.user, secret)
        yield imap
    except BaseException:
        with suppress(OSError):  # a server that is in the middle of something may never answer a logout
            imap.shutdown()
        raise
    with suppress(IMAPClientError, OSError):
        imap.logout()


@dataclass(frozen=True, slots=True)
class Box:
    """A folder as the server lists it, and what it would be called in the learner."""

    name: str
    label: str


def boxes(imap: IMAPClient, inbox: str, exclude: Sequence[str]) -> list[Box]:
    """The folders to learn from: not the inbox, nor trash, junk, sent, drafts, nor what a pattern of `exclude` matches."""
    found = []
    for flags, delimiter, name in imap.list_folders():
        separator = (delimiter or b"/").decode()
        label = name if separator == "/" else name.replace("/", "\\").replace(separator, "/")
        if {flag.lower() for flag in flags} & _SPECIAL or name.upper() == inbox.upper():
            continue
        if is_choice(label, exclude) and is_choice(name, exclude):
            found.append(Box(name, label))
    return found
