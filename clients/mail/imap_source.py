"""An IMAP account to train from. Headers come first, because messages are learned by date; then each message as it is due.

Nothing is written to a disk: what was learned is in the state file, so a run that was killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientAbortError

from .bookkeeping import MailState, feedback_id
from .folder_names import INBOX
from .mailboxes import ODD, Box, boxes, headers, message, messages_of
from .message import date_of, key
from .sources import MAX_BYTES, MessageRef, stayed

__all__ = ["ImapSource"]

AHEAD = 25
"""Messages of a folder fetched together, and how many bytes of them."""
AHEAD_BYTES = 1 << 20
_OLDEST = datetime(1970, 1, 1, tzinfo=UTC)


class ImapSource:
    """Lists the messages of an account that were not learned before, and loads each when it is asked for."""

    def __init__(
        self, imap: IMAPClient, state: MailState, report: Callable[[str], None] = lambda line: None
    ) -> None:
        self._imap, self._state, self._report = imap, state, report
        self._ahead: dict[str, dict[int, bytes | None]] = {}
        self._order: dict[str, list[int]] = {}
        self._place: dict[str, dict[int, int]] = {}
        self._selected = ""

    def find(
        self,
        exclude: Sequence[str] = (),
        inbox: str = "INBOX",
        archive: bool = False,
        with_inbox: bool = True,
    ) -> list[MessageRef]:
        """The messages of every folder that holds choices, and those of the inbox that stayed there."""
        new: list[MessageRef] = []
        places = boxes(self._imap, inbox, exclude, archive, self._report)
        now = datetime.now(UTC)
        for box in [*places, *([Box(inbox, INBOX)] if with_inbox else [])]:
            is_inbox = box.label == INBOX
            try:
                self._select(box.name)
                uids = messages_of(self._imap, "SEEN") if is_inbox else messages_of(self._imap)
                listed = dict(headers(self._imap, uids, self._report))
            except IMAPClientAbortError:
                raise
            except ODD as error:
                self._report(f"{box.name}: {error or type(error).__name__}; this folder is left out")
                continue
            dated = []
            for uid, fields in listed.items():
                identity, date = key(fields), date_of(fields) or _OLDEST
                one = MessageRef(box.label, identity, date, partial(self._load, box.name, uid), is_inbox)
                is_known = self._state.is_learned(feedback_id(identity, self._state.label_of(box.label)))
                if not is_known and (not is_inbox or stayed(one, now)):
                    dated.append((date, identity, uid))
                    new.append(one)
            self._order[box.name] = order = [uid for _, _, uid in sorted(dated)]
            self._place[box.name] = {uid: place for place, uid in enumerate(order)}
        return new

    def _select(self, name: str) -> None:
        if self._selected != name:
            self._selected = ""
            self._imap.select_folder(name, readonly=True)
            self._selected = name

    def _load(self, name: str, uid: int) -> bytes:
        """The message, and with it those of the folder that will be asked for next; empty if it cannot be read."""
        ahead = self._ahead.setdefault(name, {})
        if uid not in ahead:
            self._select(name)
            at = self._place[name][uid]
            ahead.update(self._fetched(self._order[name][at : at + AHEAD]))
        raw = ahead.pop(uid, None)
        if raw is None:
            self._report(f"{name}: message {uid} cannot be read")
        return raw or b""

    def _fetched(self, uids: Sequence[int]) -> dict[int, bytes | None]:
        try:
            sizes: dict[int, dict[bytes, Any]] = self._imap.fetch(uids, ["RFC822.SIZE"])
            total = 0
            some: list[int] = []
            for uid in uids:
                total += min(int(sizes.get(uid, {}).get(b"RFC822.SIZE") or 0), MAX_BYTES)
                if some and total > AHEAD_BYTES:
                    break
                some.append(uid)
            replies = self._imap.fetch(some, [f"BODY.PEEK[]<0.{MAX_BYTES}>"])
            return {
                uid: (reply.get(b"BODY[]<0>", reply.get(b"BODY[]")) or b"")[:MAX_BYTES]
                for uid, reply in replies.items()
            }
        except IMAPClientAbortError:
            raise
        except ODD:
            return {uids[0]: message(self._imap, uids[0])}
