"""Sure mail is filed, and what the person does with it then says whether that was right."""

import pytest
from imap_server import move, numbers
from imapclient import IMAPClient
from mail_rounds import raw, taught, trusted, version

from feedrank.clients.mail.account import AccountError, connect
from feedrank.clients.mail.copies import content_digest
from feedrank.clients.mail.extract import features
from feedrank.clients.mail.filing import WatchSettings
from feedrank.clients.mail.running import sort
from feedrank.clients.mail.undo import undo
from feedrank.clients.mail.watcher import Watcher


def judged(client):
    """The truth of the newest event, and whether a prediction under the bound was judged by it."""
    event = client.events("mail", after=version(client) - 1).events[0]
    return event["truth"]["label"], event.get("promise") == "account"


def flag(person, folder, number, name):
    person.select_folder(folder)
    person.add_flags(person.search(["HEADER", "Message-ID", f"m{number}@example.org"]), [name])


def test_sure_mail_is_filed_and_not_learned_from_ourselves(client, state, person, look):
    taught(client, state, person, look)
    person.append("INBOX", raw(10, "Travel"))
    assert look(mode="file") == ["Travel: suggested for <m10@example.org>"]  # no record yet, so never sure
    record = trusted(client)
    person.append("INBOX", raw(11, "Travel"))
    assert look(mode="file") == ["Travel: filed <m11@example.org>"]
    assert (numbers(person, "INBOX"), numbers(person, "Travel")) == ([10], [1, 3, 5, 11])
    assert look(mode="file") == []
    assert version(client) == record


@pytest.mark.parametrize("name", [rb"\Seen", rb"\Answered", rb"\Flagged", rb"\Deleted"])
def test_a_filed_message_that_was_opened_and_left_was_right_and_is_learned(client, state, person, look, name):
    taught(client, state, person, look)
    record = trusted(client)
    person.append("INBOX", raw(11, "Travel"))
    look(mode="file")
    assert look(settle=0.0) == []
    assert state.actions("filed")[0].fate == "open"  # not opened yet
    flag(person, "Travel", 11, name)
    assert look(settle=3600.0) == []
    assert len(state.actions("filed")) == 1
    assert look(settle=0.0) == ["Travel: learned <m11@example.org>"]
    assert state.actions("filed") == []
    assert (version(client), judged(client)) == (record + 1, ("Travel", True))
    assert state.copies([content_digest(features(raw(11, "Travel")))], "another") != {}
    assert look(settle=0.0) == []


def test_what_nobody_opens_is_unjudged_after_days_and_judged_when_it_is_opened_or_moved_then(
    client, state, person, look
):
    taught(client, state, person, look)
    record = trusted(client)
    for number in (11, 12, 13):
        person.append("INBOX", raw(number, "Travel"))
    look(mode="file")
    assert look(settle=0.0) == []
    assert look(settle=0.0, unopened=0.0) == ["Travel: 3 filed and not opened for days: unjudged"]
    assert look(settle=0.0, unopened=0.0) == []
    assert state.filed_since(0.0) == {"unjudged": 3}
    assert version(client) == record
    flag(person, "Travel", 11, rb"\Seen")
    move(person, "Travel", "Work", 12)
    assert sorted(look(settle=0.0)) == [
        f"{folder}: learned <m{n}@example.org>" for folder, n in (("Travel", 11), ("Work", 12))
    ]
    assert state.filed_since(0.0) == {"confirmed": 1, "corrected": 1, "unjudged": 1}
    assert version(client) == record + 2
    assert undo(person, state, 1) == 1
    assert look() == ["INBOX: learned <m13@example.org>"]


@pytest.mark.parametrize("where", ["Travel", "Work", "INBOX"])
def test_an_audit_stays_in_the_inbox_and_is_judged_by_the_persons_move(
    client, state, person, look, monkeypatch, where
):
    taught(client, state, person, look)
    trusted(client)
    monkeypatch.setattr("feedrank.learners.inference.assurance.DRAWN", 1.0)
    person.append("INBOX", raw(11, "Travel"))
    said = "Travel: suggested for <m11@example.org>, which stays in the inbox to be checked"
    assert look(mode="file") == [said]
    assert numbers(person, "INBOX") == [11]
    assert state.checked() == (0, 0)
    if where == "INBOX":
        flag(person, "INBOX", 11, rb"\Answered")
    else:
        move(person, "INBOX", where, 11)
    assert look(mode="file") == [f"{where}: learned <m11@example.org>"]
    assert state.checked() == (1, int(where == "Travel"))
    assert judged(client) == (where, True)
    assert client.events("mail", after=version(client) - 1).events[0]["audit"]
    assert look(mode="file") == []


@pytest.mark.parametrize("where", ["Work", "INBOX"])
def test_a_correction_of_our_move_is_the_truth(client, state, person, look, where):
    taught(client, state, person, look)
    record = trusted(client)
    person.append("INBOX", raw(11, "Travel"))
    look(mode="file")
    move(person, "Travel", where, 11)
    lines = look(mode="file")
    back = ["Travel: <m11@example.org> was put back", "INBOX: learned <m11@example.org>"]
    assert lines == (["Work: learned <m11@example.org>"] if where == "Work" else back)
    assert version(client) == record + 1
    assert judged(client) == (where, True)
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
    record = trusted(client)
    for number in (11, 12):
        person.append("INBOX", raw(number, "Travel"))
        look(mode="file")
    expunge(person, "Travel", 11)
    look(settle=3600.0)
    assert len(state.actions("filed")) == 2  # not yet: it may be on its way to another folder
    look(settle=0.0)
    assert [action.key for action in state.actions("filed")] == ["m12@example.org"]
    assert version(client) == record  # nobody knows whether it was right
    expunge(person, "Travel", 12)
    look(settle=0.0)
    person.append("Work", raw(12, "Travel"))  # it was only in the trash
    assert look() == ["Work: learned <m12@example.org>"]
    assert judged(client) == ("Work", True)


def test_a_folder_that_is_gone_does_not_keep_the_others_from_being_settled(client, state, person, look):
    taught(client, state, person, look)
    trusted(client)
    person.append("INBOX", raw(11, "Travel"))
    look(mode="file")
    person.append("INBOX", raw(12, "Work"))
    look(mode="file")
    look()
    person.select_folder("Travel")
    person.add_flags(person.search(), [rb"\Seen"])
    person.unselect_folder() if person.has_capability("UNSELECT") else person.select_folder("INBOX")
    person.delete_folder("Work")
    assert look(settle=0.0) == ["Work: gone", "Travel: learned <m11@example.org>"]
    assert state.actions("filed") == []
    assert judged(client) == ("Travel", True)
    assert look(settle=0.0) == []


def test_undo_does_not_hide_a_correction(client, state, person, look):
    taught(client, state, person, look)
    trusted(client)
    person.append("INBOX", raw(11, "Travel"))
    look(mode="file")
    look()
    move(person, "Travel", "Work", 11)
    assert undo(person, state) == 0
    assert look() == ["Work: learned <m11@example.org>"]
    assert judged(client) == ("Work", True)


@pytest.mark.parametrize("together", [True, False])
def test_a_message_that_comes_twice_was_not_put_back(client, state, person, look, together):
    taught(client, state, person, look)
    record = trusted(client)
    person.append("INBOX", raw(11, "Travel"))
    if not together:
        assert look(mode="file") == ["Travel: filed <m11@example.org>"]
    person.append("INBOX", raw(11, "Travel"))  # once from the sender, once from a list
    assert set(look(mode="file")) == {"Travel: filed <m11@example.org>"}
    assert numbers(person, "Travel") == [1, 3, 5, 11, 11]
    assert look(mode="file") == []
    assert version(client) == record
    assert undo(person, state, 2) == 2
    assert numbers(person, "INBOX") == [11, 11]


def test_without_move_nothing_is_said_to_be_filed_and_nothing_is_learned(
    account, client, state, person, look, monkeypatch
):
    taught(client, state, person, look)
    record = trusted(client)
    person.append("INBOX", raw(11, "Travel"))
    able = IMAPClient.has_capability
    monkeypatch.setattr(IMAPClient, "has_capability", lambda self, name: name != "MOVE" and able(self, name))
    rows = list(sort(account, client, state, WatchSettings(mode="file"), print, 10))
    assert [(row.advice.sure, row.filed) for row in rows] == [(True, False)]
    person.select_folder("INBOX")
    (uid,), uidvalidity = person.search(), person.folder_status("INBOX")[b"UIDVALIDITY"]
    with connect(account) as imap, pytest.raises(AccountError, match="has no MOVE"):
        Watcher(imap, client, state, WatchSettings(), print).choose(uid, uidvalidity, "Travel")
    assert version(client) == record
    assert numbers(person, "INBOX") == [11]


def test_undo_puts_back_for_good(client, state, person, look):
    taught(client, state, person, look)
    trusted(client)
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
    assert judged(client) == ("INBOX", True)


def test_a_dry_run_changes_nothing(client, state, person, look, account):
    taught(client, state, person, look)
    trusted(client)
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


@pytest.mark.parametrize("settle", [86_400.0, 0.0])  # looked at again soon, or after more than a day
def test_a_crash_between_record_and_move_is_told_from_the_persons_moves(
    client, state, person, look, monkeypatch, settle
):
    taught(client, state, person, look)
    record = trusted(client)
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
    assert version(client) == record  # nothing was taken for the person's choice
    assert (numbers(person, "INBOX"), 11 in numbers(person, "Travel")) == ([10], True)
    assert undo(person, state, 5) == 1  # only the one that was moved
