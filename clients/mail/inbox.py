"""The inbox as a page shows it: its newest messages, and for each the folders that it most likely belongs into."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientError

from ..client import Client
from ..payloads import JSON
from .account import Account, connect
from .bookkeeping import MailState
from .extract import excerpt, of
from .filing import WatchSettings
from .mailboxes import message, messages_of
from .message import Report, read
from .watcher import Watcher

__all__ = ["Inbox"]

MOST = 50
"""Messages shown."""
TOP = 3
WEEK = 7 * 86_400.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One message; its text never leaves this process but for an excerpt on the page."""

    reply: JSON
    key: str
    features: list[str]


class Inbox:
    """Over a connection and a state of its own, beside the watcher's; for one thread, the one that opened it."""

    def __init__(
        self,
        account: Account,
        client: Client,
        state: MailState,
        settings: WatchSettings,
        report: Report,
    ) -> None:
        self._account, self._client, self._settings, self._report = account, client, settings, report
        self._state = MailState(state.path, account.name, state.learner, state.service)
        self._stack = ExitStack()
        self._imap: IMAPClient | None = None
        self._validity = 0
        self._shown: dict[int, ShownMessage] = {}

    def close(self) -> None:
        """Log out."""
        self._stack.close()
        self._state.close()

    def messages(self) -> JSON:
        """`{"account", "folders", "rules", "record", "messages": [{"uid", "uidvalidity", ..., "top": [folder, ...]}]}`."""
        return self._connected(self._messages)

    def file(self, uid: int, uidvalidity: int, folder: str) -> bool:
        """Put the message into the folder, and teach that it belongs there; False if either is gone."""
        if folder not in self._folders():
            return False
        return self._connected(lambda imap: self._watcher(imap).choose(uid, uidvalidity, folder))

    def _connected(self, work: Callable[[IMAPClient], T]) -> T:
        """Do it on the connection that there is, or on a new one if that was cut."""
        if self._imap is not None:
            try:
                return work(self._imap)
            except (IMAPClientError, OSError) as error:
                self._report(f"page: {error or type(error).__name__}; connecting again")
        self._stack.close()
        self._imap = None
        imap = self._stack.enter_context(connect(self._account))
        done = work(imap)
        self._imap = imap
        return done

    def _watcher(self, imap: IMAPClient) -> Watcher:
        return Watcher(imap, self._client, self._state, self._settings, self._report)

    def _folders(self) -> dict[str, str]:
        """The label of each folder that a message can be put into."""
        folders = self._state.folders().values()
        return {folder.name: folder.label for folder in folders if folder.name != self._settings.inbox}

    def _messages(self, imap: IMAPClient) -> JSON:
        selected = imap.select_folder(self._settings.inbox, readonly=True)
        validity = int(selected.get(b"UIDVALIDITY", 0))
        if validity != self._validity:
            self._shown.clear()
            self._validity = validity
        uids = sorted(messages_of(imap), reverse=True)[:MOST]
        self._read(imap, [uid for uid in uids if uid not in self._shown])
        self._shown = {uid: self._shown[uid] for uid in uids if uid in self._shown}
        return {
            "account": self._account.name,
            "folders": sorted(self._folders()),
            "rules": self._settings.rules.lines(),
            "record": self._record(),
            "messages": self._ranked(list(self._shown.values())),
        }

    def _record(self) -> JSON:
        """What was filed within a week, by what became of it, and how many audits were right."""
        checked, right = self._state.checked()
        filed = self._state.filed_since(time.time() - WEEK)
        return {"filed": sum(filed.values()), "fates": filed, "checked": checked, "right": right}

    def _read(self, imap: IMAPClient, uids: Sequence[int]) -> None:
        for uid in uids:
            raw = message(imap, uid, self._report)
            if raw is None:  # it went away meanwhile
                continue
            parsed = read(raw)
            reply = {
                "uid": uid,
                "uidvalidity": self._validity,
                "subject": parsed.subject,
                "sender": parsed.sender_name or ", ".join(parsed.sender),
                "date": parsed.date.isoformat() if parsed.date else None,
                "excerpt": excerpt(parsed),
            }
            self._shown[uid] = ShownMessage(reply, parsed.id, of(parsed))

    def _ranked(self, shown: Sequence[ShownMessage]) -> list[JSON]:
        """Asked again at every look: what was learned since changes the ranking at once."""
        if not shown:
            return []
        names = {label: name for name, label in self._folders().items()}
        known = [self._state.with_copies(one.features, one.key) for one in shown]
        asked = [{"features": features, "remember": False} for features in known]
        replies = []
        for one, prediction in zip(shown, self._client.predict_many(self._state.learner, asked), strict=True):
            top = [names[entry.label] for entry in prediction.ranking if entry.label in names][:TOP]
            replies.append({**one.reply, "top": top})
        return replies
