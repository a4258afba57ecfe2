"""The state file of mail: kept by account, learner and service, taken over from older releases, opened by two at once."""

import sqlite3

from feedrank.clients.mail import state_tables
from feedrank.clients.mail.bookkeeping import Folder, MailState, Predicted, feedback_id
from feedrank.clients.mail.state_tables import open_state
from feedrank.files import create_private


def test_the_state_is_kept_by_account_learner_and_service(tmp_path):
    path = tmp_path / "deep" / "s.db"
    with MailState(path, "one") as state:
        state.put_folder(Folder("A", 1, 5, 2, "A"))
        for uid, key in ((1, "k1"), (2, "k2")):
            state.place("A", uid, key)
        state.see("k1", Predicted("p1", "A", 7.0))
        state.see("k2")
        action = state.act("k1", "filed", "INBOX", "A")
        state.mark_learned([feedback_id("k1", "A")], 3)
        state.rename_folder("A", "B/C")
        state.relabel("B/C", "A")
        state.arrived(action, 9, 77)
    with (
        MailState(path, "one") as state,
        MailState(path, "two", "other") as foreign,
        MailState(path, "one", service="sqlite:/elsewhere.db") as elsewhere,
        state.copy() as copy,
    ):
        assert state.folders() == {"B/C": Folder("B/C", 1, 5, 2, "A")}
        assert state.uids("B/C") == {1: "k1", 2: "k2"}
        assert state.prediction("k1") == Predicted("p1", "A", 7.0)
        assert state.waiting("B/C") == {1: ("k1", 7.0)}
        assert [(one.folder, one.uid, one.uidvalidity) for one in state.actions("filed", "k1")] == [
            ("B/C", 9, 77)
        ]
        assert state.log() == (3, feedback_id("k1", "A"))
        for number, fate in enumerate(("confirmed", "corrected", "confirmed", "open")):
            state.set_fate(state.act(f"k{number}", "audited", "INBOX", "B/C"), fate)
        assert (state.checked(), foreign.checked()) == ((3, 2), (0, 0))
        assert (state.label_of("B/C"), state.folder_of("A")) == ("A", "B/C")
        assert state.is_learned(feedback_id("k1", "A"))
        assert not state.is_learned(feedback_id("k1", "B"))
        assert (foreign.folders(), foreign.is_seen("k1"), foreign.actions("filed")) == ({}, False, [])
        assert not elsewhere.is_learned(feedback_id("k1", "A"))
        assert (elsewhere.log(), elsewhere.label_of("B/C")) == (None, "B/C")
        copy.forget_folder("B/C")
        copy.see("k1")
        assert copy.prediction("k1") is None
        assert state.folders()
        assert state.prediction("k1")
        state.forget_learner()
        assert not state.is_learned(feedback_id("k1", "A"))
    raw = path.read_bytes()
    assert b"a@example.org" not in raw


def test_a_state_file_of_the_first_version_is_taken_over(tmp_path):
    path = tmp_path / "s.db"
    with sqlite3.connect(path) as old:
        old.executescript("""
            CREATE TABLE folders (account TEXT, name TEXT, uidvalidity INTEGER, uidnext INTEGER, messages INTEGER,
                label TEXT NOT NULL, PRIMARY KEY (account, name)) WITHOUT ROWID;
            CREATE TABLE seen (account TEXT, key TEXT, prediction_id TEXT, label TEXT, margin REAL,
                PRIMARY KEY (account, key)) WITHOUT ROWID;
            CREATE TABLE learned (learner TEXT, id TEXT, PRIMARY KEY (learner, id)) WITHOUT ROWID;
            CREATE TABLE actions (id INTEGER PRIMARY KEY, account TEXT, key TEXT, kind TEXT, origin TEXT, folder TEXT,
                at REAL, fate TEXT);
            CREATE TABLE rounds (id INTEGER PRIMARY KEY, learner TEXT, label TEXT, margin REAL, right INTEGER);
            INSERT INTO folders VALUES ('one', 'A', 1, 5, 2, 'A');
            INSERT INTO actions VALUES (1, 'one', 'k', 'filed', 'INBOX', 'A', 1.0, 'open');
            PRAGMA user_version = 1;
        """)
    old.close()
    for _ in range(2):
        with MailState(path, "one") as state:
            assert state.folders() == {"A": Folder("A", 1, 5, 2, "A")}
            assert [one.uid for one in state.actions("filed")] == [None]


def test_a_state_file_of_the_fourth_version_keeps_what_was_seen_and_done(tmp_path):
    path = tmp_path / "s.db"
    with MailState(path, "one"):
        pass
    with sqlite3.connect(path) as old:
        old.executescript("""
            DROP TABLE seen; DROP TABLE actions;
            CREATE TABLE seen (account TEXT, key TEXT, prediction_id TEXT, label TEXT, certainty REAL, risk REAL, at REAL,
                PRIMARY KEY (account, key)) WITHOUT ROWID;
            CREATE TABLE actions (id INTEGER PRIMARY KEY, account TEXT, key TEXT, kind TEXT, origin TEXT, folder TEXT,
                at REAL, fate TEXT, uid INTEGER, uidvalidity INTEGER, risk REAL);
            CREATE INDEX actions_key ON actions (account, key);
            CREATE TABLE judgements (id INTEGER PRIMARY KEY, learner TEXT, label TEXT, certainty REAL, right INTEGER);
            CREATE TABLE credits (learner TEXT PRIMARY KEY, account TEXT, credit REAL);
            INSERT INTO seen VALUES ('one', 'k1', 'p1', 'A', 0.5, 0.1, 7.0);
            INSERT INTO actions VALUES (3, 'one', 'k1', 'filed', 'INBOX', 'A', 1.0, 'open', 9, 77, 0.25);
            PRAGMA user_version = 4;
        """)
    old.close()
    for _ in range(2):
        with MailState(path, "one") as state:
            assert state.prediction("k1") == Predicted("p1", "A", 7.0)
            assert [(one.id, one.uid) for one in state.actions("filed", "k1")] == [(3, 9)]
            assert state.act("k2", "filed", "INBOX", "A") > 3
    with sqlite3.connect(path) as now:
        tables = {name for (name,) in now.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    now.close()
    assert not tables & {"judgements", "credits", "seen_before", "actions_before"}


def test_two_that_open_a_new_state_at_once_both_get_it(tmp_path, monkeypatch):
    create_private(tmp_path / "mail.db")
    other = sqlite3.connect(tmp_path / "mail.db", isolation_level=None)
    other.execute("CREATE TABLE t (a)")
    other.execute("BEGIN")
    other.execute("SELECT * FROM t").fetchall()  # reads, while the mode of the file is to change
    pauses = []
    monkeypatch.setattr(state_tables.time, "sleep", lambda pause: pauses.append(pause) or other.rollback())
    open_state(tmp_path / "mail.db").close()
    assert pauses == [0.01]
    other.close()
