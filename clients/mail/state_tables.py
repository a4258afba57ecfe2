"""The tables of the state file, and how a file of an older version gets them.

folders   a mailbox folder as last seen, and the label it has in the learner (kept when the folder is renamed)
places    where each message was last seen: folder and UID
seen      each message known: what was predicted for it, and when
learned   (message, label) pairs that the service has, and `logs`: how far its log went when it had them
copies    a digest of what each of them says, and the label that it got (see `copies`)
labels    folders that were renamed, and the label that they keep in the learner
actions   what we did: filed, suggested; and what became of it
judgements  certainty and rightness of predictions whose truth the person showed
credits   the credit and the debt of filing (see `promise`)

What belongs to a learner is kept by its name and the service that has it: another store has learned nothing yet.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from feedrank.files import create_private

__all__ = ["OF_LEARNER", "open_state"]

OF_LEARNER = ("learned", "logs", "copies", "judgements", "credits")
"""The tables whose rows belong to one learner of one service."""
_VERSION = 4
_SCHEMA = """
CREATE TABLE IF NOT EXISTS folders (account TEXT, name TEXT, uidvalidity INTEGER, uidnext INTEGER, messages INTEGER,
    label TEXT NOT NULL, PRIMARY KEY (account, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS places (account TEXT, folder TEXT, uid INTEGER, key TEXT NOT NULL,
    PRIMARY KEY (account, folder, uid)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS places_key ON places (account, key);
CREATE TABLE IF NOT EXISTS seen (account TEXT, key TEXT, prediction_id TEXT, label TEXT, certainty REAL, risk REAL, at REAL,
    PRIMARY KEY (account, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS learned (learner TEXT, id TEXT, PRIMARY KEY (learner, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS logs (learner TEXT PRIMARY KEY, version INTEGER, id TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS copies (learner TEXT, digest TEXT, label TEXT, key TEXT,
    PRIMARY KEY (learner, digest, label, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS labels (learner TEXT, folder TEXT, label TEXT, PRIMARY KEY (learner, folder)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS actions (id INTEGER PRIMARY KEY, account TEXT, key TEXT, kind TEXT, origin TEXT, folder TEXT,
    at REAL, fate TEXT, uid INTEGER, uidvalidity INTEGER, risk REAL);
CREATE INDEX IF NOT EXISTS actions_key ON actions (account, key);
CREATE TABLE IF NOT EXISTS judgements (id INTEGER PRIMARY KEY, learner TEXT, label TEXT, certainty REAL, right INTEGER);
CREATE TABLE IF NOT EXISTS credits (learner TEXT, account TEXT, credit REAL, debt REAL, loans INTEGER, proof REAL,
    PRIMARY KEY (learner, account)) WITHOUT ROWID;
DROP TABLE IF EXISTS senders;
PRAGMA user_version = 4;
"""
# Versions 2 and 3 made certainties from where the sender's mail went; they are of the same size, and leave with time.
# The first version knew learners by name alone, and margins where certainties are now: both are gathered anew.
_FROM_FIRST = """
DROP TABLE learned; DROP TABLE rounds; DROP TABLE seen;
ALTER TABLE actions ADD COLUMN uid INTEGER; ALTER TABLE actions ADD COLUMN uidvalidity INTEGER;
ALTER TABLE actions ADD COLUMN risk REAL;
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
        db.executescript((_FROM_FIRST if version == 1 else "") + _SCHEMA)
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
