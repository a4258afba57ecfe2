"""Folders that a server lists or opens oddly: one is left out, with a line, and watching goes on."""

import threading

import pytest
from odd_imap_server import looked

from feedrank.clients.mail import account as accounts
from feedrank.clients.mail.account import connect
from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.filing import WatchSettings
from feedrank.clients.mail.loop import watch
from feedrank.clients.mail.mailboxes import boxes, messages_of


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


def test_a_folder_of_very_many_messages_is_searched(odd):
    many = range(4_000_000_000, 4_000_200_000)
    _, account = odd({"INBOX": [], "Work": many})
    with connect(account) as imap:
        imap.select_folder("Work")
        assert messages_of(imap) == list(many)


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
