"""Putting back what was filed."""

from __future__ import annotations

from collections.abc import Callable

from imapclient import IMAPClient

from .certainty import Round
from .state import State


def undo(
    imap: IMAPClient, state: State, count: int = 1, report: Callable[[str], None] = lambda line: None
) -> int:
    """Put back the latest `count` messages that we filed, as far as they are still there; how many were."""
    done = 0
    for action in state.actions("filed"):
        if done == count:
            break
        imap.select_folder(action.folder)
        uids = [uid for uid, found in state.uids(action.folder).items() if found == action.key]
        uids = uids or imap.search(["HEADER", "Message-ID", action.key])
        if uids:
            imap.move(uids[:1], action.origin)
            done += 1
            report(f"{action.folder}: <{action.key}> is back in {action.origin}")
        predicted = state.prediction(action.key)
        if predicted:
            state.add_rounds([Round(predicted[1], predicted[2], False)])
        state.see(action.key)
        state.set_fate(action.id, "undone")
    return done
