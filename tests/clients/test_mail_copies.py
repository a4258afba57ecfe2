"""Messages that are kept in two folders: what a mailbox does with copies is learned."""

import random
import sqlite3

import pytest

from feedrank.clients import Client
from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.copies import Copy, content_digest, with_copies
from feedrank.clients.mail.extract import features
from feedrank.clients.mail.sources import find, in_order
from feedrank.clients.mail.training import train
from feedrank.embedded import Embedded

WORDS = [f"word{number}" for number in range(300)]


def raw(number, twin, words):
    return (
        f"Message-ID: <{number}.{twin}@example.org>\nFrom: a@example.org\nTo: b@example.org\nSubject: {words[0]}\n"
        f"Date: Mon, {1 + number % 28:02} Jan 2024 {number // 28:02}:{twin:02}:00 +0000\n\n{' '.join(words)}\n"
    ).encode()


@pytest.fixture
def mailbox(tmp_path):
    """A hundred messages, each in two folders; which of the two came first is by chance."""
    draw = random.Random(7)
    for number in range(100):
        folders = ["Europe", "Office"]
        draw.shuffle(folders)
        words = draw.sample(WORDS, 12)
        for twin, folder in enumerate(folders):
            place = tmp_path / "mail" / folder
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{number}").write_bytes(raw(number, twin, words))
    return in_order(find(tmp_path / "mail"))


def test_the_second_copy_goes_where_the_first_is_not(client, mailbox, tmp_path, monkeypatch):
    monkeypatch.setattr("feedrank.clients.mail.training.BATCH_FEATURES", 333)
    with MailState(tmp_path / "s.db") as state:
        curve = train(client, state, mailbox)
        seconds = [
            mistake
            for one, mistake in zip(mailbox, curve.mistakes, strict=True)
            if one.key.endswith(".1@example.org")
        ]
        # By their words alone nearly all of them are wrong: the first copy was learned just before.
        assert sum(seconds[20:]) <= 8
        events = client.events("mail", limit=200).events
        assert [name for name in events[-1]["instance"]["features"] if name.startswith("copy:")] == [
            "copy:" + ("Europe" if mailbox[-1].folder == "Office" else "Office")
        ]


def test_an_interruption_changes_no_copy(client, mailbox, tmp_path, monkeypatch):
    monkeypatch.setattr("feedrank.clients.mail.training.BATCH_FEATURES", 333)

    def stop(count):
        if count:
            raise KeyboardInterrupt

    with MailState(tmp_path / "s.db") as state, pytest.raises(KeyboardInterrupt):
        train(client, state, mailbox, stop)
    with MailState(tmp_path / "s.db") as state:
        train(client, state, mailbox)
    with (
        Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path / 'other.db'}")) as other,
        MailState(":memory:") as state,
    ):
        train(other, state, mailbox)
        assert other.learner("mail").progress == client.learner("mail").progress


def test_a_message_is_no_copy_of_itself_and_ids_do_not_count():
    names, twin = features(raw(1, 0, WORDS[:9])), features(raw(1, 1, WORDS[:9]))
    assert names != twin
    assert content_digest(names) == content_digest(twin) != content_digest(features(raw(1, 1, WORDS[1:9])))
    with MailState(":memory:", service="one") as state:
        state.mark_learned(["id"], 1, [Copy(content_digest(names), "Europe", "1.0@example.org")])
        assert state.with_copies(names, "1.0@example.org") == names
        assert state.with_copies(twin, "1.1@example.org") == [*twin, "copy:Europe"]
        state.forget_learner()
        assert state.with_copies(twin, "1.1@example.org") == twin
    assert with_copies(["a"], [str(label) for label in range(5000)]) == [
        "a",
        *(f"copy:{n}" for n in map(str, [0, 1, 10, 100, 1000, 1001, 1002, 1003, 1004])),
    ]


def test_a_state_file_without_copies_gets_them(tmp_path):
    path = tmp_path / "s.db"
    with MailState(path) as state:
        state.mark_learned(["id"], 1)
    with sqlite3.connect(path) as old:
        old.executescript("DROP TABLE copies; PRAGMA user_version = 2;")
    old.close()
    with MailState(path) as state:
        assert state.is_learned("id")
        assert state.copies(["digest"]) == {}
