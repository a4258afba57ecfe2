"""What a person does with mail is learned, and learned once, whether anybody watched or not."""

import time
from datetime import UTC, datetime

import pytest
from imap_server import ImapServer, move
from mail_rounds import FOLDERS, raw, taught, trained, version

from feedrank.clients.mail.account import Account, Secret, connect
from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.filing import WatchSettings
from feedrank.clients.mail.imap_source import ImapSource
from feedrank.clients.mail.watcher import Watcher


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


def test_what_was_read_in_the_inbox_days_ago_is_learned_by_training_and_a_later_move_too(
    client, state, person, look
):
    for number, flags in ((10, [rb"\Seen"]), (11, []), (12, [rb"\Seen", rb"\Deleted"])):
        person.append("INBOX", raw(number, "Work"), flags)
    now = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S +0000").encode()
    person.append("INBOX", raw(13, "Work").replace(b"Mon, 05 Feb 2024 10:13:00 +0000", now), [rb"\Seen"])
    taught(client, state, person, look)
    assert [one["truth"]["label"] for one in client.events("mail").events].count("INBOX") == 1
    assert version(client) == 7
    assert trained(client, state, person, look).mistakes == []
    person.create_folder(
        "Kept"
    )  # what is put there was learned as the inbox's, and is not the inbox under a new name
    move(person, "INBOX", "Kept", 10)
    assert trained(client, state, person, look).mistakes == [True]
    assert set(client.learner("mail").labels) == {*FOLDERS, "INBOX", "Kept"}


def test_a_move_by_the_person_is_learned_once(client, state, person, look):
    taught(client, state, person, look)
    person.append("INBOX", raw(10, "Work"))
    assert look() == ["Work: suggested for <m10@example.org>"]
    assert version(client) == 6
    move(person, "INBOX", "Travel", 10)
    assert look() == ["Travel: learned <m10@example.org>"]
    assert look() == []
    assert version(client) == 7
    event = client.events("mail", after=6).events[0]
    assert (event["truth"], event["min_precision"]) == ({"label": "Travel"}, 0.95)


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


def test_messages_without_an_id_are_followed_too(client, state, person, look):
    taught(client, state, person, look)
    person.append("INBOX", raw(10, "Work", message_id=False))
    look()
    person.select_folder("INBOX")
    person.move(person.search(), "Travel")
    assert len(look()) == 1
    assert look() == []
    assert version(client) == 7


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
