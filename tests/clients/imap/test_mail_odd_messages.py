"""Messages that a server sends oddly, without end or not at all: one is left out, with a line, and watching goes on."""

import resource
import threading

from imapclient import imapclient, response_parser
from odd_imap_server import looked

from feedrank.clients.mail import account as accounts
from feedrank.clients.mail.account import connect
from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.filing import WatchSettings
from feedrank.clients.mail.imap_source import ImapSource
from feedrank.clients.mail.loop import watch
from feedrank.clients.mail.running import sort
from feedrank.clients.mail.training import train
from feedrank.clients.mail.watcher import Watcher


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
