"""The SQLite file: who may open it and how. What is refused is refused before it is touched."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import struct
from pathlib import Path
from urllib.parse import quote

from feedrank.files import create_private, lock_file
from feedrank.service.contract.faults import StoreRefused, StoreUnavailable, no_store

from ..arithmetic import FIRST, notices
from . import sqlite_connection
from .sqlite_compact import compact
from .sqlite_connection import SqliteConnection
from .sqlite_schema import APPLICATION, SCHEMA, migrate

MAGIC = b"SQLite format 3\0"
IDENTITY = "SELECT id, epoch FROM store"


def lock(path: Path) -> int:
    """Take the file for this process, or say who has it. The lock dies with the process."""
    try:
        create_private(f"{path}-lock")
        handle = os.open(f"{path}-lock", os.O_RDWR)
    except OSError as error:
        raise StoreRefused(f"cannot write beside {path}: {error.strerror}") from None
    try:
        lock_file(handle)
    except OSError:
        raise StoreRefused(in_use(path, handle)) from None
    mine = str(os.getpid()).encode()
    with contextlib.suppress(OSError):  # on a full disk the lock holds all the same; the name is a courtesy
        os.write(handle, mine)
        os.ftruncate(handle, len(mine))
    return handle


def share(path: Path) -> int | None:
    """Keep the file from being opened for writing while it is read; None where no lock lies beside it."""
    try:
        handle = os.open(f"{path}-lock", os.O_RDONLY)
    except OSError:
        return None
    try:
        lock_file(handle, shared=True)
    except OSError:
        raise StoreRefused(in_use(path, handle)) from None
    return handle


def in_use(path: Path, handle: int) -> str:
    """Who has the lock; gives up the handle."""
    owner = os.read(handle, 20).decode(errors="replace").strip() or "unknown"
    os.close(handle)
    return (
        f"{path} is in use by process {owner}: only one process may open this file; "
        "stop it, or use a redis:// store for many"
    )


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


def connect(path: Path, *, write: bool) -> SqliteConnection:
    """A connection with explicit transactions. WAL lets readers go on while one writes; FULL syncs every commit."""
    # The writer begins on the event loop, which must not wait for a stranger's lock.
    wait = 0.1 if write else 5.0
    connection = sqlite_connection.connect(path, wait=wait)
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


def prepare(path: Path, arithmetic: int) -> tuple[SqliteConnection, tuple[str, ...]]:
    """The writer's connection, with the schema brought up to date, and notices; StoreRefused, with the reason, if not."""
    inspect(path)
    connection: SqliteConnection | None = None
    try:
        with contextlib.suppress(OSError):  # SQLite says better what is wrong
            create_private(path)
        connection = connect(path, write=True)
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        refuse_newer(path, version)
        migrate(connection, version)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE counters SET value = value + 1 WHERE name = 'check'")
        connection.execute("UPDATE store SET epoch = epoch + 1")
        said = claim(connection, path, arithmetic)
        # What a save that was killed has left behind.
        connection.execute("DELETE FROM parts WHERE key >> 20 NOT IN (SELECT upload FROM snapshots)")
        connection.execute("COMMIT")
        compact(connection)  # if it was killed before it had
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.DatabaseError):
            raise StoreRefused(reason(path, error)) from None
        raise
    return connection, said


def claim(connection: SqliteConnection, path: Path, arithmetic: int) -> tuple[str, ...]:
    """Let no earlier arithmetic open this file any more, nor this one where a later one has; notices."""
    (used,) = connection.execute("SELECT count(*) FROM logs").fetchone()
    row = connection.execute("SELECT value FROM counters WHERE name = 'arithmetic'").fetchone()
    before = row[0] if row else FIRST if used else arithmetic
    said = notices(str(path), before, arithmetic)
    if arithmetic:
        connection.execute("INSERT OR REPLACE INTO counters VALUES ('arithmetic', ?)", (arithmetic,))
    return said


def connect_read_only(path: Path) -> SqliteConnection:
    """A connection that changes nothing, not even beside the file: for backups, also on a disk that cannot be written."""
    if not path.exists():
        raise no_store(path)
    inspect(path)
    address = f"file:{quote(str(path.absolute()))}"
    wal = Path(f"{path}-wal")
    # Without a write-ahead log nothing is missing from the file itself, and SQLite need not make its index beside it.
    mode = "mode=ro" if wal.exists() and wal.stat().st_size else "mode=ro&immutable=1"
    try:
        connection = sqlite_connection.connect(f"{address}?{mode}", uri=True)
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        raise StoreRefused(
            f"cannot read {path}: {error}; if its folder cannot be written, copy the file and its -wal elsewhere"
        ) from None
    if version < SCHEMA:
        connection.close()
        raise StoreRefused(
            f"{path} was written by an older feedrank (schema {version}): start the service on a copy once to upgrade it"
        )
    return connection


def identity(connection: SqliteConnection) -> tuple[str, int]:
    """Which store a file has, and how often it was opened for writing: whoever opens it next has another epoch."""
    row: tuple[str, int] = connection.execute(IDENTITY).fetchone()
    return row


def identities(path: Path) -> dict[Path, tuple[int, int]]:
    """Device and inode of the files of an open database, to notice that they were deleted or replaced underneath."""
    opened: dict[Path, tuple[int, int]] = {}
    for name in (path, Path(f"{path}-wal")):
        with contextlib.suppress(OSError):
            status = name.stat()
            opened[name] = status.st_dev, status.st_ino
    return opened


def sizes(path: Path) -> dict[str, float]:
    """See `Store.sizes`."""
    seen: dict[str, float] = {}
    for name, file in (("store_bytes", path), ("wal_bytes", Path(f"{path}-wal"))):
        with contextlib.suppress(OSError):
            seen[name] = file.stat().st_size
    with contextlib.suppress(OSError):
        seen["free_bytes"] = shutil.disk_usage(path.parent).free
    return seen


def replaced(path: Path) -> StoreUnavailable:
    return StoreUnavailable(
        f"{path} was deleted or replaced while in use, and what is written goes nowhere: "
        "put it back, or stop the service and restore a backup"
    )


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
