"""What the mail commands remember between runs, in one small SQLite file: never any text of a message.

The tables are in `state_tables`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from .copies import Copy, content_digest, with_copies
from .state_tables import OF_LEARNER, open_state

__all__ = ["Action", "Folder", "MailState", "Predicted", "feedback_id"]

_TOGETHER = 500  # values in one query: old SQLites take 999


def feedback_id(key: str, label: str) -> str:
    """The id of the event that message `key` belongs into `label`: the same from every source, at every time."""
    return "mail-" + hashlib.sha256(f"{key}\0{label}".encode()).hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder as it was last seen."""

    name: str
    uidvalidity: int
    uidnext: int
    messages: int
    label: str


@dataclass(frozen=True, slots=True)
class Predicted:
    """What was predicted for a message whose truth is not known yet, and when."""

    prediction_id: str | None
    label: str
    at: float


@dataclass(frozen=True, slots=True)
class Action:
    """Something we did to a message. `fate`: intended, then failed or open, then confirmed, corrected, undone or gone.

    What nobody opens for some days is `unjudged`; what becomes of it later counts all the same.

    `uid` and `uidvalidity` say where the message arrived, once that is known.
    """

    id: int
    key: str
    kind: str
    origin: str
    folder: str
    at: float
    fate: str
    uid: int | None = None
    uidvalidity: int | None = None


class MailState:
    """The file at `path`, for one IMAP account and one learner of one service. Every method is one transaction."""

    path: str | Path
    account: str
    learner: str
    service: str

    def __init__(self, path: str | Path, account: str = "", learner: str = "mail", service: str = "") -> None:
        self.path, self.account, self.learner, self.service = path, account, learner, service
        self._scope = f"{service}#{learner}"
        self._db = open_state(path)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> MailState:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- what was learned

    def is_learned(self, identity: str) -> bool:
        """Whether the service has the event of this id."""
        return bool(self._all("SELECT 1 FROM learned WHERE learner = ? AND id = ?", self._scope, identity))

    def learned_among(self, identities: Sequence[str]) -> set[str]:
        """Those of them that the service has."""
        return {row[0] for row in self._among("SELECT id FROM learned WHERE learner = ? AND id", identities)}

    def mark_learned(self, identities: Sequence[str], version: int, copies: Sequence[Copy] = ()) -> None:
        """The service has these events, its log goes to `version` with the last of them; `copies` says what they are."""
        if not identities:
            return
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            rows = [(self._scope, identity) for identity in identities]
            self._db.executemany("INSERT OR IGNORE INTO learned VALUES (?, ?)", rows)
            said = [(self._scope, *copy) for copy in copies]
            self._db.executemany("INSERT OR IGNORE INTO copies VALUES (?, ?, ?, ?)", said)
            row = (self._scope, version, identities[-1])
            self._db.execute("INSERT OR REPLACE INTO logs VALUES (?, ?, ?)", row)

    def copies(self, digests: Sequence[str], but: str = "") -> dict[str, list[str]]:
        """The labels of the messages of each content that were learned; the message `but` is no copy of itself."""
        labels: dict[str, list[str]] = {}
        sql = "SELECT digest, label, key FROM copies WHERE learner = ? AND digest"
        for digest, label, key in self._among(sql, digests):
            if key != but:
                labels.setdefault(digest, []).append(label)
        return labels

    def with_copies(self, names: Sequence[str], key: str) -> list[str]:
        """The features of the message `key`, and where its copies are."""
        digest = content_digest(names)
        return with_copies(names, self.copies([digest], key).get(digest, ()))

    def log(self) -> tuple[int, str] | None:
        """How far the learner's log went when an event was last learned, and that event's id."""
        rows = self._all("SELECT version, id FROM logs WHERE learner = ?", self._scope)
        return (rows[0][0], rows[0][1]) if rows else None

    def forget_learner(self) -> None:
        """The learner is another one than that which had our events."""
        for table in OF_LEARNER:
            self._db.execute(f"DELETE FROM {table} WHERE learner = ?", (self._scope,))  # noqa: S608

    def label_of(self, folder: str) -> str:
        """The label of a folder in the learner: its own name, or the one that it had when it was first learned."""
        rows = self._all("SELECT label FROM labels WHERE learner = ? AND folder = ?", self._scope, folder)
        return str(rows[0][0]) if rows else folder

    def folder_of(self, label: str) -> str:
        """What the folder with this label is called now."""
        rows = self._all("SELECT folder FROM labels WHERE learner = ? AND label = ?", self._scope, label)
        return str(rows[0][0]) if rows else label

    def relabel(self, folder: str, label: str) -> None:
        """From now on `folder` is the one with this label; what had it before is renamed."""
        self._db.execute("DELETE FROM labels WHERE learner = ? AND label = ?", (self._scope, label))
        row = (self._scope, folder, label)
        self._db.execute("INSERT OR REPLACE INTO labels VALUES (?, ?, ?)", row)

    # ---- what was filed

    def checked(self) -> tuple[int, int]:
        """Audits that the person has judged, and how many of them were right."""
        sql = (
            "SELECT COUNT(*), TOTAL(fate = 'confirmed') FROM actions"
            " WHERE account = ? AND kind = 'audited' AND fate IN ('confirmed', 'corrected')"
        )
        ((count, right),) = self._all(sql, self.account)
        return count, int(right)

    def filed_since(self, at: float) -> dict[str, int]:
        """How many messages were filed since then, by their fate."""
        sql = "SELECT fate, COUNT(*) FROM actions WHERE account = ? AND kind = 'filed' AND at >= ? GROUP BY fate"
        return {fate: count for fate, count in self._all(sql, self.account, at) if fate != "failed"}

    # ---- messages

    def is_seen(self, key: str) -> bool:
        """Whether the message was seen before."""
        return bool(self._all("SELECT 1 FROM seen WHERE account = ? AND key = ?", self.account, key))

    def see(self, key: str, predicted: Predicted | None = None) -> None:
        """Remember the message, and what was predicted for it; without that, its truth is known or does not matter."""
        one = predicted or Predicted(None, "", time.time())
        row = (one.prediction_id, one.label if predicted else None, one.at)
        self._db.execute("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?)", (self.account, key, *row))

    def prediction(self, key: str) -> Predicted | None:
        """What was predicted for the message, if its truth is not known yet."""
        sql = "SELECT prediction_id, label, at FROM seen WHERE account = ? AND key = ? AND label IS NOT NULL"
        rows = self._all(sql, self.account, key)
        return Predicted(*rows[0]) if rows else None

    def waiting(self, folder: str) -> dict[int, tuple[str, float]]:
        """(key, when it was seen) by UID of the messages of a folder whose truth is not known yet."""
        sql = (
            "SELECT places.uid, places.key, seen.at FROM places JOIN seen"
            " ON seen.account = places.account AND seen.key = places.key"
            " WHERE places.account = ? AND places.folder = ? AND seen.label IS NOT NULL"
        )
        return {uid: (key, at) for uid, key, at in self._all(sql, self.account, folder)}

    def place(self, folder: str, uid: int, key: str) -> None:
        """The message was seen there."""
        self._db.execute(
            "INSERT OR REPLACE INTO places VALUES (?, ?, ?, ?)", (self.account, folder, uid, key)
        )

    def uids(self, folder: str) -> dict[int, str]:
        """The messages of a folder by UID, as last seen."""
        return dict(
            self._all("SELECT uid, key FROM places WHERE account = ? AND folder = ?", self.account, folder)
        )

    def leave(self, folder: str, uids: Iterable[int]) -> None:
        """These are no longer there."""
        rows = [(self.account, folder, uid) for uid in uids]
        self._many("DELETE FROM places WHERE account = ? AND folder = ? AND uid = ?", rows)

    # ---- folders

    def folders(self) -> dict[str, Folder]:
        """The folders as last seen, by name."""
        sql = "SELECT name, uidvalidity, uidnext, messages, label FROM folders WHERE account = ?"
        return {row[0]: Folder(*row) for row in self._all(sql, self.account)}

    def names_of(self, folder: Folder) -> list[str]:
        """What a person may call it: as the server does, as the commands print it, as it was called when it was learned."""
        return [folder.name, self.folder_of(folder.label), folder.label]

    def put_folder(self, folder: Folder) -> None:
        """The folder as it is now."""
        row = (folder.name, folder.uidvalidity, folder.uidnext, folder.messages, folder.label)
        self._db.execute("INSERT OR REPLACE INTO folders VALUES (?, ?, ?, ?, ?, ?)", (self.account, *row))

    def rename_folder(self, old: str, new: str) -> None:
        """The same folder under another name."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            for sql in (
                "UPDATE OR REPLACE folders SET name = ? WHERE account = ? AND name = ?",
                "UPDATE OR REPLACE places SET folder = ? WHERE account = ? AND folder = ?",
                "UPDATE actions SET folder = ? WHERE account = ? AND folder = ?",
            ):
                self._db.execute(sql, (new, self.account, old))

    def forget_folder(self, name: str) -> None:
        """The folder is gone, or its UIDs mean nothing any more; what was learned stays."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM folders WHERE account = ? AND name = ?", (self.account, name))
            self._db.execute("DELETE FROM places WHERE account = ? AND folder = ?", (self.account, name))

    # ---- actions

    def act(self, key: str, kind: str, origin: str, folder: str) -> int:
        """Write an action down, before it is done: a crash in between must not make it look like the person's."""
        sql = (
            "INSERT INTO actions (account, key, kind, origin, folder, at, fate)"
            " VALUES (?, ?, ?, ?, ?, ?, 'intended')"
        )
        cursor = self._db.execute(sql, (self.account, key, kind, origin, folder, time.time()))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def set_fate(self, identity: int, fate: str) -> None:
        """What became of it."""
        self._db.execute("UPDATE actions SET fate = ? WHERE id = ?", (fate, identity))

    def arrived(self, identity: int, uid: int, uidvalidity: int) -> None:
        """The message that an action moved is there."""
        sql = "UPDATE actions SET fate = 'open', uid = ?, uidvalidity = ? WHERE id = ?"
        self._db.execute(sql, (uid, uidvalidity, identity))

    def actions(
        self, kind: str, key: str | None = None, fates: Sequence[str] = ("intended", "open")
    ) -> list[Action]:
        """Actions of a kind whose end is open, or with another fate, newest first."""
        marks = ", ".join("?" * len(fates))
        sql = (
            "SELECT id, key, kind, origin, folder, at, fate, uid, uidvalidity FROM actions"  # noqa: S608
            f" WHERE account = ? AND kind = ? AND fate IN ({marks}) AND (? IS NULL OR key = ?) ORDER BY id DESC"
        )
        return [Action(*row) for row in self._all(sql, self.account, kind, *fates, key, key)]

    def copy(self) -> MailState:
        """The same in memory: what a dry run writes, nobody reads."""
        other = MailState(":memory:", self.account, self.learner, self.service)
        self._db.backup(other._db)
        return other

    # ---- plumbing

    def _all(self, sql: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        with closing(self._db.execute(sql, values)) as cursor:
            return cursor.fetchall()

    def _among(self, sql: str, values: Sequence[str]) -> Iterator[tuple]:  # type: ignore[type-arg]
        """The rows of `sql`, which ends with the column that is to be one of `values`; many to a query."""
        for start in range(0, len(values), _TOGETHER):
            some = values[start : start + _TOGETHER]
            yield from self._all(f"{sql} IN ({', '.join('?' * len(some))})", self._scope, *some)

    def _many(self, sql: str, rows: list[tuple]) -> None:  # type: ignore[type-arg]
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(sql, rows)
