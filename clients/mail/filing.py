"""What to do with a message: nothing, suggest a folder, or file it.

The learner is asked under `min_precision`, by account (docs/sure.md): what it decides may be filed. The person's choice,
sent back by the id of the prediction, judges it.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientAbortError, IMAPClientError

from ..client import Client
from ..payloads import JSON
from .bookkeeping import Action, Folder, MailState, Predicted
from .extract import of
from .folder_names import INBOX, SUGGESTED
from .message import Message, Report
from .rules import Rules

__all__ = [
    "PRECISION",
    "Advice",
    "Clerk",
    "WatchSettings",
    "advise",
    "asked",
    "folder_named",
    "keyword",
    "looked_at",
]


PRECISION = 0.95


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """How to watch. `mode` is `suggest` or `file`; `settle` the seconds after which a filed and read message was right.

    After `unopened` seconds a filed message that nobody opened is unjudged.

    `keep` is the seconds after which a message that was read and stayed in the inbox belongs there.
    """

    mode: str = "suggest"
    precision: float = PRECISION
    exclude: Sequence[str] = ()
    shared: Sequence[str] = ()
    """Folders of others, by name or pattern, that the person's mail may be filed into."""
    inbox: str = "INBOX"
    archive: bool = False
    dry_run: bool = False
    settle: float = 86_400.0
    unopened: float = 3 * 86_400.0
    keep: float = 3 * 86_400.0
    rules: Rules = field(default_factory=Rules)


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do with one message. `folder` is the server's name; None: it belongs into the inbox, or nothing is known.

    An audit would be sure, but was drawn to stay in the inbox with its suggestion: the person's own move judges it.
    """

    predicted: Predicted | None
    folder: str | None
    sure: bool
    top: Sequence[str]
    audit: bool = False


def asked(names: Sequence[str], precision: float) -> JSON:
    """The request for a message of these features: what is filed is to be right so often."""
    return {"features": list(names), "min_precision": precision, "promise": "account"}


def advise(
    client: Client, state: MailState, settings: WatchSettings, message: Message, looks: bool
) -> Advice:
    """Ask the rules, then the learner. Sure: a rule says so, or the learner decides. `looks`: nobody will judge it."""
    seen = [folder for folder in state.folders().values() if folder.name != settings.inbox]
    fixed = folder_named(state, seen, settings.rules.folder(message))
    if fixed is not None:
        return Advice(None, fixed, True, [fixed])
    names = state.with_copies(of(message), message.id)
    request = asked(names, settings.precision)
    if looks:  # of a dry run, however often it is made, there is one prediction
        request["prediction_id"] = looked_at(request)
    prediction = client.predict(state.learner, request)
    if not prediction.ranking or prediction.margin is None:
        return Advice(None, None, False, [])
    label = prediction.ranking[0].key
    predicted = Predicted(prediction.prediction_id, label, time.time())
    if label == INBOX or settings.rules.keeps(message):
        return Advice(predicted, None, False, [])
    folders = {
        folder.label: folder.name
        for folder in seen
        if not settings.rules.never or not settings.rules.closed(message, state.names_of(folder))
    }
    top = [folders[entry.label] for entry in prediction.ranking if entry.label in folders]
    is_first = bool(top) and top[0] == folders.get(label)
    sure = is_first and prediction.label is not None
    return Advice(predicted, top[0] if top else None, sure, top[:3], is_first and bool(prediction.audit))


def looked_at(request: JSON) -> str:
    """The id of a prediction that nobody will judge: the same for the same question."""
    return "look-" + hashlib.sha256(json.dumps(request).encode()).hexdigest()[:40]


def folder_named(state: MailState, folders: Sequence[Folder], name: str | None) -> str | None:
    """What the server calls the folder that a person calls `name`; None if there is none."""
    if name is None:
        return None
    for names in zip(*map(state.names_of, folders), strict=True):  # the server's names first
        if name in names:
            return folders[names.index(name)].name
    return None


class Clerk:
    """Suggests and files messages of the inbox, addressed by UID and UIDVALIDITY; writes down what it does."""

    def __init__(
        self, imap: IMAPClient, client: Client, state: MailState, settings: WatchSettings, report: Report
    ) -> None:
        self._imap, self._client, self._state = imap, client, state
        self._settings, self._report = settings, report
        self._can_move = imap.has_capability("MOVE")
        self._gmail = imap.has_capability("X-GM-EXT-1")

    def handle(self, uid: int, uidvalidity: int, key: str, message: Message) -> tuple[Advice, bool]:
        """Decide on a message of the inbox, and do it; whether it was filed."""
        advice = advise(self._client, self._state, self._settings, message, looks=self._settings.dry_run)
        self._state.see(key, advice.predicted)
        if advice.folder is None:
            return advice, False
        if self._settings.mode == "file" and advice.sure and self._can_move:
            return advice, self._file(uid, uidvalidity, key, advice.folder)
        self._suggest(uid, uidvalidity, key, advice.folder, advice.audit and self._settings.mode == "file")
        return advice, False

    def _open(self, uidvalidity: int) -> dict[bytes, object] | None:
        """Select the inbox to change it; None if its UIDs mean other messages by now."""
        selected: dict[bytes, object] = self._imap.select_folder(self._settings.inbox)
        return selected if selected.get(b"UIDVALIDITY", uidvalidity) == uidvalidity else None

    def _file(self, uid: int, uidvalidity: int, key: str, folder: str) -> bool:
        done = f"{folder}: filed <{key}>"
        if self._settings.dry_run:
            self._report(done)
            return True
        action = self._state.act(key, "filed", self._settings.inbox, folder)
        if self._open(uidvalidity) is None:
            self._state.set_fate(action, "failed")
            return False
        try:
            self._imap.move([uid], folder)
        except IMAPClientAbortError:
            raise  # nobody knows whether it was moved: the next look will
        except IMAPClientError as error:
            self._state.set_fate(action, "failed")
            self._report(f"{folder}: <{key}> cannot be filed: {error}")
            return False
        self._state.set_fate(action, "open")
        self._report(done)
        return True

    def _suggest(self, uid: int, uidvalidity: int, key: str, folder: str, audit: bool) -> None:
        checked = ", which stays in the inbox to be checked" if audit else ""
        self._report(f"{folder}: suggested for <{key}>{checked}")
        if self._settings.dry_run:
            return
        self._state.act(key, "audited" if audit else "suggested", self._settings.inbox, folder)
        selected = self._open(uidvalidity)
        if selected is None:
            return
        try:
            if self._gmail:
                self._imap.add_gmail_labels([uid], [f"{SUGGESTED}/{folder}"])
            elif b"\\*" in selected.get(b"PERMANENTFLAGS", ()):  # type: ignore[operator]
                self._imap.add_flags([uid], [keyword(folder)])
        except IMAPClientAbortError:
            raise
        except IMAPClientError as error:
            self._report(f"{folder}: <{key}> cannot be marked: {error}")

    def came_back(self, action: Action) -> bool:
        """A message that we filed is in the inbox: the person did not want that (True), or it never left."""
        if action.fate == "intended":
            self._state.set_fate(action.id, "failed")
            return False
        self._state.set_fate(action.id, "corrected")
        self._report(f"{action.folder}: <{action.key}> was put back")
        return True


def keyword(folder: str) -> str:
    """The IMAP keyword that suggests a folder: an ASCII atom, so other names get a digest, and none collide."""
    name = re.sub(r"[^A-Za-z0-9.-]+", "_", folder)[:60]
    if name == folder:
        return f"feedrank-{name}"
    return f"feedrank-{name.strip('_')}-{hashlib.sha256(folder.encode()).hexdigest()[:8]}"
