"""The schema of the SQLite file and the steps that bring an older file up to date, each in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from ..shared import checksum, genesis, id_check, link, seal

APPLICATION = 0x66656564  # "feed", in the header of every file of ours
PAGE = 1000  # entries of an older file that are given their chain at a time

# Entries, snapshots and outcomes are keyed by (log << 32) + version: one clustered tree, in the order of each log.
MIGRATIONS = (
    """
    CREATE TABLE documents (
        kind TEXT, name TEXT, revision INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, name)
    ) WITHOUT ROWID;
    CREATE TABLE logs (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, version INTEGER NOT NULL DEFAULT 0,
        floor INTEGER NOT NULL DEFAULT 1, marked INTEGER NOT NULL DEFAULT 0, closed INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE entries (
        key INTEGER PRIMARY KEY, at REAL NOT NULL, mark INTEGER NOT NULL DEFAULT 0, body BLOB NOT NULL, taken BLOB
    );
    CREATE TABLE ids (
        log INTEGER, id TEXT, version INTEGER NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (log, id)
    ) WITHOUT ROWID;
    CREATE TABLE outcomes (key INTEGER PRIMARY KEY, value BLOB NOT NULL);
    CREATE TABLE snapshots (key INTEGER PRIMARY KEY, digest TEXT NOT NULL, data BLOB NOT NULL);
    CREATE TABLE records (
        log TEXT, key TEXT, expires REAL NOT NULL, value BLOB NOT NULL, PRIMARY KEY (log, key)
    ) WITHOUT ROWID;
    CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO counters VALUES ('revision', 0), ('check', 0);
    """,
    "CREATE INDEX records_by_expiry ON records (expires);",
    # Chains and checksums. `root` is the chain before the first entry kept; a part's key is (upload << 20) + number.
    """
    ALTER TABLE logs RENAME COLUMN marked TO retracted;
    ALTER TABLE logs ADD COLUMN chain TEXT NOT NULL DEFAULT '';
    ALTER TABLE logs ADD COLUMN root TEXT NOT NULL DEFAULT '';
    ALTER TABLE logs ADD COLUMN at REAL NOT NULL DEFAULT 0;
    ALTER TABLE logs ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE entries RENAME COLUMN mark TO retracted;
    ALTER TABLE entries ADD COLUMN retracts INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE entries ADD COLUMN chain TEXT NOT NULL DEFAULT '';
    ALTER TABLE ids ADD COLUMN guard TEXT NOT NULL DEFAULT '';
    CREATE INDEX ids_by_version ON ids (log, version);
    ALTER TABLE records ADD COLUMN digest TEXT NOT NULL DEFAULT '';
    ALTER TABLE records ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE records ADD COLUMN due REAL;
    CREATE INDEX records_by_due ON records (due) WHERE due IS NOT NULL;
    CREATE TABLE parts (key INTEGER PRIMARY KEY, data BLOB NOT NULL);
    INSERT INTO parts SELECT row_number() OVER (ORDER BY key) << 20, sealed(data) FROM snapshots;
    CREATE TABLE newer (
        key INTEGER PRIMARY KEY, digest TEXT NOT NULL, chain TEXT NOT NULL, upload INTEGER NOT NULL, parts INTEGER NOT NULL
    );
    INSERT INTO newer SELECT key, digest, '', row_number() OVER (ORDER BY key), 1 FROM snapshots;
    DROP TABLE snapshots;
    ALTER TABLE newer RENAME TO snapshots;
    INSERT INTO counters SELECT 'upload', count(*) FROM snapshots;
    UPDATE outcomes SET value = sealed(value);
    UPDATE documents SET value = sealed(value);
    UPDATE records SET value = sealed(value);
    UPDATE ids SET guard = guarded(id, version, digest);
    CREATE TABLE trial (id INTEGER PRIMARY KEY, data BLOB NOT NULL)
    """,
    # What a snapshot leaves out; of older ones, everything that was retracted is known to be.
    """
    ALTER TABLE snapshots ADD COLUMN without INTEGER NOT NULL DEFAULT 0;
    UPDATE snapshots SET without = coalesce((SELECT retracted FROM logs WHERE id = key >> 32), 0);
    """,
    # Which store this is, and how often it was opened for writing.
    """
    CREATE TABLE store (id TEXT NOT NULL, epoch INTEGER NOT NULL);
    INSERT INTO store VALUES (lower(hex(randomblob(16))), 0);
    """,
    # Checksums of what was erased; of a log, the salt of the ids that were, and the versions that revise others.
    """
    ALTER TABLE entries ADD COLUMN erased TEXT NOT NULL DEFAULT '';
    ALTER TABLE logs ADD COLUMN salt TEXT NOT NULL DEFAULT '';
    ALTER TABLE logs ADD COLUMN revisions TEXT NOT NULL DEFAULT '';
    INSERT INTO counters VALUES ('erased', 0);
    """,
    # Records that wait for an answer: their order, until when who answers has them, and what they are counted by.
    """
    ALTER TABLE records ADD COLUMN rank REAL;
    ALTER TABLE records ADD COLUMN leased REAL NOT NULL DEFAULT 0;
    ALTER TABLE records ADD COLUMN mark REAL;
    CREATE INDEX records_by_rank ON records (log, rank) WHERE rank IS NOT NULL;
    CREATE INDEX records_by_mark ON records (log, mark) WHERE mark IS NOT NULL;
    """,
)
CHAINED = 3  # the step that gives older entries their chain
SCHEMA = len(MIGRATIONS)


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """From schema `version` to the newest."""
    connection.create_function("sealed", 1, lambda value: seal(bytes(value)), deterministic=True)
    connection.create_function("guarded", 3, id_check, deterministic=True)
    for step in range(version + 1, SCHEMA + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            for statement in filter(str.strip, MIGRATIONS[step - 1].split(";")):
                connection.execute(statement)
            if step == CHAINED:
                for log in connection.execute("SELECT id, name, floor, closed FROM logs").fetchall():
                    give_chain(connection, *log)
            connection.execute(f"PRAGMA user_version = {step}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def give_chain(db: sqlite3.Connection, log: int, name: str, floor: int, closed: int) -> None:
    """Chain the entries of a log that was written without."""
    if closed:
        return
    root = chain = genesis(name, floor - 1)
    latest = 0.0
    low, high = log << 32, (log + 1) << 32
    db.execute(
        "UPDATE entries AS later SET retracts = earlier.key - ? FROM entries AS earlier"
        " WHERE earlier.retracted > 0 AND earlier.key > ? AND earlier.key < ? AND later.key = ? + earlier.retracted",
        (low, low, high, low),
    )
    for page in pages(db, low, high):
        changed = []
        for key, at, body, taken, retracts in page:
            latest = max(latest, at)
            taken_sum = None if taken is None else checksum(taken)
            chain = link(chain, key - low, at, checksum(body), taken_sum, retracts)
            changed.append((chain, key))
        db.executemany("UPDATE entries SET chain = ? WHERE key = ?", changed)
    db.execute("UPDATE logs SET chain = ?, root = ?, at = ? WHERE id = ?", (chain, root, latest, log))
    db.execute(
        "UPDATE snapshots SET chain = coalesce((SELECT chain FROM entries WHERE entries.key = snapshots.key), ?)"
        " WHERE key >= ? AND key < ?",
        (root, low, high),
    )


def pages(
    db: sqlite3.Connection, low: int, high: int
) -> Iterator[list[tuple[int, float, bytes, bytes | None, int]]]:
    while page := db.execute(
        "SELECT key, at, body, taken, retracts FROM entries WHERE key > ? AND key < ? ORDER BY key LIMIT ?",
        (low, high, PAGE),
    ).fetchall():
        yield page
        low = page[-1][0]
