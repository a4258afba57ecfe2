"""What becomes of filed messages that stay where they are: opened, they were right; else, after some days, unjudged.

A message that was filed and that the person read, answered, flagged or marked as deleted, and left there for a while, was
filed rightly: that is learned, as a move is. Of one that is in no folder any more nobody will know, unless it turns up. One
that nobody opens for some days is unjudged, which is said, once; it is judged all the same if it is opened within a week.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from imapclient import IMAPClient

from .bookkeeping import Action, MailState, feedback_id
from .filing import WatchSettings
from .learning import Learning
from .mailboxes import OneLine
from .message import Report

__all__ = ["Settling"]

LATEST = 7 * 86_400.0
"""Seconds for which a filed message is looked at: a service remembers its prediction no longer."""
_OPENED = {b"\\Seen", b"\\Answered", b"\\Flagged", b"\\Deleted"}


class Settling:
    """Looks at what was filed a while ago."""

    def __init__(
        self,
        imap: IMAPClient,
        state: MailState,
        settings: WatchSettings,
        learning: Learning,
        report: Report,
    ) -> None:
        self._imap, self._state, self._settings = imap, state, settings
        self._learning, self._report = learning, report

    def look(self, odd: Callable[[str], OneLine]) -> None:
        """Judge what can be judged by now; `odd` is where what cannot be read is said."""
        now = time.time()
        filed: dict[str, list[Action]] = {}
        for action in self._state.actions("filed", fates=("intended", "open", "unjudged")):
            late = action.fate == "unjudged" and action.at < now - LATEST
            if action.at <= now - self._settings.settle and not late:
                filed.setdefault(action.folder, []).append(action)
        for name, actions in filed.items():
            with odd(name):
                self._in_folder(name, actions, now - self._settings.unopened)

    def _in_folder(self, name: str, actions: Sequence[Action], due: float) -> None:
        folder = self._state.folders().get(name)
        places = {identity: uid for uid, identity in self._state.uids(name).items()}
        left = [action for action in actions if action.key in places]
        for action in actions:
            # What was only intended may be in the inbox.
            if action.key not in places and action.fate != "intended":
                self._state.set_fate(action.id, "gone")
        if not left or folder is None:
            return
        if self._imap.select_folder(name, readonly=True).get(b"UIDVALIDITY") != folder.uidvalidity:
            return
        flags = self._imap.get_flags([places[action.key] for action in left])
        unjudged = []
        for action in left:
            uid = places[action.key]
            if not _OPENED.isdisjoint(flags.get(uid, ())):
                if self._state.is_learned(feedback_id(action.key, folder.label)):
                    self._state.set_fate(action.id, "confirmed")  # of two with one Message-ID one is learned
                else:
                    self._learning.learn(uid, action.key, folder.label, name)
            elif action.fate == "open" and action.at <= due:
                self._state.set_fate(action.id, "unjudged")
                unjudged.append(action)
        if unjudged:
            self._report(f"{name}: {len(unjudged)} filed and not opened for days: unjudged")
