"""Mailboxes of every kind, training from them, the state file and the threshold."""

import itertools
import mailbox
import os
import random
import sqlite3
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.clients import Client
from feedrank.clients.exceptions import Conflict
from feedrank.clients.mail import state_tables
from feedrank.clients.mail.bookkeeping import Folder, MailState, Predicted, feedback_id
from feedrank.clients.mail.extract import EARLIER
from feedrank.clients.mail.folder_names import is_choice
from feedrank.clients.mail.promise import (
    START,
    WINDOW,
    Credit,
    Judgement,
    certainty,
    earned,
    judged,
    may_file,
    risk,
)
from feedrank.clients.mail.sources import SourceError, find, in_order
from feedrank.clients.mail.state_tables import open_state
from feedrank.clients.mail.training import create_learner, follow_log, train
from feedrank.embedded import Embedded
from feedrank.files import create_private

TOPICS = {"Work": "budget meeting", "Work/Travel": "flight hotel", "Büro & Co": "Stempel Papier"}


def raw(number, folder):
    return (
        f"Message-ID: <{number}@example.org>\nFrom: a{number % 3}@example.org\nSubject: {TOPICS[folder]}\n"
        f"Date: {datetime(2024, 1, 1 + number % 28, number % 24, tzinfo=UTC):%a, %d %b %Y %H:%M:%S} +0000\n\n"
        f"{TOPICS[folder]} {number}\nFrom me to you\n"
    ).encode()


MESSAGES = [(number, folder) for number, folder in zip(range(60), itertools.cycle(TOPICS), strict=False)]


def maildir(root):
    root.rmdir()
    box = mailbox.Maildir(root)
    folders = {"Work": "Work", "Work/Travel": "Work.Travel", "Büro & Co": "B&APw-ro &- Co"}
    made = {name: box.add_folder(on_disk) for name, on_disk in folders.items()}
    for number, folder in MESSAGES:
        made[folder].add(raw(number, folder))
    box.add(raw(99, "Work"))


def nested_maildirs(root):
    for name in TOPICS:
        for part in ("cur", "new", "tmp"):
            (root / name / part).mkdir(parents=True)
    for number, folder in MESSAGES:
        (root / folder / ("cur" if number % 2 else "new") / f"{number}.host:2,S").write_bytes(
            raw(number, folder)
        )


def directories(root):
    for number, folder in MESSAGES:
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / f"{number}.eml").write_bytes(raw(number, folder))
    (root / "Work" / ".hidden").write_text("no message")


def thunderbird(root):
    """`Work` is an mbox, and what is below it is in `Work.sbd`."""
    for number, folder in MESSAGES:
        *parents, name = folder.split("/")
        place = root.joinpath(*(f"{parent}.sbd" for parent in parents))
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{name}.msf").write_text("an index")
        with (place / name).open("ab") as file:
            file.write(
                b"From - Mon Jan  1 00:00:00 2024\n"
                + raw(number, folder).replace(b"\nFrom me", b"\n>From me")
                + b"\n"
            )


def prefixed_maildir(root):
    """As of a server whose folders are all below the inbox."""
    root.rmdir()
    box = mailbox.Maildir(root)
    folders = {"Work": "INBOX.Work", "Work/Travel": "INBOX.Work.Travel", "Büro & Co": "INBOX.B&APw-ro &- Co"}
    made = {name: box.add_folder(on_disk) for name, on_disk in folders.items()}
    for number, folder in MESSAGES:
        made[folder].add(raw(number, folder))


def mboxes(root):
    for number, folder in MESSAGES:
        path = root / f"{folder}.mbox"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(
                b"From someone Mon Jan  1 00:00:00 2024\n"
                + raw(number, folder).replace(b"\nFrom me", b"\n>From me")
                + b"\n"
            )


@pytest.fixture(params=[maildir, prefixed_maildir, nested_maildirs, directories, mboxes, thunderbird])
def source(request, tmp_path):
    root = tmp_path / "mail"
    root.mkdir()
    request.param(root)
    return root


@pytest.fixture
def client(tmp_path):
    with Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path / 'service.db'}")) as made:
        yield made


def test_every_source_gives_the_same_messages_in_the_same_order(source):
    result = in_order(one for one in find(source) if is_choice(one.folder))
    expected = sorted(MESSAGES, key=lambda one: (one[0] % 28, one[0] % 24, f"{one[0]}@example.org"))
    assert [(one.key, one.folder) for one in result] == [
        (f"{number}@example.org", folder) for number, folder in expected
    ]
    bodies = {one.key: one.load() for one in result}
    assert all(
        TOPICS[folder].split()[0].encode() in bodies[f"{number}@example.org"] for number, folder in MESSAGES
    )


@pytest.fixture
def open_place():
    """A directory that every user may enter: pytest's own are closed."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def as_ordinary_user():
    """Not as root, who may read everything."""
    os.seteuid(os.getuid() or 65534)
    try:
        yield
    finally:
        os.seteuid(os.getuid())


@pytest.mark.parametrize("make", [nested_maildirs, directories])
def test_what_cannot_be_read_costs_a_line_and_the_rest_is_learned(make, open_place):
    make(open_place)
    everything = {one.key for one in find(open_place)}
    files = sorted(path for path in open_place.rglob("*") if path.is_file())
    closed = files[-1].parent
    lost = 1 + len(list(closed.iterdir()))
    files[0].chmod(0)
    closed.chmod(0)
    lines = []
    with as_ordinary_user():
        rest = {one.key for one in find(open_place, lines.append)}
    closed.chmod(0o755)
    assert rest < everything
    assert len(rest) == len(everything) - lost
    assert len(lines) == 2
    assert all("Permission denied; left out" in line for line in lines)


def test_a_message_that_is_moved_away_meanwhile_is_passed_over(tmp_path, client):
    directories(tmp_path / "mail")
    messages = list(find(tmp_path / "mail"))
    next(path for path in (tmp_path / "mail").rglob("*") if path.is_file()).unlink()
    with MailState(tmp_path / "state.db") as state:
        assert len(train(client, state, messages).mistakes) == len(messages) - 1


def test_what_is_marked_as_deleted_is_not_there(tmp_path):
    for flags in ("2,S", "2,ST", "2,T", "2,DFPRS"):
        place = tmp_path / "maildir" / "cur"
        place.mkdir(parents=True, exist_ok=True)
        (tmp_path / "maildir" / "new").mkdir(exist_ok=True)
        (place / f"T{flags[2:]}.host:{flags}").write_bytes(f"Message-ID: <{flags}@x>\n\nhello\n".encode())
    assert sorted(one.key for one in find(tmp_path / "maildir")) == ["2,DFPRS@x", "2,S@x"]
    marks = {"X-Mozilla-Status": ["0001", "0009", "0008", "odd", ""], "X-Status": ["A", "AD"]}
    with (tmp_path / "Work").open("w") as file:
        for name, values in marks.items():
            for value in values:
                file.write(f"From - Mon\n{name}: {value}\nMessage-ID: <{name}.{value}@x>\n\nhello\n\n")
    kept = [one.key.removesuffix("@x").rpartition(".")[2] for one in find(tmp_path / "Work")]
    assert sorted(kept) == ["", "0001", "A", "odd"]


def test_an_mbox_that_is_compacted_meanwhile_gives_no_wrong_message(tmp_path):
    one = "From - Mon\nMessage-ID: <{0}@x>\nSubject: number {0}\n\nhello {0}\n\n"
    path = tmp_path / "Work"
    path.write_text("".join(one.format(number) for number in range(10, 20)))
    listed = list(find(path))
    assert [b"hello" in message.load() for message in listed] == [True] * 10
    path.write_text("".join(one.format(number) for number in range(10, 20) if number != 15))
    assert [b"hello" in message.load() for message in listed] == [True] * 5 + [False] * 5


def test_one_mbox_is_one_folder(tmp_path):
    box = mailbox.mbox(tmp_path / "Archive.mbox")
    for number, folder in MESSAGES:
        box.add(raw(number, folder))
    box.close()
    result = list(find(tmp_path / "Archive.mbox"))
    assert len(result) == len(MESSAGES)
    assert {one.folder for one in result} == {"Archive"}
    (tmp_path / "empty").write_bytes(b"")
    assert list(find(tmp_path / "empty")) == []
    with pytest.raises(SourceError):
        list(find(tmp_path / "nowhere"))


def test_training_is_resumed_where_it_stopped(source, client, tmp_path, monkeypatch):
    result = [one for one in find(source) if is_choice(one.folder)]
    monkeypatch.setattr("feedrank.clients.mail.training.BATCH_FEATURES", 200)
    monkeypatch.setattr("feedrank.clients.mail.training.PREDICTED", 25)
    done = []

    def stop(count):
        done.append(count)
        if sum(done) >= 20:
            raise KeyboardInterrupt

    with MailState(tmp_path / "s.db") as state, pytest.raises(KeyboardInterrupt):
        train(client, state, result, stop)
    assert 20 <= client.learner("mail").version < 60
    with MailState(tmp_path / "s.db") as state:
        second = train(client, state, result)
        assert sum(done) + len(second.mistakes) == 60
        assert len(state.judgements(100)) == 25
        assert train(client, state, result).mistakes == []
    with MailState(":memory:") as fresh:  # the state file is lost: the service knows them all the same
        third = train(client, fresh, result)
        assert (third.mistakes, third.known) == ([], 60)
    info = client.learner("mail")
    assert (info.version, info.progress.rounds) == (60, 60)
    assert set(info.labels) == set(TOPICS)
    # An interruption changes nothing in what is learned.
    with (
        Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path / 'other.db'}")) as other,
        MailState(":memory:") as state,
    ):
        curve = train(other, state, result)
        assert curve.points()[-1][0] == 60
        assert other.learner("mail").progress == info.progress
        assert other.predict("mail", {"features": ["subject:flight"]}, remember=False) == client.predict(
            "mail", {"features": ["subject:flight"]}, remember=False
        )


def test_a_curve_has_few_points_and_true_shares(client, tmp_path):
    directories(tmp_path)
    assert (tmp_path / "service.db").exists()  # what is no message is not read as one
    with MailState(":memory:") as state:
        curve = train(client, state, list(find(tmp_path)))
    points = curve.points(7)
    assert len(points) == 7
    assert points[-1][:2] == (60, pytest.approx(sum(curve.mistakes) / 60))
    spans = [points[0][0], *(b[0] - a[0] for a, b in itertools.pairwise(points))]
    assert sum(span * recent for span, (_, _, recent) in zip(spans, points, strict=True)) == pytest.approx(
        sum(curve.mistakes)
    )
    assert client.history("mail").points[-1].mean_loss == pytest.approx(points[-1][1])


@pytest.mark.parametrize(
    ("folder", "chosen"),
    [
        ("Work", True), ("Trash", False), ("INBOX", False), ("INBOX/Work", True), ("INBOX/Sent Items", False),
        ("[Gmail]/Important", False), ("Archive", False), ("Archives/2019", False), ("Archive/Projects", True),
        ("Junk E-mail", False), ("Entwürfe", False), ("Trash/old", False), ("Sentiment", True), ("Lists/python", False),
    ],
)  # fmt: skip
def test_folders_that_are_a_persons_choice(folder, chosen):
    assert is_choice(folder, ["Lists/*"]) is chosen


def bound(precision, filed):
    """d N, and at most 3 more before 20 / d messages were filed."""
    d = 1 - precision
    return d * filed + START * max(0.0, 1 - d * filed / 20)


def play(luck, rounds, rate, precision=0.95):
    """File by the rule in a world where a prediction of certainty c is wrong with chance rate(t, c); what was filed."""
    record, filed, credit = [], [], Credit()
    for t in range(rounds):
        sureness = luck.random()
        right = luck.random() >= rate(t, sureness)
        chance = risk(record[-WINDOW:], "a", sureness)
        if may_file(chance, credit, 0.0, precision):
            filed.append(right)
            credit = judged(credit, right, precision)
        else:
            credit = earned(credit, chance, right, precision)
        record.append(Judgement("a", sureness, right))
    return filed


@pytest.mark.parametrize("precision", [0.9, 0.95])
def test_the_promise_holds_on_a_stream_and_much_is_filed(precision):
    filed = play(random.Random(3), 2000, lambda t, c: (1 - c) / 2, precision)
    assert len(filed) > (300 if precision == 0.9 else 100)
    for end in range(1, len(filed) + 1):
        assert filed[:end].count(False) <= bound(precision, end)


def test_the_promise_holds_when_everything_changes():
    """First all is right above 0.3; from then on nothing is better than chance, and the record knows that only later."""
    filed = play(random.Random(5), 1500, lambda t, c: (0.01 if c > 0.3 else 0.6) if t < 700 else 0.5)
    assert len(filed) > 300
    for end in range(1, len(filed) + 1):
        assert filed[:end].count(False) <= bound(0.95, end)


@given(st.lists(st.booleans(), max_size=300), st.floats(0.5, 0.99))
def test_mistakes_never_exceed_the_bound_whatever_the_estimate_says(outcomes, precision):
    credit, wrong, filed = Credit(), 0, 0
    for right in outcomes:
        if may_file(0.0, credit, 0.0, precision):  # the estimate always says that there is no risk at all
            credit = judged(credit, right, precision)
            filed += 1
            wrong += not right
            assert wrong <= bound(precision, filed) + 1e-9


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=600), st.floats(0.5, 0.99))
def test_mistakes_stay_within_the_debt_and_loans_grow_with_the_logarithm(outcomes, precision):
    d = 1 - precision
    credit, wrong, filed, watched = Credit(), 0, 0, 0
    for right, risky in outcomes:
        chance = 0.4 if risky else 0.0
        if may_file(chance, credit, 0.0, precision):
            credit = judged(credit, right, precision)
            filed, wrong = filed + 1, wrong + (not right)
        else:
            watched += credit.left < 1
            credit = earned(credit, chance, right, precision)
        assert wrong <= d * filed + credit.debt + 1e-9
        assert 2**credit.loans <= 1 + d * watched + 1e-6
        assert credit.debt <= START + credit.loans


def test_a_pause_ends_when_the_predictions_are_good_again_and_the_next_proof_is_twice_as_long():
    paused = Credit(0.5, 2.0)
    assert not may_file(0.0, paused, 0.0, 0.95)
    assert (
        earned(paused, 0.06, True, 0.95) == paused
    )  # too risky to be filed with a loan, so it proves nothing
    assert earned(paused, 0.05, True, 0.95).proof == pytest.approx(0.05)
    assert earned(Credit(-0.5, 2.0), 0.03, True, 0.95).proof == pytest.approx(0.05)
    credit = earned(paused, 0.0, False, 0.95)
    for length in (20, 40):
        for _ in range(length):
            assert not may_file(0.0, credit, 0.0, 0.95)
            credit = earned(credit, 0.0, True, 0.95)
        assert may_file(0.0, credit, 0.0, 0.95)
        credit = judged(credit, False, 0.95)
    assert (credit.loans, credit.proof) == (2, 0.0)


def test_without_a_record_nothing_is_filed():
    assert risk([Judgement("a", 1.0, True)] * 19, "a", 9.0) == 1.0
    assert not may_file(1.0, Credit(1e9), 0.0, 0.95)
    assert not may_file(0.0, Credit(), START, 0.95)  # all credit is reserved for what is not judged yet


def test_a_folder_has_a_record_of_its_own():
    record = [Judgement("a", 0.5, True), Judgement("b", 0.5, False)] * 30
    assert risk(record, "a", 0.5) < risk(record, "new", 0.5) < risk(record, "b", 0.5)
    assert certainty(record, "a", 1.0) == 31 / 32
    assert certainty(record, "b", 1.0) == 1 / 32
    assert certainty(record, "new", 1.0) == 1 / 2


def test_a_message_less_certain_than_all_before_is_a_guess():
    record = [Judgement("a", 0.1 + 0.01 * step, True) for step in range(90)]
    assert risk(record, "a", 0.099) >= 0.5
    assert risk(record, "a", 0.99) < 0.05


def test_the_state_is_kept_by_account_learner_and_service(tmp_path):
    path = tmp_path / "deep" / "s.db"
    with MailState(path, "one") as state:
        state.put_folder(Folder("A", 1, 5, 2, "A"))
        for uid, key in ((1, "k1"), (2, "k2")):
            state.place("A", uid, key)
        state.see("k1", Predicted("p1", "A", 0.5, 0.1, 7.0))
        state.see("k2")
        action = state.act("k1", "filed", "INBOX", "A", 0.25)
        state.mark_learned([feedback_id("k1", "A")], 3)
        state.rename_folder("A", "B/C")
        state.relabel("B/C", "A")
        state.set_credit(Credit(2.5, 1.5, 2, 0.75))
        state.arrived(action, 9, 77)
    with (
        MailState(path, "one") as state,
        MailState(path, "two", "other") as foreign,
        MailState(path, "one", service="sqlite:/elsewhere.db") as elsewhere,
        state.copy() as copy,
    ):
        assert state.folders() == {"B/C": Folder("B/C", 1, 5, 2, "A")}
        assert state.uids("B/C") == {1: "k1", 2: "k2"}
        assert state.prediction("k1") == Predicted("p1", "A", 0.5, 0.1, 7.0)
        assert state.waiting("B/C") == {1: ("k1", 7.0)}
        assert [(one.folder, one.uid, one.uidvalidity) for one in state.actions("filed", "k1")] == [
            ("B/C", 9, 77)
        ]
        assert (state.log(), state.credit(), state.reserved()) == (
            (3, feedback_id("k1", "A")),
            Credit(2.5, 1.5, 2, 0.75),
            0.25,
        )
        assert (state.label_of("B/C"), state.folder_of("A")) == ("A", "B/C")
        assert state.is_learned(feedback_id("k1", "A"))
        assert not state.is_learned(feedback_id("k1", "B"))
        assert (foreign.folders(), foreign.is_seen("k1"), foreign.actions("filed")) == ({}, False, [])
        assert not elsewhere.is_learned(feedback_id("k1", "A"))
        assert (elsewhere.log(), elsewhere.label_of("B/C"), elsewhere.credit()) == (None, "B/C", Credit())
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
            assert state.judgements(9) == []


def test_another_store_or_a_deleted_learner_is_trained_from_the_start(tmp_path, client):
    directories(tmp_path / "mail")
    messages = [one for one in find(tmp_path / "mail") if is_choice(one.folder)]
    with MailState(tmp_path / "s.db") as state:
        assert len(train(client, state, messages).mistakes) == 60
        assert follow_log(client, state)
        assert train(client, state, messages).mistakes == []
        client.delete("mail")
        assert not follow_log(client, state)
        assert len(train(client, state, messages).mistakes) == 60
        client.delete("mail")  # and one that others trained under the same name meanwhile
        client.create("mail", {"task": "multiclass"})
        client.feedback_many("mail", [{"features": ["a"], "label": "x"}] * 100)
        assert not follow_log(client, state)
        assert not state.is_learned(feedback_id(messages[0].key, messages[0].folder))


def test_a_renamed_folder_of_any_source_keeps_its_label(tmp_path, client):
    directories(tmp_path / "mail")
    lines = []
    with MailState(tmp_path / "s.db") as state:
        train(client, state, list(find(tmp_path / "mail")))
        (tmp_path / "mail" / "Büro & Co").rename(tmp_path / "mail" / "Office")
        again = train(client, state, list(find(tmp_path / "mail")), report=lines.append)
        assert (again.mistakes, lines) == ([], ["Office: was Büro & Co, and is learned as that"])
        assert client.learner("mail").version == 60
        assert state.folder_of("Büro & Co") == "Office"
        directories_of = {"Other": (201, "Work")}
        for name, (number, topic) in directories_of.items():
            (tmp_path / "mail" / name).mkdir()
            (tmp_path / "mail" / name / "1.eml").write_bytes(raw(number, topic))
        train(client, state, list(find(tmp_path / "mail")), report=lines.append)
        assert len(lines) == 1
        assert "Other" in client.learner("mail").labels


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


def test_folders_whose_names_are_no_text_are_learned_too(tmp_path):
    for number, name in enumerate((b"caf\xe9", b"caf\xe8", "café-2".encode(), b".&2AA-")):
        folder = os.path.join(os.fsencode(tmp_path / "box"), name)
        os.makedirs(folder)
        with open(os.path.join(folder, b"1"), "wb") as file:
            file.write(raw(number, "Work"))
    messages = list(find(tmp_path / "box"))
    assert {one.folder for one in messages} >= {"café", "cafè", "café-2"}
    with (
        Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path}/service.db")) as client,
        MailState(tmp_path / "mail.db") as state,
    ):
        assert len(train(client, state, messages).mistakes) == len(messages)
        assert set(client.learner(state.learner).labels) == {one.folder for one in messages}


def test_a_learner_of_an_earlier_release_is_used_as_it_is(tmp_path):
    (tmp_path / "box").mkdir()
    maildir(tmp_path / "box")
    messages = list(find(tmp_path / "box"))
    with (
        Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path}/service.db")) as client,
        MailState(tmp_path / "mail.db") as state,
    ):
        client.create(state.learner, EARLIER)
        curve = train(client, state, messages[:30])
        assert (len(curve.mistakes), curve.known) == (30, 0)
        assert "label_words" not in client.learner(state.learner).spec
        other = state.learner + "-other"
        create_learner(client, other)
        assert client.learner(other).spec["label_words"] is True
        client.create("ranker", {"task": "subset-ranking"})
        with pytest.raises(Conflict):
            create_learner(client, "ranker")
