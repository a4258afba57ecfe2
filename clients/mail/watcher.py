"""One look at an account: learn what the person moved or kept, then rank, suggest or file what is new in the inbox.

The server is asked for what changed since the last look, so nothing is missed while nobody watched. Whatever is learned
or done is written down so that a crash at any point repeats at most a request that the service knows as a duplicate, and
our own moves are never mistaken for the person's. Nothing is ever deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientAbortError

from ..client import Client
from .account import AccountError
from .bookkeeping import Action, Folder, MailState, feedback_id
from .filing import Clerk, WatchSettings, folder_named
from .learning import PENDING, Learning
from .mailboxes import ODD, Box, OneLine, Status, boxes, headers, message, messages_of, remain, status
from .message import key, read
from .settling import Settling

__all__ = ["Watcher"]


class Watcher:
    """Looks at an account through `imap`; `report` gets a line for everything done."""

    def __init__(
        self,
        imap: IMAPClient,
        client: Client,
        state: MailState,
        settings: WatchSettings,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._imap, self._client, self._state = imap, client, state
        self._settings, self._report = settings, report
        self._clerk = Clerk(imap, client, state, settings, report)
        self._learning = Learning(imap, client, state, settings, report)
        self._settling = Settling(imap, state, settings, self._learning, report)
        self._began = 0.0
        self._statuses: dict[str, Status] = {}
        self._complaints: set[str] = set()
        self._earlier: set[str] = set()

    def look(self, handles: bool = True) -> None:
        """See what changed, and do what is to do; new mail of the inbox is left to the caller if not `handles`."""
        self._began = time.time()
        self._earlier, self._complaints = self._complaints, set()
        # Taken before the folders are looked at: what leaves the inbox from here on is a change for the next look.
        self._imap.noop()  # of the folder that is selected, STATUS may tell what this session knew last
        own, self._statuses = self._settings, {}
        listed = boxes(
            self._imap, own.inbox, own.exclude, own.archive, self._complain, own.shared, self._statuses
        )
        inbox = self._status(own.inbox)
        self._follow(listed)
        for box in listed:
            with self._odd(box.name):
                self._folder(box)
        self._check_rules()
        self._settling.look(self._odd)
        with self._odd(self._settings.inbox):
            self._inbox(inbox, handles)
            self._kept(inbox.uidvalidity)

    def _status(self, name: str) -> Status:
        """As it was told with the list of folders, or asked for now."""
        return self._statuses.get(name) or status(self._imap, name)

    def _check_rules(self) -> None:
        """A rule for a folder that there is not would be silent for ever."""
        folders = list(self._state.folders().values())
        for rule in self._settings.rules.always:
            if folder_named(self._state, folders, rule.folder) is None:
                self._complain(f"always: {rule}: there is no such folder")

    def _odd(self, name: str) -> OneLine:
        return OneLine(name, self._complain)

    def _complain(self, line: str) -> None:
        """What is odd is said once, not at every look."""
        self._complaints.add(line)
        if line not in self._earlier:
            self._report(line)

    def choose(self, uid: int, uidvalidity: int, folder: str) -> bool:
        """The person chose a folder for a message of the inbox: learn that, then put it there. False if it is gone.

        Learned first: the next look finds it moved, and known; a crash in between leaves it in the inbox, to be chosen
        again, and the service knows the event.
        """
        selected = self._imap.select_folder(self._settings.inbox)
        if selected.get(b"UIDVALIDITY") != uidvalidity:
            return False
        if not self._imap.has_capability("MOVE"):
            raise AccountError(
                "the server has no MOVE; to copy and delete is not safe, so move it in your mail program"
            )
        identity = next((one for number, one in self._keys([uid]) if number == uid), None)
        if identity is None:
            return False
        self._learning.learn(uid, identity, self._state.folders()[folder].label, folder)
        if not self._settings.dry_run:
            self._imap.move([uid], folder)
        return True

    # ---- folders

    def _follow(self, listed: Sequence[Box]) -> None:
        """A folder that is gone lives on in a new one that holds its messages; else it is forgotten."""
        folders = self._state.folders()
        names = {box.name for box in listed} | {self._settings.inbox}
        fresh = [box for box in listed if box.name not in folders]
        for old in [folder for name, folder in folders.items() if name not in names]:
            heir = next((box for box in fresh if self._same(old, box.name)), None)
            if heir is None:
                self._state.forget_folder(old.name)
                self._report(f"{old.name}: gone")
            else:
                self._state.rename_folder(old.name, heir.name)
                self._state.relabel(heir.label, old.label)
                fresh.remove(heir)
                self._report(f"{old.name}: is now {heir.name}")

    def _same(self, old: Folder, name: str) -> bool:
        before = set(self._state.uids(old.name).values())
        try:
            if not before:
                return status(self._imap, name).uidvalidity == old.uidvalidity
            self._imap.select_folder(name, readonly=True)
            now = {identity for _, identity in self._keys(messages_of(self._imap))}
        except IMAPClientAbortError:
            raise
        except ODD:
            return False
        return 2 * len(before & now) > len(before)

    def _changes(self, name: str, label: str, now: Status) -> Iterator[tuple[int, str, bool]]:
        """(UID, key, is a first look) of each message new in a folder; the folder is selected, its state updated after."""
        before = self._state.folders().get(name)
        current = Folder(name, now.uidvalidity, now.uidnext, now.messages, label)
        if before == current:
            return
        self._imap.select_folder(name, readonly=True)
        keys, uids = self._state.uids(name), messages_of(self._imap)
        stayed: set[str] = set()
        if before and before.uidvalidity != now.uidvalidity:
            # The UIDs mean other messages now; these are still known by their Message-IDs.
            stayed = set(keys.values())
            self._state.leave(name, keys)
            keys = {}
        self._state.leave(name, keys.keys() - set(uids))
        for uid, identity in self._keys([uid for uid in uids if uid not in keys]):
            if identity not in stayed:
                yield uid, identity, before is None
            self._state.place(name, uid, identity)
        self._state.put_folder(current)

    def _keys(self, uids: Sequence[int]) -> Iterator[tuple[int, str]]:
        for uid, fields in headers(self._imap, uids, self._complain):
            yield uid, key(fields)

    # ---- learning

    def _folder(self, box: Box) -> None:
        folder = self._state.folders().get(box.name)
        label = folder.label if folder else self._free(box)
        now = self._status(box.name)
        for uid, identity, first in self._changes(box.name, label, now):
            filed = self._state.actions("filed", identity, PENDING)
            ours = [one for one in filed if one.folder in (box.name, box.label)]
            # Of two with one Message-ID each arrives once.
            expected = [one for one in ours if one.uid is None]
            for action in expected[-1:] or ours:
                self._state.arrived(action.id, uid, now.uidvalidity)
            if ours or self._state.is_learned(feedback_id(identity, label)):
                continue
            if box.foreign:
                if self._left_inbox(identity, box.name):
                    self._learning.learn(uid, identity, label, box.name)
            elif first and not self._state.is_seen(identity):
                self._state.see(identity)  # it was there before we came: `train` learns those
            else:
                self._learning.learn(uid, identity, label, box.name)

    def _left_inbox(self, identity: str, folder: str) -> bool:
        """Whether the message was in the inbox at the last look and is not now: then the person moved it.

        Another's copy of it may be in a shared folder too. `folder` stays selected.
        """
        uids = [uid for uid, one in self._state.uids(self._settings.inbox).items() if one == identity]
        gone = bool(uids) and not remain(self._imap, self._settings.inbox, uids)
        self._imap.select_folder(folder, readonly=True)
        return gone

    def _free(self, box: Box) -> str:
        """The folder's label, unless a folder renamed since has it."""
        taken = {folder.label for name, folder in self._state.folders().items() if name != box.name}
        label = self._state.label_of(box.label)
        return label if label not in taken else box.name if box.name not in taken else f"{box.name}#2"

    # ---- the inbox

    def _inbox(self, now: Status, handles: bool) -> None:
        inbox = self._settings.inbox
        for uid, identity, first in self._changes(inbox, inbox, now):
            if not self._state.is_seen(identity):
                if first or not handles:
                    self._state.see(identity)
                else:
                    self._handle(uid, now.uidvalidity, identity)
                continue
            filed = self._state.actions("filed", identity, (*PENDING, "undone"))
            twin = any(one == identity for other, one in self._state.uids(inbox).items() if other != uid)
            if any(one.fate in ("open", "unjudged") and self._still_filed(one) for one in filed):
                filed, twin = [], True  # sent to the person and to a list, a message comes twice
            back = [one for one in filed if one.fate == "undone" or self._clerk.came_back(one)]
            if back:
                self._learning.keep(uid, identity)
            elif handles and not filed and (twin or self._is_open(identity)):
                # Another message under the same Message-ID, or one of which `deliver` was not sure.
                self._handle(uid, now.uidvalidity, identity)

    def _is_open(self, identity: str) -> bool:
        """Whether something was predicted for the message, and nothing suggested yet."""
        return self._state.prediction(identity) is not None and not self._state.actions("suggested", identity)

    def _still_filed(self, action: Action) -> bool:
        """Whether what we filed is where we put it: then what is in the inbox under its Message-ID is another message."""
        if action.uid is None:
            return action.at >= self._began  # filed since the folders were looked at
        there = False
        with self._odd(action.folder):
            there = remain(self._imap, action.folder, [action.uid], action.uidvalidity)
        self._imap.select_folder(self._settings.inbox, readonly=True)
        return there

    def _handle(self, uid: int, uidvalidity: int, identity: str) -> None:
        self._imap.select_folder(self._settings.inbox, readonly=True)
        raw = message(self._imap, uid, self._report)
        if raw is not None:
            self._clerk.handle(uid, uidvalidity, identity, read(raw))

    def _kept(self, uidvalidity: int) -> None:
        """Answered from the inbox, or read and left there for days: it belongs there, and that is learned."""
        waiting = self._state.waiting(self._settings.inbox)
        if not waiting:
            return
        selected = self._imap.select_folder(self._settings.inbox, readonly=True)
        if selected.get(b"UIDVALIDITY", uidvalidity) != uidvalidity:
            return
        due = time.time() - self._settings.keep
        answered, seen = (set(messages_of(self._imap, flag)) for flag in ("ANSWERED", "SEEN"))
        for uid, (identity, at) in waiting.items():
            if uid in answered or (uid in seen and at <= due):
                self._learning.keep(uid, identity)
