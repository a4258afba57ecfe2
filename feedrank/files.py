"""Files with user data: readable by their owner only, and locked by one process at a time.

The store, its lock, the keys and the state of the mail commands are all made here.
"""

import errno
import importlib
import os
from pathlib import Path

__all__ = ["create_private", "lock_file", "sync_folder"]

BEYOND = 1 << 30
"""Where Windows locks a byte: its locks forbid reading too, and whoever waits wants to read the owner's number."""


def create_private(path: str | Path) -> None:
    """Make an empty file of mode 0600 if there is none, and the missing folders above it with mode 0700.

    What is there already keeps the mode that somebody gave it. SQLite gives its -wal and -shm files the mode of the file.
    """
    path = Path(path)
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
            sync_folder(folder.parent)
    # Not opened if it is there: closing it would end the locks that SQLite has on it elsewhere in this process (POSIX).
    if not path.exists():
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk: without it, a power loss may take a folder that was made, with all in it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders, and one that may only be written cannot be read
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that cannot
            raise
    finally:
        os.close(handle)


def lock_file(handle: int, *, shared: bool = False) -> None:
    """Lock an open file for this process, without waiting; OSError if another has it. It ends with the process.

    Windows has no `fcntl` and knows no shared lock: there each lock is for one process.
    """
    try:
        fcntl = importlib.import_module("fcntl")
    except ModuleNotFoundError:
        windows = importlib.import_module("msvcrt")
        position = os.lseek(handle, 0, os.SEEK_CUR)
        os.lseek(handle, BEYOND, os.SEEK_SET)
        try:
            windows.locking(handle, windows.LK_NBLCK, 1)
        finally:
            os.lseek(handle, position, os.SEEK_SET)
    else:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
