"""An IMAP server that lies, stalls or answers oddly, as a test wants it."""

import re
import socket
import threading
from contextlib import suppress

from feedrank.clients.mail.account import connect
from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.filing import WatchSettings
from feedrank.clients.mail.watcher import Watcher

HEADER = b"Message-ID: <%d@example.org>\r\nFrom: a@example.org\r\nSubject: budget %d\r\n\r\n"


class OddServer:
    """An IMAP server of some lines. `folders` maps a name to its UIDs; `odd(command, folder, uid)` may answer otherwise."""

    def __init__(self, folders, odd=lambda *_: None, listed=None, login=b"OK", namespace=None):
        self.folders, self.odd, self.login, self.namespace = folders, odd, login, namespace
        self.listed = listed or [b'(\\HasNoChildren) "/" "%s"' % name.encode() for name in folders]
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        selected = ""
        with suppress(OSError, ValueError), connection, connection.makefile("rwb") as wire:
            self.say(wire, b"* OK odd")
            for line in wire:
                selected = self.answer(wire, line.strip(), selected)

    def say(self, wire, *lines):
        for line in lines:
            wire.write(line + b"\r\n")
        wire.flush()

    def answer(self, wire, line, selected):
        tag, _, rest = line.partition(b" ")
        words = rest.split()
        command = words[0].upper() if words[0].upper() != b"UID" else b"UID " + words[1].upper()
        named = re.search(rb'"([^"]*)"', rest)
        folder = named.group(1).decode() if named else selected
        done = b"OK"
        if command == b"CAPABILITY":
            self.say(wire, b"* CAPABILITY IMAP4rev1 MOVE" + (b" NAMESPACE" if self.namespace else b""))
        elif command == b"NAMESPACE":
            self.say(wire, b"* NAMESPACE " + self.namespace)
        elif command == b"LOGIN":
            done = self.login
        elif command == b"LIST":
            self.say(wire, *(b"* LIST " + line for line in self.listed))
        elif command in (b"STATUS", b"SELECT", b"EXAMINE"):
            uids = self.folders.get(folder, [])
            odd = self.odd(command.decode(), folder, None)
            if odd is not None:
                self.say(wire, *odd)
            elif command == b"STATUS":
                counts = b"(MESSAGES %d UIDNEXT %d UIDVALIDITY 7)" % (len(uids), max(uids, default=0) + 1)
                self.say(wire, b'* STATUS "%s" %s' % (folder.encode(), counts))
            else:
                selected = folder
                self.say(wire, b"* %d EXISTS" % len(uids), b"* OK [UIDVALIDITY 7] fine")
        elif command == b"UID SEARCH":
            uids = self.folders[selected]
            wanted = uids if words[2:] == [b"UNDELETED"] else []
            self.say(wire, b"* SEARCH " + b" ".join(b"%d" % uid for uid in wanted))
        elif command == b"UID FETCH":
            for uid in map(int, words[2].split(b",")):
                self.fetch(wire, selected, uid, rest)
        self.say(wire, tag + b" " + done + b" done")
        return selected

    def fetch(self, wire, selected, uid, rest):
        odd = self.odd("FETCH", selected, uid)
        whole = b"BODY.PEEK[]" in rest
        data = HEADER % (uid, uid) + (b"budget meeting\r\n" if whole else b"")
        name = b"BODY[]<0>" if whole else b"BODY[HEADER]"
        if odd is None and b"RFC822.SIZE" in rest:
            self.say(wire, b"* 1 FETCH (UID %d RFC822.SIZE %d)" % (uid, len(data)))
        elif odd is None:
            wire.write(b"* 1 FETCH (UID %d %s {%d}\r\n" % (uid, name, len(data)) + data)
            self.say(wire, b")")
        elif callable(odd):
            odd(wire, uid, name)
        else:
            self.say(wire, odd % uid)

    def close(self):
        self.listener.close()


def looked(account, client, state=None, count=1):
    """Look so often; what was reported, and the folders that are known then."""
    lines = []
    with state or MailState(":memory:", account.name) as own, connect(account) as imap:
        watcher = Watcher(imap, client, own, WatchSettings(), lines.append)
        for _ in range(count):
            watcher.look()
        folders = own.folders()
    return lines, folders
