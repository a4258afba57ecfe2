"""Watching for good: look, wait for the server to say something, look again; reconnect when the line is cut."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable

from imapclient import IMAPClient

from ..client import Client
from ..exceptions import NoReply, TimedOut, Unavailable
from .account import Account, AccountError, SecretError, connect
from .bookkeeping import MailState
from .filing import WatchSettings
from .mailboxes import ODD
from .watcher import Watcher

__all__ = ["watch"]

LONGEST_PAUSE = 300.0
SLICE = 1.0
"""Seconds of waiting after which `stop` is looked at."""
LATER = (*ODD, OSError, sqlite3.OperationalError, NoReply, TimedOut, Unavailable, SecretError)
"""What may be over after a pause. A bad certificate, a wrong address or a refused request will not be."""


def watch(
    account: Account,
    client: Client,
    state: MailState,
    settings: WatchSettings,
    report: Callable[[str], None],
    *,
    poll: float = 60.0,
    stop: threading.Event | None = None,
) -> None:
    """Watch until `stop` is set. `poll` seconds after the last look there is another, whatever the server says.

    IDLE tells of changes in the inbox only; a correction from folder to folder is found by the poll. What is wrong with the
    account at the start (AccountError) ends it at once; what was right once is tried again, with growing pauses.
    """
    ended = stop or threading.Event()
    connected, failures = False, 0
    while not ended.is_set():
        try:
            with connect(account) as imap:
                connected = True
                watcher = Watcher(imap, client, state, settings, report)
                while not ended.is_set():
                    watcher.look()
                    failures = 0
                    _wait(imap, state, settings.inbox, poll, ended)
        except LATER as error:
            if isinstance(error, AccountError) and not connected:
                raise
            failures += 1
            pause = min(poll, 0.5 * 2.0 ** min(failures, 20), LONGEST_PAUSE)
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            report(f"{reason}; again in {pause:.0f} s")
            ended.wait(pause)


def _wait(imap: IMAPClient, state: MailState, inbox: str, poll: float, ended: threading.Event) -> None:
    if not imap.has_capability("IDLE"):
        ended.wait(poll)
        return
    selected = imap.select_folder(inbox, readonly=True)
    folder = state.folders().get(inbox)
    if folder and (selected.get(b"EXISTS"), selected.get(b"UIDNEXT", folder.uidnext)) != (
        folder.messages,
        folder.uidnext,
    ):
        # It came between the look and now, and IDLE would not tell of it. Not at once: a server may count oddly for ever.
        ended.wait(min(poll, SLICE))
        return
    # First for a moment: what came between SELECT and IDLE some servers tell only at its end.
    if not _idle(imap, min(poll, SLICE), ended):
        _idle(imap, poll - SLICE, ended)


def _idle(imap: IMAPClient, seconds: float, ended: threading.Event) -> bool:
    """Whether the server said something within so many seconds."""
    until = time.monotonic() + seconds
    said: list[object] = []
    imap.idle()
    while not said and not ended.is_set() and (rest := until - time.monotonic()) > 0:
        asked = time.monotonic()
        said = imap.idle_check(timeout=min(rest, SLICE))
        if time.monotonic() - asked < min(rest, SLICE) / 2:
            break  # if nothing was said, and at once, then the line is cut, which `idle_done` will find
    _, more = imap.idle_done()
    return bool(said or more)
