"""Sure mail is filed, and what the person does with it then says whether that was right."""

import pytest
from imap_server import move, numbers
from imapclient import IMAPClient
from mail_rounds import raw, taught, trusted, version

from feedrank.clients.mail.account import AccountError, connect
from feedrank.clients.mail.filing import WatchSettings
from feedrank.clients.mail.promise import Judgement
from feedrank.clients.mail.running import sort
from feedrank.clients.mail.undo import undo
from feedrank.clients.mail.watcher import Watcher


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
