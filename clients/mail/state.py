"""What the mail commands remember between runs, in one small SQLite file: never any text of a message.

folders   a mailbox folder as last seen, and the label it has in the learner (kept when the folder is renamed)
places    where each message was last seen: folder and UID
seen      each message known: what was predicted for it
learned   (message, label) pairs that the service has
actions   what we did: filed, suggested; and what became of it
rounds    certainty and rightness of predictions whose truth the person showed: the threshold is made of these
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from .certainty import Round

__all__ = ["Action", "Folder", "State", "feedback_id"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS folders (account TEXT, name TEXT, uidvalidity INTEGER, uidnext INTEGER, messages INTEGER,
    label TEXT NOT NULL, PRIMARY KEY (account, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS places (account TEXT, folder TEXT, uid INTEGER, key TEXT NOT NULL,
    PRIMARY KEY (account, folder, uid)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS places_key ON places (account, key);
CREATE TABLE IF NOT EXISTS seen (account TEXT, key TEXT, prediction_id TEXT, label TEXT, margin REAL,
    PRIMARY KEY (account, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS learned (learner TEXT, id TEXT, PRIMARY KEY (learner, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS actions (id INTEGER PRIMARY KEY, account TEXT, key TEXT, kind TEXT, origin TEXT, folder TEXT,
    at REAL, fate TEXT);
CREATE INDEX IF NOT EXISTS actions_key ON actions (account, key);
CREATE TABLE IF NOT EXISTS rounds (id INTEGER PRIMARY KEY, learner TEXT, label TEXT, margin REAL, right INTEGER);
PRAGMA user_version = 1;
"""


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
class Action:
    """Something we did to a message. `fate`: intended, then failed or open, then confirmed, corrected or undone."""

    id: int
    key: str
    kind: str
    origin: str
    folder: str
    at: float
    fate: str


class State:
    """The file at `path`, for one IMAP account and one learner. Every method is one transaction."""

    def __init__(self, path: str | Path, account: str = "", learner: str = "mail") -> None:
        if str(path) != ":memory:":
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        self.account, self.learner = account, learner
        self._db = sqlite3.connect(path, isolation_level=None, timeout=10.0)
        version = self._one("PRAGMA user_version")[0]
        if version not in (0, 1):
            self._db.close()
            raise ValueError(f"{path} was written by a newer version")
        self._db.execute("PRAGMA journal_mode = WAL")
        # What a power cut takes is done again, and the service knows it as a duplicate.
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> State:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- what was learned

    def is_learned(self, identity: str) -> bool:
        """Whether the service has the event of this id."""
        return bool(self._all("SELECT 1 FROM learned WHERE learner = ? AND id = ?", self.learner, identity))

    def mark_learned(self, identities: Iterable[str]) -> None:
        """The service has these events."""
        rows = [(self.learner, identity) for identity in identities]
        self._many("INSERT OR IGNORE INTO learned VALUES (?, ?)", rows)

    def add_rounds(self, rounds: Iterable[Round]) -> None:
        """Predictions whose truth is known now."""
        rows = [(self.learner, one.label, one.margin, one.right) for one in rounds]
        self._many("INSERT INTO rounds (learner, label, margin, right) VALUES (?, ?, ?, ?)", rows)

    def rounds(self, latest: int) -> list[Round]:
        """The latest of them, oldest first."""
        sql = "SELECT label, margin, right FROM rounds WHERE learner = ? ORDER BY id DESC LIMIT ?"
        return [
            Round(label, margin, bool(right)) for label, margin, right in self._all(sql, self.learner, latest)
        ][::-1]

    # ---- messages

    def is_seen(self, key: str) -> bool:
        """Whether the message was met before."""
        return bool(self._all("SELECT 1 FROM seen WHERE account = ? AND key = ?", self.account, key))

    def see(
        self,
        key: str,
        prediction_id: str | None = None,
        label: str | None = None,
        margin: float | None = None,
    ) -> None:
        """Remember the message, and what was predicted for it."""
        self._db.execute(
            "INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?)",
            (self.account, key, prediction_id, label, margin),
        )

    def prediction(self, key: str) -> tuple[str | None, str, float] | None:
        """(prediction id, label, margin) of the message, if its truth is not known yet; `see` without them ends that."""
        sql = "SELECT prediction_id, label, margin FROM seen WHERE account = ? AND key = ? AND margin IS NOT NULL"
        found = self._all(sql, self.account, key)
        return (found[0][0], found[0][1], found[0][2]) if found else None

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
        sql = "INSERT INTO actions (account, key, kind, origin, folder, at, fate) VALUES (?, ?, ?, ?, ?, ?, 'intended')"
        cursor = self._db.execute(sql, (self.account, key, kind, origin, folder, time.time()))
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def set_fate(self, identity: int, fate: str) -> None:
        """What became of it."""
        self._db.execute("UPDATE actions SET fate = ? WHERE id = ?", (fate, identity))

    def actions(self, kind: str, key: str | None = None) -> list[Action]:
        """Actions of a kind whose end is open, newest first."""
        sql = (
            "SELECT id, key, kind, origin, folder, at, fate FROM actions WHERE account = ? AND kind = ?"
            " AND fate IN ('intended', 'open') AND (? IS NULL OR key = ?) ORDER BY id DESC"
        )
        return [Action(*row) for row in self._all(sql, self.account, kind, key, key)]

    def copy(self) -> State:
        """The same in memory: what a dry run writes, nobody reads."""
        other = State(":memory:", self.account, self.learner)
        self._db.backup(other._db)
        return other

    # ---- plumbing

    def _all(self, sql: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        with closing(self._db.execute(sql, values)) as cursor:
            return cursor.fetchall()

    def _one(self, sql: str) -> tuple[int]:
        return self._all(sql)[0]

    def _many(self, sql: str, rows: list[tuple]) -> None:  # type: ignore[type-arg]
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(sql, rows)
