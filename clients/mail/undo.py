"""Putting back what was filed."""

from __future__ import annotations

from collections.abc import Callable

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientAbortError

from .bookkeeping import Action, MailState
from .mailboxes import ODD

__all__ = ["undo"]


def undo(
    imap: IMAPClient, state: MailState, count: int = 1, report: Callable[[str], None] = lambda line: None
) -> int:
    """Put back the latest `count` messages that we filed, as far as they are still there; how many were.

    The next look of `watch` finds them in the inbox, and learns that they belong there.
    """
    done = 0
    for action in state.actions("filed", fates=("intended", "open", "unjudged")):
        if done == count:
            break
        try:
            uid = _uid(imap, action)
        except IMAPClientAbortError:
            raise
        except ODD as error:
            report(f"{action.folder}: {error}")
            uid = None
        if uid is not None:
            # Written first: if it is cut off here, the message is in its folder and counts as corrected all the same.
            state.set_fate(action.id, "undone")
            imap.move([uid], action.origin)
            done += 1
            report(f"{action.folder}: <{action.key}> is back in {action.origin}")
        else:
            # Where it is now, `watch` will find, and judge.
            state.set_fate(action.id, "failed" if action.fate == "intended" else "gone")
            report(f"{action.folder}: <{action.key}> is no longer there")
    return done


def _uid(imap: IMAPClient, action: Action) -> int | None:
    """The message by UID and UIDVALIDITY; where these are not known yet, the only one with its Message-ID."""
    selected = imap.select_folder(action.folder)
    if action.uid is not None and selected.get(b"UIDVALIDITY") == action.uidvalidity:
        return action.uid if imap.search(["UID", str(action.uid)]) else None
    uids = imap.search(["HEADER", "Message-ID", action.key])
    return int(uids[0]) if len(uids) == 1 else None
