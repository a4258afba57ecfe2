"""The tables of the state file, and how a file of an older version gets them.

folders   a mailbox folder as last seen, and the label it has in the learner (kept when the folder is renamed)
places    where each message was last seen: folder and UID
seen      each message known: what was predicted for it, and when
learned   (message, label) pairs that the service has, and `logs`: how far its log went when it had them
copies    a digest of what each of them says, and the label that it got (see `copies`)
labels    folders that were renamed, and the label that they keep in the learner
actions   what we did: filed, suggested, audited (suggested, though it would have been filed); and what became of it

What belongs to a learner is kept by its name and the service that has it: another store has learned nothing yet.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from feedrank.files import create_private

__all__ = ["OF_LEARNER", "open_state"]

OF_LEARNER = ("learned", "logs", "copies")
"""The tables whose rows belong to one learner of one service."""
_VERSION = 5
_SCHEMA = """
CREATE TABLE IF NOT EXISTS folders (account TEXT, name TEXT, uidvalidity INTEGER, uidnext INTEGER, messages INTEGER,
    label TEXT NOT NULL, PRIMARY KEY (account, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS places (account TEXT, folder TEXT, uid INTEGER, key TEXT NOT NULL,
    PRIMARY KEY (account, folder, uid)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS places_key ON places (account, key);
CREATE TABLE IF NOT EXISTS seen (account TEXT, key TEXT, prediction_id TEXT, label TEXT, at REAL,
    PRIMARY KEY (account, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS learned (learner TEXT, id TEXT, PRIMARY KEY (learner, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS logs (learner TEXT PRIMARY KEY, version INTEGER, id TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS copies (learner TEXT, digest TEXT, label TEXT, key TEXT,
    PRIMARY KEY (learner, digest, label, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS labels (learner TEXT, folder TEXT, label TEXT, PRIMARY KEY (learner, folder)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS actions (id INTEGER PRIMARY KEY, account TEXT, key TEXT, kind TEXT, origin TEXT, folder TEXT,
    at REAL, fate TEXT, uid INTEGER, uidvalidity INTEGER);
CREATE INDEX IF NOT EXISTS actions_key ON actions (account, key);
DROP TABLE IF EXISTS senders; DROP TABLE IF EXISTS judgements; DROP TABLE IF EXISTS credits;
PRAGMA user_version = 5;
"""
# Versions 2 to 4 kept the record of filing here, which is the learner's now (`min_precision`); it is gathered anew.
_TO_FIFTH = """
ALTER TABLE seen RENAME TO seen_before; ALTER TABLE actions RENAME TO actions_before; DROP INDEX IF EXISTS actions_key;
"""
_FROM_FOURTH = """
INSERT INTO seen SELECT account, key, prediction_id, label, at FROM seen_before;
INSERT INTO actions SELECT id, account, key, kind, origin, folder, at, fate, uid, uidvalidity FROM actions_before;
DROP TABLE seen_before; DROP TABLE actions_before;
"""
# The first version knew learners by name alone.
_FROM_FIRST = """
DROP TABLE learned; DROP TABLE rounds; DROP TABLE seen;
ALTER TABLE actions ADD COLUMN uid INTEGER; ALTER TABLE actions ADD COLUMN uidvalidity INTEGER;
"""


def open_state(path: str | Path) -> sqlite3.Connection:
    """The file at `path`, made if it is not there, with all tables; ValueError if a newer version wrote it."""
    if str(path) != ":memory:":
        create_private(path)
    db = sqlite3.connect(path, isolation_level=None, timeout=10.0)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if not 0 <= version <= _VERSION:
        db.close()
        raise ValueError(f"{path} was written by a newer version")
    _use_wal(db)
    # What a power cut takes is done again, and the service knows it as a duplicate.
    db.execute("PRAGMA synchronous = NORMAL")
    if version < _VERSION:
        before = {0: "", 1: _FROM_FIRST}.get(version, _TO_FIFTH)
        after = _FROM_FOURTH if version > 1 else ""
        db.executescript(f"BEGIN IMMEDIATE; {before}{_SCHEMA}{after} COMMIT;")
    return db


def _use_wal(db: sqlite3.Connection) -> None:
    """Ask again while another process that opens the file asks too: for this change alone SQLite does not wait."""
    for pause in (0.01, 0.1, 1.0, 5.0):
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            time.sleep(pause)
    db.execute("PRAGMA journal_mode = WAL")
