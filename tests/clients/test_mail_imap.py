"""Training and watching against a real IMAP server (pymap), the service embedded, and a second client as the person."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time

import pytest
from imap_server import ImapServer, clear, move, numbers
from imapclient import IMAPClient
from typer.testing import CliRunner
from waiting import until

from feedrank.clients import Client
from feedrank.clients.mail.account import Account, AccountError, Secret, SecretError, connect
from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.extract import SPEC
from feedrank.clients.mail.filing import WatchSettings, keyword
from feedrank.clients.mail.imap_source import ImapSource
from feedrank.clients.mail.loop import watch
from feedrank.clients.mail.mailboxes import boxes
from feedrank.clients.mail.promise import Judgement
from feedrank.clients.mail.running import sort
from feedrank.clients.mail.training import train
from feedrank.clients.mail.undo import undo
from feedrank.clients.mail.watcher import Watcher
from feedrank.clients.mail_cli import app
from feedrank.embedded import Embedded

FOLDERS = ("Work", "Travel")
WORDS = {"Work": "budget meeting report deadline", "Travel": "flight hotel boarding passport"}


def raw(number, topic, message_id=True):
    head = f"Message-ID: <m{number}@example.org>\r\n" if message_id else f"X-Number: {number}\r\n"
    return (
        f"{head}From: {topic.lower()}@example.org\r\nTo: me@example.org\r\nSubject: {WORDS[topic]} {number}\r\n"
        f"Date: Mon, 05 Feb 2024 10:{number % 60:02}:00 +0000\r\n\r\n{WORDS[topic]}\r\n"
    ).encode()


@pytest.fixture(scope="module")
def server():
    running = ImapServer()
    yield running
    running.stop()


@pytest.fixture
def account(server, monkeypatch):
    if server.process.poll() is not None:
        server.start()
    monkeypatch.setenv("FEEDRANK_MAIL_PASSWORD", "secret")
    return Account.of(server.url, Secret())


@pytest.fixture
def person(account):
    """The person's own mail program, on an empty account with two folders."""
    with connect(account) as imap:
        clear(imap, FOLDERS)
        imap.noop()
        yield imap


@pytest.fixture
def client(tmp_path):
    with Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path / 'service.db'}")) as made:
        made.create("mail", SPEC)
        yield made


@pytest.fixture
def state(tmp_path, account):
    with MailState(tmp_path / "mail.db", account.name) as made:
        yield made


@pytest.fixture
def look(account, client, state):
    """Look once on a connection of its own, and give what was reported."""

    def once(**settings):
        lines = []
        with connect(account) as imap:
            Watcher(imap, client, state, WatchSettings(**settings), lines.append).look()
        return lines

    return once


def taught(client, state, person, look, count=6):
    """Folders with mail, learned by `train`, and a watcher that has seen them."""
    for number in range(count):
        topic = FOLDERS[number % 2]
        person.append(topic, raw(number, topic))
    return trained(client, state, person, look)


def trained(client, state, person, look, into=None):
    curve = train(client, state, ImapSource(person, state).find())
    look()
    return curve


def trusted(state, folders=FOLDERS):
    """A record that makes every prediction sure."""
    state.add_judgements([Judgement(folder, 0.0, True) for folder in folders for _ in range(200)])


def version(client):
    return client.learner("mail").version


def test_training_is_in_order_and_once(client, state, person, look):
    curve = taught(client, state, person, look)
    assert len(curve.mistakes) == 6
    assert client.learner("mail").labels == list(FOLDERS)
    events = client.events("mail").events
    assert len(events) == 6
    again = trained(client, state, person, look)
    assert (again.mistakes, version(client)) == ([], 6)
    person.append("Work", raw(7, "Work"))
    assert len(trained(client, state, person, look).mistakes) == 1


def test_a_move_by_the_person_is_learned_once(client, state, person, look):
    taught(client, state, person, look)
    person.append("INBOX", raw(10, "Work"))
    assert look() == ["Work: suggested for <m10@example.org>"]
    assert version(client) == 6
    move(person, "INBOX", "Travel", 10)
    assert look() == ["Travel: learned <m10@example.org>"]
    assert look() == []
    assert version(client) == 7
    assert [(one.label, one.right) for one in state.judgements(1)] == [("Work", False)]


def test_a_move_while_nobody_watched_is_learned_after_a_restart(
    client, tmp_path, account, state, person, look
):
    taught(client, state, person, look)
    person.append("INBOX", raw(10, "Work"))
    look()
    state.close()
    move(person, "INBOX", "Work", 10)
    person.append("Travel", raw(11, "Travel"))  # came and went while nobody looked
    with MailState(tmp_path / "mail.db", account.name) as again, connect(account) as imap:
        lines = []
        watcher = Watcher(imap, client, again, WatchSettings(), lines.append)
        watcher.look()
        watcher.look()
    assert lines == ["Work: learned <m10@example.org>", "Travel: learned <m11@example.org>"]
    assert version(client) == 8


def test_sure_mail_is_filed_and_not_learned_from_ourselves(client, state, person, look):
    taught(client, state, person, look)
    person.append("INBOX", raw(10, "Travel"))
    assert look(mode="file") == ["Travel: suggested for <m10@example.org>"]  # no record yet, so never sure
    trusted(state)
    person.append("INBOX", raw(11, "Travel"))
    assert look(mode="file") == ["Travel: filed <m11@example.org>"]
    assert (numbers(person, "INBOX"), numbers(person, "Travel")) == ([10], [1, 3, 5, 11])
    assert look(mode="file") == []
    assert version(client) == 6


def test_a_filed_message_that_was_read_and_left_was_right(client, state, person, look):
    taught(client, state, person, look)
    trusted(state)
    person.append("INBOX", raw(11, "Travel"))
    look(mode="file")
    look(settle=0.0)
    assert state.actions("filed")[0].fate == "open"  # not read yet
    person.select_folder("Travel")
    person.add_flags(person.search(["HEADER", "Message-ID", "m11@example.org"]), [rb"\Seen"])
    look(settle=3600.0)
    assert len(state.actions("filed")) == 1
    look(settle=0.0)
    assert state.actions("filed") == []
    assert state.judgements(1)[0].right


@pytest.mark.parametrize("where", ["Work", "INBOX"])
def test_a_correction_of_our_move_is_the_truth(client, state, person, look, where):
    taught(client, state, person, look)
    trusted(state)
    person.append("INBOX", raw(11, "Travel"))
    look(mode="file")
    move(person, "Travel", where, 11)
    lines = look(mode="file")
    back = ["Travel: <m11@example.org> was put back", "INBOX: learned <m11@example.org>"]
    assert lines == (["Work: learned <m11@example.org>"] if where == "Work" else back)
    assert version(client) == 7
    assert client.events("mail", after=6).events[0]["truth"] == {"label": where}
    assert not state.judgements(1)[0].right
    assert look(mode="file") == []
    assert 11 in numbers(person, where)


def expunge(imap, folder, number):
    imap.select_folder(folder)
    imap.delete_messages(imap.search(["HEADER", "Message-ID", f"m{number}@example.org"]))
    imap.expunge()


def test_a_filed_message_that_the_person_deletes_is_not_held_against_filing_for_ever(
    client, state, person, look
):
    taught(client, state, person, look)
    trusted(state)
    for number in (11, 12):
        person.append("INBOX", raw(number, "Travel"))
        look(mode="file")
    lines = len(state.judgements(1000))
    expunge(person, "Travel", 11)
    look(settle=3600.0)
    assert state.reserved() > 0.0
    assert len(state.actions("filed")) == 2  # not yet: it may be on its way to another folder
    look(settle=0.0)
    assert [action.key for action in state.actions("filed")] == ["m12@example.org"]
    assert len(state.judgements(1000)) == lines  # nobody knows whether it was right
    expunge(person, "Travel", 12)
    look(settle=0.0)
    assert state.reserved() == 0.0
    person.append("Work", raw(12, "Travel"))  # it was only in the trash
    credit = state.credit().left
    assert look() == ["Work: learned <m12@example.org>"]
    assert not state.judgements(1)[0].right
    assert state.credit().left < credit


def test_a_folder_that_is_gone_does_not_keep_the_others_from_being_settled(client, state, person, look):
    taught(client, state, person, look)
    trusted(state)
    person.append("INBOX", raw(11, "Travel"))
    look(mode="file")
    person.append("INBOX", raw(12, "Work"))
    look(mode="file")
    look()
    person.select_folder("Travel")
    person.add_flags(person.search(), [rb"\Seen"])
    person.unselect_folder() if person.has_capability("UNSELECT") else person.select_folder("INBOX")
    person.delete_folder("Work")
    assert look(settle=0.0) == ["Work: gone"]
    assert state.actions("filed") == []
    assert state.judgements(1) == [Judgement("Travel", state.judgements(1)[0].certainty, True)]
    assert look(settle=0.0) == []


def test_undo_does_not_hide_a_correction(client, state, person, look):
    taught(client, state, person, look)
    trusted(state)
    person.append("INBOX", raw(11, "Travel"))
    look(mode="file")
    look()
    move(person, "Travel", "Work", 11)
    assert undo(person, state) == 0
    credit = state.credit().left
    assert look() == ["Work: learned <m11@example.org>"]
    assert not state.judgements(1)[0].right
    assert state.credit().left <= credit - 0.9


@pytest.mark.parametrize("together", [True, False])
def test_a_message_that_comes_twice_was_not_put_back(client, state, person, look, together):
    taught(client, state, person, look)
    trusted(state)
    person.append("INBOX", raw(11, "Travel"))
    if not together:
        assert look(mode="file") == ["Travel: filed <m11@example.org>"]
    person.append("INBOX", raw(11, "Travel"))  # once from the sender, once from a list
    assert set(look(mode="file")) == {"Travel: filed <m11@example.org>"}
    assert numbers(person, "Travel") == [1, 3, 5, 11, 11]
    assert look(mode="file") == []
    assert version(client) == 6
    assert undo(person, state, 2) == 2
    assert numbers(person, "INBOX") == [11, 11]


def test_without_move_nothing_is_said_to_be_filed_and_nothing_is_learned(
    account, client, state, person, look, monkeypatch
):
    taught(client, state, person, look)
    trusted(state)
    person.append("INBOX", raw(11, "Travel"))
    able = IMAPClient.has_capability
    monkeypatch.setattr(IMAPClient, "has_capability", lambda self, name: name != "MOVE" and able(self, name))
    rows = list(sort(account, client, state, WatchSettings(mode="file"), print, 10))
    assert [(row.advice.sure, row.filed) for row in rows] == [(True, False)]
    person.select_folder("INBOX")
    (uid,), uidvalidity = person.search(), person.folder_status("INBOX")[b"UIDVALIDITY"]
    with connect(account) as imap, pytest.raises(AccountError, match="has no MOVE"):
        Watcher(imap, client, state, WatchSettings(), print).choose(uid, uidvalidity, "Travel")
    assert version(client) == 6
    assert numbers(person, "INBOX") == [11]


def test_undo_puts_back_for_good(client, state, person, look):
    taught(client, state, person, look)
    trusted(state)
    for number in (11, 12):
        person.append("INBOX", raw(number, "Travel"))
    look(mode="file")
    assert undo(person, state, 1) == 1
    assert numbers(person, "INBOX") == [12]
    assert undo(person, state, 5) == 1
    assert undo(person, state, 5) == 0
    assert sorted(look(mode="file")) == [f"INBOX: learned <m{number}@example.org>" for number in (11, 12)]
    assert look(mode="file") == []
    assert numbers(person, "INBOX") == [11, 12]
    assert [one.right for one in state.judgements(2)] == [False, False]


def test_a_dry_run_changes_nothing(client, state, person, look, account):
    taught(client, state, person, look)
    trusted(state)
    person.append("INBOX", raw(11, "Travel"))
    person.append("INBOX", raw(12, "Work"))
    move(person, "INBOX", "Work", 12)
    before = client.learner("mail")
    for _ in range(2):
        lines = []
        with connect(account) as imap, state.copy() as copy:
            Watcher(imap, client, copy, WatchSettings(mode="file", dry_run=True), lines.append).look()
        assert lines == ["Work: learned <m12@example.org>", "Travel: filed <m11@example.org>"]
    assert client.learner("mail") == before
    assert numbers(person, "INBOX") == [11]
    assert look(mode="file") == lines


def test_trash_and_chosen_folders_are_never_learned(client, state, person, look):
    for name in ("Trash", "Junk", "Sent", "Drafts", "Lists/python", "Sent Items"):
        person.create_folder(name)
    taught(client, state, person, look)
    for number, name in enumerate(("Trash", "Junk", "Sent", "Drafts", "Lists/python", "Sent Items"), 20):
        person.append("INBOX", raw(number, "Work"))
        look(exclude=["Lists/*"])
        move(person, "INBOX", name, number)
    look(exclude=["Lists/*"])
    assert version(client) == 6
    assert [box.name for box in boxes(person, "INBOX", ["Lists/*"])] == list(FOLDERS)


def test_our_own_suggestions_are_never_learned(client, state, person, look):
    taught(client, state, person, look)
    person.append("INBOX", raw(10, "Travel"))
    assert look() == ["Travel: suggested for <m10@example.org>"]
    person.create_folder("feedrank/Travel")  # what a label is on Gmail
    person.select_folder("INBOX")
    person.copy(person.search(), "feedrank/Travel")
    assert look() == []
    assert ImapSource(person, state).find() == []
    assert version(client) == 6


def test_odd_folder_names(client, state, person, look):
    names = ["Büro & Co", "日本/旅行 2024", "a b/c d", "x.y", "&-odd", 'quo"ted', "Work/Sub"]
    taught(client, state, person, look)
    for name in names:
        person.create_folder(name)
    look()
    for number, _ in enumerate(names, 10):
        person.append("INBOX", raw(number, "Travel").replace(b"travel@", b"someone%d@" % number))
    look()
    for number, name in enumerate(names, 10):
        move(person, "INBOX", name, number)
    assert sorted(look()) == sorted(
        f"{name}: learned <m{number}@example.org>" for number, name in enumerate(names, 10)
    )
    assert set(client.learner("mail").labels) == {*FOLDERS, *names}
    trusted(state, names)
    for number, _ in enumerate(names, 10):
        again = raw(number, "Travel").replace(b"travel@", b"someone%d@" % number)
        person.append("INBOX", again.replace(b"<m%d@" % number, b"<m%d@" % (number + 50)))
    assert sorted(look(mode="file")) == sorted(
        f"{name}: filed <m{number}@example.org>" for number, name in enumerate(names, 60)
    )
    for number, name in enumerate(names, 10):
        assert numbers(person, name) == [number, number + 50]


def test_a_renamed_folder_keeps_its_label(client, state, person, look):
    taught(client, state, person, look)
    trusted(state)
    person.select_folder("INBOX")
    person.rename_folder("Travel", "Reisen/2024")
    assert look() == ["Travel: is now Reisen/2024"]
    person.append("INBOX", raw(10, "Travel"))
    assert look(mode="file") == ["Reisen/2024: filed <m10@example.org>"]
    person.append("INBOX", raw(11, "Travel"))
    look()
    move(person, "INBOX", "Reisen/2024", 11)
    assert look() == ["Reisen/2024: learned <m11@example.org>"]
    assert client.learner("mail").labels == list(FOLDERS)
    person.create_folder("Travel")  # a new folder of the old name is another folder
    person.append("INBOX", raw(12, "Travel"))
    look()
    move(person, "INBOX", "Travel", 12)
    look()
    assert len(client.learner("mail").labels) == 3


def test_a_deleted_folder_is_not_suggested_any_more(client, state, person, look):
    taught(client, state, person, look)
    trusted(state)
    person.select_folder("INBOX")
    person.delete_folder("Travel")
    person.append("INBOX", raw(10, "Travel"))
    assert look(mode="file") == ["Travel: gone", "Work: suggested for <m10@example.org>"]
    assert numbers(person, "INBOX") == [10]


def test_messages_without_an_id_are_followed_too(client, state, person, look):
    taught(client, state, person, look)
    person.append("INBOX", raw(10, "Work", message_id=False))
    look()
    person.select_folder("INBOX")
    person.move(person.search(), "Travel")
    assert len(look()) == 1
    assert look() == []
    assert version(client) == 7


@pytest.mark.parametrize("settle", [86_400.0, 0.0])  # looked at again soon, or after more than a day
def test_a_crash_between_record_and_move_is_told_from_the_persons_moves(
    client, state, person, look, monkeypatch, settle
):
    taught(client, state, person, look)
    trusted(state)
    rounds = len(state.judgements(1000))
    for number, crash_after_move in ((10, False), (11, True)):
        person.append("INBOX", raw(number, "Travel"))
        real = IMAPClient.move

        def crash(self, uids, folder, real=real, after=crash_after_move):
            if after:
                real(self, uids, folder)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(IMAPClient, "move", crash)
            with pytest.raises(KeyboardInterrupt):
                look(mode="file")
        assert look(mode="file", settle=settle) == []
    assert version(client) == 6  # nothing was taken for the person's choice
    assert (numbers(person, "INBOX"), 11 in numbers(person, "Travel")) == ([10], True)
    assert len(state.judgements(1000)) == rounds
    assert undo(person, state, 5) == 1  # only the one that was moved


def test_new_uidvalidity_teaches_nothing_twice(client, state, monkeypatch, tmp_path):
    monkeypatch.setenv("FEEDRANK_MAIL_PASSWORD", "secret")
    running = ImapServer()
    try:
        account = Account.of(running.url, Secret())

        def fill(imap):
            for name in FOLDERS:
                imap.create_folder(name)
            for number in range(6):
                imap.append(FOLDERS[number % 2], raw(number, FOLDERS[number % 2]))
            imap.append("INBOX", raw(10, "Work"))
            imap.append("INBOX", raw(11, "Work"))

        def look(lines):
            with connect(account) as imap:
                Watcher(imap, client, state, WatchSettings(), lines.append).look()

        with connect(account) as imap:
            fill(imap)
            for _ in range(3):
                imap.append("INBOX", raw(99, "Work"))  # so that UIDs differ the second time
            look([])
        before, known = version(client), state.folders()
        running.stop()
        running.start()
        lines = []
        with connect(account) as imap:
            fill(imap)
            look(lines)
            assert state.folders()["Work"].uidvalidity != known["Work"].uidvalidity
            assert (lines, version(client)) == ([], before)
            move(imap, "INBOX", "Work", 11)
            look(lines)
        assert lines == ["Work: learned <m11@example.org>"]
    finally:
        running.stop()


class Proxy:
    """A wire to the server that can be cut."""

    def __init__(self, port):
        self.target, self.open = port, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
                self.open += [near, far]
                for a, b in ((near, far), (far, near)):
                    threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    def pump(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        self.shut(source, sink)

    def shut(self, *sockets):
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def cut(self):
        self.shut(*self.open)
        self.open.clear()

    def close(self):
        self.shut(self.listener)
        self.cut()


@pytest.fixture
def wire(server):
    made = Proxy(server.port)
    yield made
    made.close()


@pytest.mark.parametrize("idle", [True, False])
def test_watching_sees_new_mail_and_outlives_lost_connections(
    client, tmp_path, account, person, wire, idle, state, look, monkeypatch
):
    taught(client, state, person, look)
    if not idle:
        real = IMAPClient.has_capability
        monkeypatch.setattr(
            IMAPClient, "has_capability", lambda self, name: name != "IDLE" and real(self, name)
        )
    through = Account(account.host, wire.port, account.user, account.tls, account.secret)
    lines, stop, errors = [], threading.Event(), []

    def run():
        try:
            with MailState(tmp_path / "watch.db", through.name) as own:
                watch(
                    through, client, own, WatchSettings(), lines.append, poll=30.0 if idle else 0.3, stop=stop
                )
        except Exception as error:
            errors.append(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        until(lambda: (tmp_path / "watch.db").exists() and "INBOX" in _folders(tmp_path, through), lines)
        person.append("INBOX", raw(10, "Work"))
        until(lambda: "Work: suggested for <m10@example.org>" in lines, lines)
        move(person, "INBOX", "Travel", 10)
        until(lambda: "Travel: learned <m10@example.org>" in lines, lines)
        wire.cut()
        person.append("INBOX", raw(11, "Work"))
        until(lambda: any("suggested for <m11@example.org>" in line for line in lines), lines)
        assert any("again in" in line for line in lines)
    finally:
        stop.set()
        thread.join(300)
    assert not thread.is_alive()
    assert errors == []
    assert len([line for line in lines if "m1" in line]) == 3


def _folders(tmp_path, account, name="watch.db"):
    with MailState(tmp_path / name, account.name) as own:
        return own.folders()


def test_a_wrong_password_ends_it(account, client, state, monkeypatch):
    monkeypatch.setenv("FEEDRANK_MAIL_PASSWORD", "wrong")
    with pytest.raises(SecretError, match="does not accept me"):
        watch(account, client, state, WatchSettings(), print)


def test_secrets_and_addresses(tmp_path, monkeypatch):
    monkeypatch.setenv("FEEDRANK_MAIL_PASSWORD", "env")
    path = tmp_path / "password"
    path.write_text("filed\nmore\n")
    assert Secret().read() == "env"
    assert Secret(file=path).read() == "filed"
    assert Secret(command=f"{sys.executable} -c 'print(7)'").read() == "7"
    with pytest.raises(AccountError, match="failed"):
        Secret(command=f"{sys.executable} -c 'raise SystemExit(3)'").read()
    monkeypatch.delenv("FEEDRANK_MAIL_PASSWORD")
    with pytest.raises(AccountError, match="no password"):
        Secret().read()
    one = Account.of("imaps://a.b%40example.org@mail.example.org", Secret())
    assert (one.user, one.host, one.port, one.tls) == ("a.b@example.org", "mail.example.org", 993, True)
    for url in ("mail.example.org", "imaps://mail.example.org", "http://a@b", "imaps://a:secret@b"):
        with pytest.raises(AccountError):
            Account.of(url, Secret())


def test_the_commands_train_watch_and_undo(account, person, tmp_path):
    for number in range(100):
        person.append(FOLDERS[number % 2], raw(number, FOLDERS[number % 2]))
    url = f"imap://me@127.0.0.1:{account.port}"
    own = ["--state", str(tmp_path / "mail.db")]
    store = ["--store", f"sqlite:{tmp_path / 's.db'}"]

    def command(*words):
        return [sys.executable, "-m", "feedrank.cli", "mail", *words]

    trained = subprocess.run(command("train", url, *own, *store), capture_output=True, text=True, check=True)
    assert "100 messages learned from 2 folders" in trained.stdout
    words = command("watch", url, *own, *store, "--mode", "file", "--precision", "0.9", "--poll", "1")
    watching = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: (tmp_path / "mail.db").exists() and "INBOX" in _folders(tmp_path, account, "mail.db"))
        person.append("INBOX", raw(200, "Travel"))
        assert watching.stderr.readline() == "Travel: filed <m200@example.org>\n"
        watching.terminate()
        assert watching.wait(300) == 0
    finally:
        watching.kill()
        watching.wait()
        watching.stderr.close()
    assert 200 in numbers(person, "Travel")
    undone = subprocess.run(command("undo", url, *own), capture_output=True, text=True, check=True)
    assert "1 put back" in undone.stdout
    assert numbers(person, "INBOX") == [200]


def test_the_backlog_is_shown_and_then_filed(account, person, tmp_path):
    for number in range(120):
        person.append(FOLDERS[number % 2], raw(number, FOLDERS[number % 2]))
    person.append("INBOX", raw(300, "Travel"))
    person.append("INBOX", raw(301, "Work"))
    url = f"imap://me@127.0.0.1:{account.port}"
    options = ["--state", str(tmp_path / "mail.db"), "--store", f"sqlite:{tmp_path / 's.db'}"]

    def command(*words):
        done = CliRunner().invoke(app, [*words, *options], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    command("train", url)
    dry = [sys.executable, "-m", "feedrank.cli", "mail", "sort", url, "--mode", "file", "--precision", "0.9"]
    wide = {**os.environ, "COLUMNS": "200"}  # of a terminal: what a process starts with
    table = subprocess.run(
        [*dry, "--dry-run", *options], capture_output=True, text=True, check=True, env=wide
    ).stdout
    assert "2 of 2 messages would be filed" in table
    assert numbers(person, "INBOX") == [300, 301]
    rows = [line.split("│") for line in table.splitlines() if " 30" in line]
    assert [(row[1].split()[-1], row[3].strip()) for row in rows] == [("301", "Work"), ("300", "Travel")]
    assert "2 of 2 messages filed" in command("sort", url, "--mode", "file", "--precision", "0.9")
    assert numbers(person, "INBOX") == []
    assert {300, 301} <= {*numbers(person, "Travel"), *numbers(person, "Work")}
    person.append("INBOX", raw(302, "Work"))  # came since, and is a line of the table like the others
    assert "1 of 1 messages filed" in command("sort", url, "--mode", "file", "--precision", "0.9")
    person.append("INBOX", raw(303, "Work").replace(b"Subject:", b"Subject: [/red]\x1b[2J"))
    table = command("sort", url, "--dry-run")
    assert "[/red]\ufffd[2J" in table  # neither markup nor for the terminal


def test_run_watches_accounts_and_obeys_rules_while_rank_works_beside_it(account, person, tmp_path):
    for number in range(20):
        person.append(FOLDERS[number % 2], raw(number, FOLDERS[number % 2]))
    store, state = f"sqlite:{tmp_path / 's.db'}", tmp_path / "mail.db"
    url = f"imap://me@127.0.0.1:{account.port}"
    program = [sys.executable, "-m", "feedrank.cli", "mail"]
    words = ["--state", str(state), "--store", store]
    assert CliRunner().invoke(app, ["train", url, *words], catch_exceptions=False).exit_code == 0
    (tmp_path / "accounts.toml").write_text(f"""
        store = "sqlite:s.db"
        state = "mail.db"
        [[account]]
        url = "{url}"
        mode = "file"
        poll = 1
        [[account.always]]
        subject = "*urgent*"
        folder = "Work"
        [[account]]
        url = "imap://nobody@127.0.0.1:{account.port}"
        learner = "other"
    """)
    command = [*program, "run", str(tmp_path / "accounts.toml")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            first = running.stderr.readline()
            assert "there is no learner 'other' yet" in first
            until(lambda: "INBOX" in _folders(tmp_path, account, "mail.db"))
            ranked = subprocess.run(
                [*program, "rank", *words], input=raw(90, "Travel"), capture_output=True, check=True
            )
            assert ranked.stdout.split()[1] == b"Travel"
            person.append("INBOX", raw(91, "Travel").replace(b"Subject: ", b"Subject: URGENT "))
            assert running.stderr.readline() == f"{account.name}: Work: filed <m91@example.org>\n"
        finally:
            running.terminate()
            assert running.wait(600) == 0, running.stderr.read()
    assert 91 in numbers(person, "Work")


def test_keywords_are_atoms():
    assert keyword("Work.2024") == "feedrank-Work.2024"
    folders = ["Büro & Co/Ä (1)", "Bäro & Co/Ö (1)", "日本", "中国", "a/b", "a_b"]
    made = [keyword(folder) for folder in folders]
    assert len(set(made)) == len(folders)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", one) for one in made)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_five_thousand_messages(client, state, person, look):
    for number in range(5000):
        person.append(FOLDERS[number % 2], raw(number, FOLDERS[number % 2]))
    curve = trained(client, state, person, look)
    assert len(curve.mistakes) == 5000
    assert look() == []
    person.append("INBOX", raw(6000, "Work"))
    begun = time.process_time()
    assert look() == ["Work: suggested for <m6000@example.org>"]
    assert time.process_time() - begun < 5
    assert version(client) == 5000
