"""Servers that lie, stall or answer oddly: one folder or one message is left out, with a line, and watching goes on."""

import re
import resource
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace

import pytest
from imapclient import imapclient, response_parser

from feedrank.clients import Client
from feedrank.clients.mail import account as accounts
from feedrank.clients.mail.account import Account, AccountError, Secret, SecretError, Trust, connect
from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.extract import SPEC
from feedrank.clients.mail.filing import WatchSettings
from feedrank.clients.mail.imap_source import ImapSource
from feedrank.clients.mail.loop import watch
from feedrank.clients.mail.mailboxes import boxes, messages_of
from feedrank.clients.mail.running import sort
from feedrank.clients.mail.training import train
from feedrank.clients.mail.watcher import Watcher
from feedrank.embedded import Embedded

HEADER = b"Message-ID: <%d@example.org>\r\nFrom: a@example.org\r\nSubject: budget %d\r\n\r\n"


class OddServer:
    """An IMAP server of some lines. `folders` maps a name to its UIDs; `odd(command, folder, uid)` may answer otherwise."""

    def __init__(self, folders, odd=lambda *_: None, listed=None, login=b"OK"):
        self.folders, self.odd, self.login = folders, odd, login
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
            self.say(wire, b"* CAPABILITY IMAP4rev1 MOVE")
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


@pytest.fixture
def odd(monkeypatch):
    """Make servers, and give an account on each."""
    monkeypatch.setenv("FEEDRANK_MAIL_PASSWORD", "secret")
    made = []

    def make(*arguments, **more):
        made.append(OddServer(*arguments, **more))
        return made[-1], Account.of(f"imap://me@127.0.0.1:{made[-1].port}", Secret())

    yield make
    for one in made:
        one.close()


@pytest.fixture
def client(tmp_path):
    with Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path / 's.db'}")) as made:
        made.create("mail", SPEC)
        yield made


def looked(account, client, state=None, count=1):
    lines = []
    with state or MailState(":memory:", account.name) as own, connect(account) as imap:
        watcher = Watcher(imap, client, own, WatchSettings(), lines.append)
        for _ in range(count):
            watcher.look()
        folders = own.folders()
    return lines, folders


def test_a_status_without_uidvalidity_is_asked_for_elsewhere_or_the_folder_left_out(odd, client):
    def strange(command, folder, uid):
        if folder == "Half" and command == "STATUS":
            return [b'* STATUS "Half" (MESSAGES 1)']
        if folder == "None" and command == "STATUS":
            return [b'* STATUS "None" (MESSAGES 1)']
        if folder == "None":
            return [b"* 1 EXISTS"]
        return None

    _, account = odd({"INBOX": [], "None": [1], "Half": [2], "Work": [3]}, strange)
    lines, folders = looked(account, client)
    assert lines == ["None: the server does not tell its UIDVALIDITY"]
    assert folders.keys() == {"INBOX", "Half", "Work"}


def test_messages_without_headers_are_left_alone(odd, client):
    def strange(command, folder, uid):
        return {2: b"* 1 FETCH (UID %d BODY[HEADER] NIL)", 3: b"* 1 FETCH (UID %d BODY[HEADER] {0}\r\n)"}.get(
            uid
        )

    server, account = odd({"INBOX": [], "Work": [1, 2, 3, 4]}, strange)
    with connect(account) as imap, MailState(":memory:") as state:
        lines = []
        curve = train(client, state, ImapSource(imap, state, lines.append).find())
    assert len(curve.mistakes) == 2
    assert [line for line in lines if "left alone" in line] == [
        f"message {uid} has no headers that can be read; it is left alone" for uid in (2, 3)
    ]
    assert server.connections == 1


def test_garbage_in_one_answer_costs_one_message(odd, client):
    def strange(command, folder, uid):
        return b'* 1 FETCH (UID %d BODY[HEADER] "open' if uid == 2 else None

    _, account = odd({"INBOX": [], "Work": [1, 2, 3]}, strange)
    lines, folders = looked(account, client)
    assert len(lines) == 1
    assert "message 2 cannot be read" in lines[0]
    assert "Work" in folders


def test_folders_with_unreadable_names_are_left_out(odd):
    names = [
        b'(\\HasNoChildren) "/" "Work"',
        b'(\\HasNoChildren) "/" "&AAA"',
        b'(\\HasNoChildren) "/" "Caf\xe9"',
    ]
    names += [
        b'(\\HasNoChildren) "/" "&2D0-"',
        b"() NIL Flat",
        b'(\\Noselect) "/" "Closed"',
        b'() "/" "2024"',
    ]
    _, account = odd({"INBOX": []}, listed=names)
    lines = []
    with connect(account) as imap:
        assert [box.label for box in boxes(imap, "INBOX", report=lines.append)] == ["Work", "Flat", "2024"]
    assert len(lines) == 3
    assert all("left out" in line for line in lines)


def test_a_huge_literal_costs_no_memory_and_one_message(odd, client):
    size = 300 << 20

    def flood(wire, uid, name):
        wire.write(b"* 1 FETCH (UID %d %s {%d}\r\n" % (uid, name, size))
        chunk = b"x" * (1 << 20)
        for _ in range(size >> 20):
            wire.write(chunk)
        wire.write(b")\r\n")

    _, account = odd(
        {"INBOX": [], "Work": [1, 2, 3]}, lambda command, folder, uid: flood if uid == 2 else None
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines, folders = looked(account, client)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10  # kilobytes
    assert len(lines) == 1
    assert lines[0].startswith("message 2 cannot be read and is left alone")
    assert folders["Work"].messages == 3


def test_a_message_that_cannot_be_read_does_not_hold_up_the_others(odd, client):
    client.feedback("mail", {"features": ["from:a@example.org", "budget"], "label": "Work"})
    client.feedback("mail", {"features": ["hotel"], "label": "Travel"})
    inbox = []

    def strange(command, folder, uid):
        return (
            (
                lambda wire, uid, name: wire.write(
                    b"* 1 FETCH (UID %d %s " % (uid, name)
                    + (b"{11}\r\nSubject: \r\n)\r\n" if name == b"BODY[HEADER]" else b'"open\r\n')
                )
            )
            if uid == 2 and folder == "INBOX" and command == "FETCH"
            else None
        )

    _, account = odd({"INBOX": inbox, "Work": [9]}, strange)
    lines = []
    with MailState(":memory:", account.name) as state, connect(account) as imap:
        watcher = Watcher(imap, client, state, WatchSettings(), lines.append)
        watcher.look()
        inbox += [1, 2, 3]
        for _ in range(3):
            watcher.look()
    assert [line for line in lines if "suggested" in line] == [
        f"Work: suggested for <{uid}@example.org>" for uid in (1, 3)
    ]
    assert len([line for line in lines if "message 2 cannot be read" in line]) == 1


def test_a_literal_without_end_or_a_stall_is_a_line_and_a_retry(odd, client, monkeypatch):
    monkeypatch.setattr(accounts, "TIMEOUT", accounts.SocketTimeout(connect=5, read=3))
    seen, over = [], threading.Event()

    def endless(wire, uid, name):
        seen.append(uid)
        if len(seen) == 1:
            wire.write(b"* 1 FETCH (UID %d %s {99999999999999}\r\n" % (uid, name))
            wire.flush()
        elif len(seen) == 2:
            wire.write(b"* 1 FETCH (UID %d %s {50}\r\nno more" % (uid, name))
            wire.flush()
            over.wait()
            raise OSError
        else:
            wire.write(b"* 1 FETCH (UID %d %s NIL)\r\n" % (uid, name))

    _, account = odd({"INBOX": [], "Work": [1]}, lambda command, folder, uid: endless if uid == 1 else None)
    lines, stop = [], threading.Event()

    def report(line):
        lines.append(line)
        if "left alone" in line:
            stop.set()

    with MailState(":memory:", account.name) as state:
        watch(account, client, state, WatchSettings(), report, poll=0.2, stop=stop)
    over.set()
    assert "99999999999999 bytes" in lines[0]
    assert [("again in" in line) for line in lines] == [True, True, False]


def test_a_refused_login_is_one_line(odd, client, tmp_path):
    _, account = odd({"INBOX": []}, login=b"NO [AUTHENTICATIONFAILED]")
    with MailState(":memory:", account.name) as state, pytest.raises(SecretError, match="does not accept me"):
        watch(account, client, state, WatchSettings(), print)
    words = ["mail", "undo", f"imap://me@127.0.0.1:{account.port}", "--state", str(tmp_path / "m.db")]
    done = subprocess.run(
        [sys.executable, "-m", "feedrank.cli", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "does not accept me with this password" in done.stderr


def test_a_folder_that_is_gone_when_it_is_opened_is_one_line(odd, client):
    server, account = odd({"INBOX": [], "Gone": [1], "Work": [1]})
    real = server.answer

    def answer(wire, line, selected):
        if b'"Gone"' in line:
            server.say(wire, line.split()[0] + b" NO no such folder")
            return selected
        return real(wire, line, selected)

    server.answer = answer
    lines, folders = looked(account, client)
    assert len(lines) == 1
    assert lines[0].startswith("Gone: ")
    assert folders.keys() == {"INBOX", "Work"}


@pytest.mark.parametrize(
    "answer",
    [b'"INBOX" NIL', b'"INBOX" 5', b"", b'"INBOX" ' + b"(" * 5000 + b")" * 5000, b'"INBOX" (MESSAGES x)'],
    ids=["nil", "number", "nothing", "deep", "words"],
)
def test_a_status_that_is_none_is_a_line_and_a_retry(odd, client, answer):
    def strange(command, folder, uid):
        good = server.connections > 1 or command != "STATUS" or folder != "INBOX"
        return None if good else [b"* STATUS " + answer, b"* OK"]

    server, account = odd({"INBOX": [], "Work": [1]}, strange)
    lines, stop = [], threading.Event()

    class State(MailState):
        def put_folder(self, folder):
            super().put_folder(folder)
            if folder.name == "INBOX":
                stop.set()

    with State(":memory:", account.name) as state:
        watch(account, client, state, WatchSettings(), lines.append, poll=0.2, stop=stop)
        assert state.folders().keys() == {"INBOX", "Work"}
    assert len(lines) <= 1
    assert all("again in" in line for line in lines)


def test_folders_that_are_listed_as_something_else_are_left_out(odd):
    listed = [
        b'(\\HasNoChildren) "/" Work',
        b'NIL "/" Nil',
        b'(5 (6)) "/" Numbers',
        b"(\\HasNoChildren) 5 Separator",
        b'(\\HasNoChildren) "/" (a b)',
        b"(" * 5000 + b")" * 5000 + b' "/" Deep',
    ]
    _, account = odd({"INBOX": []}, listed=listed)
    lines = []
    with connect(account) as imap:
        assert [box.label for box in boxes(imap, "INBOX", report=lines.append)] == ["Work"]
    assert len(lines) == 5


def test_a_folder_that_stays_unreadable_is_said_once(odd, client):
    _, account = odd(
        {"INBOX": [], "Bad": [1], "Work": [1]},
        lambda command, folder, uid: (
            [b'* STATUS "Bad" NIL'] if (command, folder) == ("STATUS", "Bad") else None
        ),
    )
    lines, folders = looked(account, client, count=3)
    assert len(lines) == 1
    assert lines[0].startswith("Bad: ")
    assert folders.keys() == {"INBOX", "Work"}


def test_what_sort_leaves_out_is_a_line_of_its_own(odd, client, tmp_path):
    client.feedback("mail", {"features": ["budget"], "label": "Work"})
    client.feedback("mail", {"features": ["hotel"], "label": "Travel"})
    _, account = odd(
        {"INBOX": [1, 2, 3], "Bad": [1], "Work": [7]},
        lambda command, folder, uid: (
            [b'* STATUS "Bad" NIL']
            if (command, folder) == ("STATUS", "Bad")
            else b"* 1 FETCH (UID %d BODY[HEADER] NIL)"
            if (folder, uid) == ("INBOX", 2)
            else None
        ),
    )
    lines = []
    with MailState(":memory:", account.name) as state:
        rows = list(sort(account, client, state, WatchSettings(), lines.append, 10))
    assert [row.subject for row in rows] == ["budget 3", "budget 1"]
    assert {line.split(" ")[0] for line in lines} == {"Bad:", "message"}
    assert not any("suggested" in line for line in lines)


def test_a_folder_of_very_many_messages_is_searched(odd):
    many = range(4_000_000_000, 4_000_200_000)
    _, account = odd({"INBOX": [], "Work": many})
    with connect(account) as imap:
        imap.select_folder("Work")
        assert messages_of(imap) == list(many)


def test_many_large_headers_cost_no_more_memory_than_one_reply_may(odd, client, monkeypatch):
    monkeypatch.setattr(accounts, "MOST", 20_000)
    kept, parse = [], response_parser.parse_fetch_response

    def measured(text, *more):
        kept.append(sum(len(one[1]) for one in text if isinstance(one, tuple)))
        return parse(text, *more)

    monkeypatch.setattr(imapclient, "parse_fetch_response", measured)

    def large(wire, uid, name):
        data = b"Message-ID: <%d@example.org>\r\nX-Long: %s\r\n\r\n" % (uid, b"x" * 3000)
        wire.write(b"* 1 FETCH (UID %d %s {%d}\r\n" % (uid, name, len(data)) + data + b")\r\n")

    _, account = odd(
        {"INBOX": [], "Work": list(range(1, 7))}, lambda command, folder, uid: large if uid else None
    )
    lines = []
    with MailState(":memory:", account.name) as state, connect(account) as imap:
        Watcher(imap, client, state, WatchSettings(), lines.append).look()
        assert state.uids("Work").keys() == set(range(1, 7))  # one at a time, they are no trouble
    assert lines == []
    assert max(kept) <= 10_000


def test_a_reply_without_end_is_a_line_and_a_retry(odd, client, monkeypatch):
    monkeypatch.setattr(accounts, "MOST", 1 << 16)
    server, account = odd({"INBOX": [], "Work": [1]})
    real = server.answer

    def answer(wire, line, selected):
        while b"LIST" in line and server.connections == 1:
            server.say(wire, *[b"* 1 EXISTS"] * 1000)  # until the other side hangs up
        return real(wire, line, selected)

    server.answer = answer
    lines, stop = [], threading.Event()

    def report(line):
        lines.append(line)
        stop.set()

    with MailState(":memory:", account.name) as state:
        watch(account, client, state, WatchSettings(), report, poll=0.2, stop=stop)
    assert "no end; again in" in lines[0]


def test_who_names_a_certificate_gets_tls_or_nothing(odd):
    _, account = odd({"INBOX": []})
    pinned = replace(account, trust=Trust(fingerprint="00" * 32))
    with pytest.raises(AccountError, match="offers no TLS"), connect(pinned):
        pass
