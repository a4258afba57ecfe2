"""A real IMAP server for tests, pymap, and what tests do with an account on any server."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys

from imapclient import IMAPClient
from ports import free_port
from waiting import until

# pymap hashes a password half a million times at every login, which is most of what it does in our tests.
PROGRAM = """
from pysasl.hashing import BuiltinHash
BuiltinHash.__init__.__kwdefaults__["rounds"] = 1
from pymap.main import main
main()
"""


class ImapServer:
    """A pymap process; its mail is in memory, so a restart is a loss of all, with new UIDVALIDITYs."""

    def __init__(self) -> None:
        self.port = free_port()
        self.start()

    @property
    def url(self) -> str:
        """Of its only account, whose password is `secret`."""
        return f"imap://me@127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-c", PROGRAM, "--host", "127.0.0.1"]
        command += ["--port", str(self.port), "--no-tls", "--no-service", "admin"]
        command += ["dict", "--demo-user", "me", "--demo-password", "secret"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self.answers, "pymap does not answer", not_yet=OSError)

    def answers(self) -> bool:
        assert self.process.poll() is None, "pymap did not start"
        socket.create_connection(("127.0.0.1", self.port)).close()
        return True

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def clear(imap: IMAPClient, folders: tuple[str, ...]) -> None:
    """Leave an empty inbox and so many empty folders."""
    for _, _, name in reversed(imap.list_folders()):
        if name == "INBOX":
            imap.select_folder(name)
            imap.delete_messages(imap.search())
            imap.expunge()
        else:
            with contextlib.suppress(IMAPClient.Error):
                imap.delete_folder(name)
    for name in folders:
        imap.create_folder(name)


def numbers(imap: IMAPClient, folder: str) -> list[int]:
    """The messages <m10@...>, <m11@...> of a folder: 10, 11."""
    imap.select_folder(folder, readonly=True)
    result = imap.fetch(imap.search() or [1 << 30], ["ENVELOPE"])
    return sorted(int(one[b"ENVELOPE"].message_id[2:].split(b"@")[0]) for one in result.values())


def move(imap: IMAPClient, origin: str, folder: str, number: int) -> None:
    """Move the message <m10@...>, as a person does."""
    imap.select_folder(origin)
    uids = imap.search(["HEADER", "Message-ID", f"m{number}@example.org"])
    assert len(uids) == 1, f"message {number} is not in {origin}"
    imap.move(uids, folder)
