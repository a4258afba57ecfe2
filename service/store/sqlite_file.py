"""The SQLite file: who may open it, its schema and its migrations. What is refused is refused before it is touched."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import struct
from pathlib import Path

from ..errors import StoreRefused

APPLICATION = 0x66656564  # "feed", in the header of every file of ours
MAGIC = b"SQLite format 3\0"

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
)
SCHEMA = len(MIGRATIONS)


def lock(path: Path) -> int:
    """Take the file for this process, or say who has it. The lock dies with the process."""
    try:
        handle = os.open(f"{path}-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreRefused(f"cannot write beside {path}: {error.strerror}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.pread(handle, 20, 0).decode(errors="replace").strip() or "unknown"
        os.close(handle)
        raise StoreRefused(
            f"{path} is in use by process {owner}: one process a file; stop it, or use a redis:// store for many"
        ) from None
    mine = str(os.getpid()).encode()
    with contextlib.suppress(OSError):  # on a full disk the lock holds all the same; the name is a courtesy
        os.pwrite(handle, mine, 0)
        os.ftruncate(handle, len(mine))
    return handle


def inspect(path: Path) -> None:
    """Refuse a file that is not ours by its header alone, without opening it as a database."""
    if path.is_dir():
        raise StoreRefused(f"{path} is a directory: give the path of a file")
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreRefused(f"cannot read {path}: {error.strerror}") from None
    if not header:
        return
    if len(header) < 100 or not header.startswith(MAGIC):
        raise StoreRefused(
            f"{path} is not a database of feedrank: choose another path, or move the file away"
        )
    version, application = struct.unpack(">I4xI", header[60:72])
    if application != APPLICATION:
        raise StoreRefused(f"{path} is a database of another program: choose another path")
    refuse_newer(path, version)


def refuse_newer(path: Path, version: int) -> None:
    if version > SCHEMA:
        raise StoreRefused(
            f"{path} was written by a newer feedrank (schema {version}, this one knows {SCHEMA}): upgrade feedrank"
        )


def connect(path: Path, *, write: bool) -> sqlite3.Connection:
    """A connection with explicit transactions. WAL lets readers go on while one writes; FULL syncs every commit."""
    # The writer begins on the event loop, which must not wait for a stranger's lock.
    wait = 0.1 if write else 5.0
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=wait)
    connection.execute("PRAGMA synchronous = FULL" if write else "PRAGMA query_only = ON")
    connection.execute("PRAGMA cache_size = -16384")
    connection.execute("PRAGMA mmap_size = 0")
    if write:
        # Of a new file. An event or a record of a few kilobytes fits into a page with others; of small pages it would take
        # one or two for itself, each a write of its own.
        connection.execute("PRAGMA page_size = 16384")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        # A checkpoint costs two syncs and many scattered writes: one for 32 MiB of log, not for 4.
        connection.execute("PRAGMA wal_autocheckpoint = 2048")
    return connection


def prepare(path: Path) -> sqlite3.Connection:
    """The writer's connection, with the schema brought up to date; refused with the reason if that cannot be."""
    inspect(path)
    connection: sqlite3.Connection | None = None
    try:
        connection = connect(path, write=True)
        migrate(path, connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE counters SET value = value + 1 WHERE name = 'check'")
        connection.execute("COMMIT")
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.DatabaseError):
            raise StoreRefused(reason(path, error)) from None
        raise
    return connection


def reason(path: Path, error: sqlite3.DatabaseError) -> str:
    """One line on why this file cannot be used."""
    if is_full(error):
        return f"cannot write {path}: the disk is full; free some space and start again"
    if isinstance(error, sqlite3.OperationalError):
        return f"cannot write {path}: {error}"
    return f"{path} is damaged ({error}): restore a backup, or move the file away"


def is_full(error: sqlite3.Error) -> bool:
    """Whether the disk has no room left: for the database and its log, or for the index of the log in shared memory."""
    return getattr(error, "sqlite_errorname", "") in {"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"}


def migrate(path: Path, connection: sqlite3.Connection) -> None:
    """Bring the schema up to date, each step in one transaction."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    refuse_newer(path, version)
    for step in range(version, SCHEMA):
        connection.executescript(
            f"BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION}; {MIGRATIONS[step]};"
            f"PRAGMA user_version = {step + 1}; COMMIT;"
        )
