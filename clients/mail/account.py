"""An IMAP account: where it is, whom to trust, how to log in."""

from __future__ import annotations

import hashlib
import hmac
import imaplib
import os
import shlex
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from imapclient import IMAPClient, SocketTimeout
from imapclient.exceptions import IMAPClientError, LoginError

__all__ = ["Account", "AccountError", "Secret", "SecretError", "Trust", "connect"]

PASSWORD = "FEEDRANK_MAIL_PASSWORD"  # noqa: S105  (the name of a variable)
TIMEOUT = SocketTimeout(connect=20, read=60)
COMMAND_TIMEOUT = 120
LOOPBACK = ("127.0.0.1", "::1", "localhost")
LARGEST = 8 << 20
"""Bytes of one literal that are kept: more than ever asked for. What a server sends beyond is thrown away as it comes."""
MOST = 128 << 20
"""Bytes that are kept of all that answers one command: literals beyond half are thrown away, lines beyond it end it."""
ENDLESS = 4 << 30
_CHUNK = 1 << 20
_LINE = 100  # bytes that a line costs beside its own
# A SEARCH tells the messages of a folder in one line: imaplib's megabyte is full at 130,000 of them.
imaplib._MAXLINE = 1 << 25  # type: ignore[attr-defined]


class AccountError(Exception):
    """The account cannot be used as it is given."""


class SecretError(AccountError):
    """There is no password or token, or the server does not accept it; later there may be."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A password, or with `oauth` an XOAUTH2 token: from a command's first line, a file's, or the environment."""

    command: str | None = None
    file: Path | None = None
    oauth: bool = False

    def read(self) -> str:
        """The secret as it is now: tokens expire, so it is asked for at every connection."""
        try:
            text = self._text()
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise SecretError(f"the password cannot be read: {error}") from error
        lines = text.splitlines()
        if not lines or not lines[0]:
            raise SecretError(f"no password: give --password-command, --password-file, or {PASSWORD}")
        return lines[0]

    def _text(self) -> str:
        if self.command:
            done = subprocess.run(  # noqa: S603
                shlex.split(self.command),
                capture_output=True,
                text=True,
                check=False,
                stdin=subprocess.DEVNULL,
                timeout=COMMAND_TIMEOUT,
            )
            if done.returncode:
                reason = done.stderr.strip().splitlines()
                raise SecretError(f"the password command failed: {reason[-1] if reason else done.returncode}")
            return done.stdout
        if self.file:
            return self.file.read_text()
        return os.environ.get(PASSWORD, "")


@dataclass(frozen=True, slots=True)
class Trust:
    """Which certificates to accept: the system's authorities, those of a file, or exactly the one with a fingerprint."""

    ca_file: Path | None = None
    fingerprint: str | None = None
    """SHA-256 of the certificate, in hex, with or without colons."""

    def context(self) -> ssl.SSLContext:
        """For a connection, whose certificate `check` must see before anything is said."""
        try:
            context = ssl.create_default_context(cafile=str(self.ca_file) if self.ca_file else None)
        except (OSError, ssl.SSLError) as error:
            raise AccountError(f"{self.ca_file}: no certificates can be read: {error}") from error
        if self.fingerprint:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def check(self, connection: Any) -> None:
        """Refuse another certificate than the one with the fingerprint."""
        if not self.fingerprint:
            return
        expected = self.fingerprint.lower().removeprefix("sha256:").replace(":", "")
        digest = hashlib.sha256(connection.getpeercert(binary_form=True) or b"").hexdigest()
        if not hmac.compare_digest(expected.encode(), digest.encode()):
            raise AccountError(f"the server's certificate has another fingerprint: sha256:{digest}")


@dataclass(frozen=True, slots=True)
class Account:
    """`imaps://user@host[:port]` (TLS), or `imap://` (STARTTLS; without any only on this machine)."""

    host: str
    port: int
    user: str
    tls: bool
    secret: Secret
    trust: Trust = field(default_factory=Trust)

    @classmethod
    def of(cls, url: str, secret: Secret, trust: Trust | None = None) -> Account:
        """The account of a URL."""
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError as error:
            raise AccountError(f"{url!r}: {error}") from error
        if parts.scheme not in ("imaps", "imap") or not parts.hostname or not parts.username:
            raise AccountError(f"{url!r} must be imaps://user@host")
        if parts.password:
            raise AccountError("a password does not belong into a URL: others on this machine can see it")
        tls = parts.scheme == "imaps"
        user = unquote(parts.username)
        return cls(parts.hostname, port or (993 if tls else 143), user, tls, secret, trust or Trust())

    @property
    def name(self) -> str:
        """What the state file knows the account by."""
        return f"{self.user}@{self.host}:{self.port}"


@contextmanager
def connect(account: Account) -> Iterator[IMAPClient]:
    """A connection, logged in; logged out at the end, or cut if something failed."""
    imap = _opened(account)
    try:
        _login(imap, account)
        yield imap
    except BaseException:
        with suppress(OSError):  # a server that is in the middle of something may never answer a logout
            imap.shutdown()
        raise
    with suppress(IMAPClientError, OSError):
        imap.logout()


def _opened(account: Account) -> IMAPClient:
    """Connected, under TLS unless it is this machine, to a server whose certificate is good."""
    context = account.trust.context()
    imap = None
    try:
        imap = IMAPClient(
            account.host,
            account.port,
            ssl=account.tls,
            ssl_context=context if account.tls else None,
            timeout=TIMEOUT,
        )
        _bounded(imap)
        if not account.tls and imap.has_capability("STARTTLS"):
            imap.starttls(context)
            account.trust.check(imap.socket())
        elif account.tls:
            account.trust.check(imap.socket())
        elif account.host not in LOOPBACK or account.trust != Trust():  # a tunnel may begin on this machine
            raise AccountError(f"{account.host} offers no TLS; a password is not sent in the clear")
    except ssl.SSLCertVerificationError as error:
        reason = f"the certificate of {account.host} is not trusted: {error.verify_message}"
        raise AccountError(f"{reason}; see --ca-file and --fingerprint") from error
    except BaseException:
        if imap is not None:
            with suppress(OSError):
                imap.shutdown()
        raise
    return imap


def _login(imap: IMAPClient, account: Account) -> None:
    secret = account.secret.read()
    try:
        if account.secret.oauth:
            imap.oauth2_login(account.user, secret)
        else:
            imap.login(account.user, secret)
    except LoginError as error:
        what = "token" if account.secret.oauth else "password"
        raise SecretError(
            f"{account.host} does not accept {account.user} with this {what}: {error}"
        ) from error
    except UnicodeEncodeError as error:
        raise SecretError(
            "the server's protocol has no such characters in user names and passwords"
        ) from error


def _bounded(imap: IMAPClient) -> None:
    """Keep at most LARGEST bytes of a literal and MOST of a reply, whatever the server sends: more is read and dropped."""
    protocol: Any = imap._imap
    read, readline, new_tag = protocol.read, protocol.readline, protocol._new_tag
    room = MOST

    def next_command() -> bytes:
        nonlocal room
        room = MOST
        return bytes(new_tag())

    def line() -> bytes:
        nonlocal room
        try:
            text = bytes(readline())
        except protocol.error as error:  # the rest of the line would be taken for other lines
            raise protocol.abort(str(error)) from error
        room -= len(text) + _LINE
        if room < 0:
            raise protocol.abort("the server's reply has no end")
        return text

    def literal(size: int) -> bytes:
        nonlocal room
        if size <= min(LARGEST, room - MOST // 2):
            room -= size
            return bytes(read(size))
        if size > ENDLESS:
            raise protocol.abort(f"the server announces a literal of {size} bytes")
        while size > 0:
            piece = len(read(min(size, _CHUNK)))
            if not piece:
                raise protocol.abort("the connection was cut within a literal")
            size -= piece
        return b""

    protocol.read, protocol.readline, protocol._new_tag = literal, line, next_command
