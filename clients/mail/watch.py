"""One look at an account: learn what the person moved, then rank, suggest or file what is new in the inbox.

The server is asked for what changed since the last look, so nothing is missed while nobody watched. Whatever is learned
or done is written down so that a crash at any point repeats at most a request that the service knows as a duplicate, and
our own moves are never mistaken for the person's. Nothing is ever deleted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientAbortError, IMAPClientError

from ..client import Client
from ..errors import Gone, NotFound
from ..replies import Prediction
from .account import Box, boxes
from .certainty import WINDOW, Certainty, Round
from .extract import features
from .message import key, read_headers
from .sources import MAX_BYTES
from .state import Action, Folder, State, feedback_id

__all__ = ["Settings", "Watcher", "keyword"]

FETCH = 200
_STATUS = ("UIDVALIDITY", "UIDNEXT", "MESSAGES")


@dataclass(frozen=True, slots=True)
class Settings:
    """How to watch. `mode` is `suggest` or `file`; `settle` the seconds after which a filed and read message was right."""

    mode: str = "suggest"
    precision: float = 0.95
    exclude: Sequence[str] = ()
    inbox: str = "INBOX"
    dry_run: bool = False
    settle: float = 86_400.0


class Watcher:
    """Looks at an account through `imap`; `report` is told, in a line, of everything done."""

    def __init__(
        self,
        imap: IMAPClient,
        client: Client,
        state: State,
        settings: Settings,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._imap, self._client, self._state = imap, client, state
        self._settings, self._report = settings, report
        self._can_move = imap.has_capability("MOVE")
        self._gmail = imap.has_capability("X-GM-EXT-1")

    def look(self) -> None:
        """See what changed, and do what is to do."""
        # Taken before the folders are looked at: what leaves the inbox from here on is a change for the next look.
        inbox = self._status(self._settings.inbox)
        found = boxes(self._imap, self._settings.inbox, self._settings.exclude)
        self._follow(found)
        for box in found:
            try:
                self._folder(box)
            except IMAPClientAbortError:
                raise
            except IMAPClientError as error:  # this folder cannot be read; the others can
                self._report(f"{box.name}: {error}")
        self._settle()
        self._inbox(inbox)

    def choose(self, uid: int, message: str, folder: str) -> bool:
        """The person chose a folder for a message of the inbox: learn that, then put it there. False if it is gone.

        Learned first: the next look finds it moved, and known; a crash in between leaves it in the inbox, to be chosen
        again, and the service knows the event.
        """
        self._imap.select_folder(self._settings.inbox)
        if (uid, message) not in self._keys([uid]):
            return False
        self._learn(uid, message, self._state.folders()[folder].label, folder)
        if not self._settings.dry_run:
            self._imap.move([uid], folder)
        return True

    # ---- folders

    def _follow(self, found: Sequence[Box]) -> None:
        """A folder that is gone lives on in a new one that holds its messages; else it is forgotten."""
        known = self._state.folders()
        names = {box.name for box in found} | {self._settings.inbox}
        fresh = [box.name for box in found if box.name not in known]
        for old in [folder for name, folder in known.items() if name not in names]:
            heir = next((name for name in fresh if self._same(old, name)), None)
            if heir is None:
                self._state.forget_folder(old.name)
                self._report(f"{old.name}: gone")
            else:
                self._state.rename_folder(old.name, heir)
                fresh.remove(heir)
                self._report(f"{old.name}: is now {heir}")

    def _same(self, old: Folder, name: str) -> bool:
        before = set(self._state.uids(old.name).values())
        if not before:
            return bool(self._status(name)[0] == old.uidvalidity)
        self._imap.select_folder(name, readonly=True)
        now = {key for _, key in self._keys(self._imap.search())}
        return 2 * len(before & now) > len(before)

    def _status(self, name: str) -> tuple[int, int, int]:
        status = self._imap.folder_status(name, _STATUS)
        validity, following, messages = (int(status[item.encode()]) for item in _STATUS)
        return validity, following, messages

    def _changes(self, name: str, label: str, now: tuple[int, int, int]) -> Iterator[tuple[int, str, bool]]:
        """(UID, key, is a first look) of each message new in a folder; the folder is selected, its state updated after."""
        before = self._state.folders().get(name)
        if before and now == (before.uidvalidity, before.uidnext, before.messages):
            return
        self._imap.select_folder(name, readonly=True)
        known, uids = self._state.uids(name), self._imap.search()
        stayed: set[str] = set()
        if before and before.uidvalidity != now[0]:
            # The UIDs mean other messages now; these are still known by their Message-IDs.
            stayed = set(known.values())
            self._state.leave(name, known)
            known = {}
        self._state.leave(name, known.keys() - set(uids))
        for uid, found in self._keys([uid for uid in uids if uid not in known]):
            if found not in stayed:
                yield uid, found, before is None
            self._state.place(name, uid, found)
        self._state.put_folder(Folder(name, *now, label))

    def _keys(self, uids: Sequence[int]) -> Iterator[tuple[int, str]]:
        for start in range(0, len(uids), FETCH):
            replies = self._imap.fetch(uids[start : start + FETCH], ["BODY.PEEK[HEADER]"])
            for uid in sorted(replies):
                if b"BODY[HEADER]" in replies[uid]:  # else it went away meanwhile
                    yield uid, key(read_headers(replies[uid][b"BODY[HEADER]"]))

    def _features(self, uid: int) -> dict[str, float] | None:
        reply: dict[bytes, Any] = self._imap.fetch([uid], [f"BODY.PEEK[]<0.{MAX_BYTES}>"]).get(uid, {})
        raw = reply.get(b"BODY[]<0>", reply.get(b"BODY[]"))
        return None if raw is None else features(raw)

    # ---- learning

    def _folder(self, box: Box) -> None:
        known = self._state.folders().get(box.name)
        label = known.label if known else self._free(box)
        for uid, message, first in self._changes(box.name, label, self._status(box.name)):
            ours = [action for action in self._state.actions("filed", message) if action.folder == box.name]
            for action in ours:
                self._state.set_fate(action.id, "open")
            if ours or self._state.is_learned(feedback_id(message, label)):
                continue
            if first and not self._state.is_seen(message):
                self._state.see(message)  # it was there before we came: `train` learns those
            else:
                self._learn(uid, message, label, box.name)

    def _free(self, box: Box) -> str:
        """The folder's label, unless a folder renamed since has it."""
        taken = {folder.label for name, folder in self._state.folders().items() if name != box.name}
        return box.label if box.label not in taken else box.name if box.name not in taken else f"{box.name}#2"

    def _learn(self, uid: int, message: str, label: str, folder: str) -> None:
        """The person put the message there: that is the truth."""
        predicted = self._state.prediction(message)
        identity = feedback_id(message, label)
        truth = {"label": label, "feedback_id": identity}
        if not self._settings.dry_run and not self._feedback(uid, truth, predicted and predicted[0]):
            return
        if predicted:
            self._state.add_rounds([Round(predicted[1], predicted[2], predicted[1] == label)])
        for kind in ("filed", "suggested"):
            for action in self._state.actions(kind, message):
                self._state.set_fate(action.id, "confirmed" if action.folder == folder else "corrected")
        self._state.see(message)
        self._state.mark_learned([identity])
        self._report(f"{folder}: learned <{message}>")

    def _feedback(self, uid: int, truth: dict[str, str], prediction_id: str | None) -> bool:
        """Whether there was something to learn from: the message may have gone away meanwhile."""
        if prediction_id:
            try:
                self._client.feedback(self._state.learner, {"prediction_id": prediction_id, **truth})
            except (Gone, NotFound):  # it was too long ago: the message itself is as good
                pass
            else:
                return True
        found = self._features(uid)
        if found is not None:
            self._client.feedback(self._state.learner, {"features": found, **truth})
        return found is not None

    def _settle(self) -> None:
        """A message that we filed, that was read and left there for a while, was filed rightly."""
        due = time.time() - self._settings.settle
        for action in self._state.actions("filed"):
            uid = next(
                (uid for uid, one in self._state.uids(action.folder).items() if one == action.key), None
            )
            if action.at > due or uid is None:
                continue
            self._imap.select_folder(action.folder, readonly=True)
            if b"\\Seen" in self._imap.get_flags([uid]).get(uid, ()):
                self._judge(action, "confirmed")

    def _judge(self, action: Action, fate: str) -> None:
        predicted = self._state.prediction(action.key)
        if predicted:
            self._state.add_rounds([Round(predicted[1], predicted[2], fate == "confirmed")])
        self._state.see(action.key)
        self._state.set_fate(action.id, fate)

    # ---- the inbox

    def _inbox(self, now: tuple[int, int, int]) -> None:
        inbox = self._settings.inbox
        for uid, message, first in self._changes(inbox, inbox, now):
            if self._state.is_seen(message):
                for action in self._state.actions("filed", message):
                    self._came_back(action)
            elif first:
                self._state.see(message)
            else:
                found = self._features(uid)
                if found is not None:
                    self._decide(uid, message, found)

    def _came_back(self, action: Action) -> None:
        """A message that we filed is in the inbox: the person did not want that, or it never left."""
        if action.fate == "intended":
            self._state.set_fate(action.id, "failed")
        else:
            self._judge(action, "corrected")
            self._report(f"{action.folder}: <{action.key}> was put back")

    def _decide(self, uid: int, message: str, found: dict[str, float]) -> None:
        remember = not self._settings.dry_run
        prediction = self._client.predict(self._state.learner, {"features": found}, remember=remember)
        label = prediction.label
        self._state.see(message, prediction.prediction_id, label, prediction.margin)
        folders = {folder.label: folder.name for folder in self._state.folders().values()}
        folders.pop(self._settings.inbox, None)
        folder = next((folders[entry.name] for entry in prediction.ranking if entry.name in folders), None)
        if folder is None:
            return
        if self._settings.mode == "file" and folders.get(label or "") == folder and self._is_sure(prediction):
            self._file(uid, message, folder)
        else:
            self._suggest(uid, message, folder)

    def _is_sure(self, prediction: Prediction) -> bool:
        if prediction.label is None or prediction.margin is None or not self._can_move:
            return False
        certainty = Certainty(self._state.rounds(WINDOW), self._settings.precision)
        return prediction.margin >= certainty.least(prediction.label)

    def _file(self, uid: int, message: str, folder: str) -> None:
        done = f"{folder}: filed <{message}>"
        if self._settings.dry_run:
            self._report(done)
            return
        action = self._state.act(message, "filed", self._settings.inbox, folder)
        self._imap.select_folder(self._settings.inbox)
        try:
            self._imap.move([uid], folder)
        except IMAPClientAbortError:
            raise  # nobody knows whether it was moved: the next look will
        except IMAPClientError as error:
            self._state.set_fate(action, "failed")
            self._report(f"{folder}: <{message}> cannot be filed: {error}")
        else:
            self._state.set_fate(action, "open")
            self._report(done)

    def _suggest(self, uid: int, message: str, folder: str) -> None:
        self._report(f"{folder}: suggested for <{message}>")
        if self._settings.dry_run:
            return
        self._state.act(message, "suggested", self._settings.inbox, folder)
        if self._gmail:
            self._imap.add_gmail_labels([uid], [f"feedrank/{folder}"])
            return
        selected = self._imap.select_folder(self._settings.inbox)
        if b"\\*" in selected.get(b"PERMANENTFLAGS", ()):
            self._imap.add_flags([uid], [keyword(folder)])


def keyword(folder: str) -> str:
    """The IMAP keyword that suggests a folder; a keyword is an atom, so other characters become `_`."""
    return "feedrank-" + re.sub(r"[^A-Za-z0-9.-]+", "_", folder)[:100]
