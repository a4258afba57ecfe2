"""What holds people's words is made for its owner only, and locked where there is no fcntl too."""

import asyncio
import os
import stat
import sys
from types import SimpleNamespace

import pytest

from feedrank.clients.mail.bookkeeping import MailState
from feedrank.files import BEYOND, create_private, lock_file
from feedrank.service.http.keyring import add_key
from feedrank.service.store import open_store


def modes(folder):
    """The modes of everything below a folder, by name."""
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}


@pytest.fixture(autouse=True)
def _open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_a_private_file_is_made_in_private_folders(tmp_path):
    create_private(tmp_path / "a" / "b" / "file")
    assert modes(tmp_path) == {"a": 0o700, "b": 0o700, "file": 0o600}


def test_what_is_there_keeps_its_content_and_its_mode(tmp_path):
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open" / "file").write_text("words")
    (tmp_path / "open" / "file").chmod(0o640)
    create_private(tmp_path / "open" / "file")
    assert (tmp_path / "open" / "file").read_text() == "words"
    assert modes(tmp_path) == {"open": 0o755, "file": 0o640}


def test_keys_are_private(tmp_path):
    add_key(tmp_path / "new" / "keys", ["admin"])
    assert modes(tmp_path) == {"new": 0o700, "keys": 0o600}


def test_the_state_of_mail_is_private(tmp_path):
    with MailState(tmp_path / "new" / "mail.db"):
        made = modes(tmp_path)
    assert made.pop("new") == 0o700
    assert set(made.values()) == {0o600}


def test_the_store_with_its_log_and_its_lock_is_private(tmp_path):
    async def use():
        store = await open_store(f"sqlite:{tmp_path / 'new' / 'feedrank.db'}")
        made = modes(tmp_path)
        await store.close()
        return made

    made = asyncio.run(use())
    assert made.pop("new") == 0o700
    assert {"feedrank.db", "feedrank.db-wal", "feedrank.db-shm", "feedrank.db-lock"} <= set(made)
    assert set(made.values()) == {0o600}


def test_a_lock_is_taken_once(tmp_path):
    create_private(tmp_path / "lock")
    first, second = (os.open(tmp_path / "lock", os.O_RDWR) for _ in range(2))
    lock_file(first)
    with pytest.raises(BlockingIOError):
        lock_file(second)
    os.close(first)
    lock_file(second)
    os.close(second)


def test_without_fcntl_a_byte_beyond_the_text_is_locked(tmp_path, monkeypatch):
    locked = []

    def locking(handle, mode, count):
        locked.append((os.lseek(handle, 0, os.SEEK_CUR), mode, count))

    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_NBLCK=2, locking=locking))
    create_private(tmp_path / "lock")
    handle = os.open(tmp_path / "lock", os.O_RDWR)
    lock_file(handle)
    assert locked == [(BEYOND, 2, 1)]
    assert os.lseek(handle, 0, os.SEEK_CUR) == 0
    os.close(handle)
