"""What the person's choice teaches: the event, by the id of the prediction that it judges, and the end of what we did."""

from __future__ import annotations

from imapclient import IMAPClient

from ..client import Client
from ..exceptions import Gone, NotFound
from ..payloads import JSON
from .bookkeeping import MailState, feedback_id
from .copies import Copy, content_digest
from .extract import features
from .filing import WatchSettings
from .folder_names import INBOX
from .mailboxes import message
from .message import Report

__all__ = ["PENDING", "Learning"]

PENDING = ("intended", "open", "gone", "unjudged")
"""Fates of what was filed and is not judged."""


class Learning:
    """Teaches the learner where messages of the selected folder belong."""

    def __init__(
        self, imap: IMAPClient, client: Client, state: MailState, settings: WatchSettings, report: Report
    ) -> None:
        self._imap, self._client, self._state = imap, client, state
        self._settings, self._report = settings, report

    def learn(self, uid: int, identity: str, label: str, folder: str) -> None:
        """The person put the message there, or left it where we had: that is the truth."""
        if self._teach(uid, identity, label):
            self._end(identity, folder)
            self._report(f"{folder}: learned <{identity}>")

    def keep(self, uid: int, identity: str) -> None:
        """The message belongs into the inbox."""
        inbox = self._settings.inbox
        is_known = self._settings.dry_run or self._state.is_learned(feedback_id(identity, INBOX))
        if not is_known:
            self._imap.select_folder(inbox, readonly=True)
            if self._teach(uid, identity, INBOX):
                self._report(f"{inbox}: learned <{identity}>")
        self._end(identity, inbox)

    def _end(self, identity: str, folder: str) -> None:
        """The message belongs into `folder`: what we did with it was right, or not."""
        filed = self._state.actions("filed", identity, (*PENDING, "undone"))
        others = [one for kind in ("suggested", "audited") for one in self._state.actions(kind, identity)]
        for action in [*filed, *others]:
            self._state.set_fate(action.id, "confirmed" if action.folder == folder else "corrected")
        self._state.see(identity)

    def _teach(self, uid: int, identity: str, label: str) -> bool:
        """False if there was nothing to learn from: the message may have gone away meanwhile."""
        if self._settings.dry_run:
            return True
        raw = message(self._imap, uid, self._report)
        names = features(raw) if raw else None
        truth: JSON = {"label": label, "feedback_id": feedback_id(identity, label)}
        version = self._taught(identity, truth, names)
        if version is None:
            return False
        copies = [] if names is None else [Copy(content_digest(names), label, identity)]
        self._state.mark_learned([truth["feedback_id"]], version, copies)
        return True

    def _taught(self, identity: str, truth: JSON, names: list[str] | None) -> int | None:
        """The version with the event."""
        predicted = self._state.prediction(identity)
        if predicted and predicted.prediction_id:
            event = {"prediction_id": predicted.prediction_id, **truth}
            try:
                return self._client.feedback(self._state.learner, event).version
            except (Gone, NotFound):  # it was too long ago: the message itself is as good
                pass
        if names is None:
            return None
        known = self._state.with_copies(names, identity)
        return self._client.feedback(self._state.learner, {"features": known, **truth}).version
