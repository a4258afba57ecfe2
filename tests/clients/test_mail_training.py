"""Mailboxes of every kind, training from them, the state file and the threshold."""

import itertools
import mailbox
import math
import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedrank.clients import Client
from feedrank.clients.mail.certainty import Certainty, Round, threshold
from feedrank.clients.mail.choices import is_choice
from feedrank.clients.mail.sources import SourceError, find, in_order
from feedrank.clients.mail.state import Folder, State, feedback_id
from feedrank.clients.mail.training import train
from feedrank.embedded import Embedded

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


@pytest.fixture(params=[maildir, nested_maildirs, directories, mboxes])
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
    found = in_order(one for one in find(source) if is_choice(one.folder))
    expected = sorted(MESSAGES, key=lambda one: (one[0] % 28, one[0] % 24, f"{one[0]}@example.org"))
    assert [(one.key, one.folder) for one in found] == [
        (f"{number}@example.org", folder) for number, folder in expected
    ]
    bodies = {one.key: one.load() for one in found}
    assert all(
        TOPICS[folder].split()[0].encode() in bodies[f"{number}@example.org"] for number, folder in MESSAGES
    )


def test_one_mbox_is_one_folder(tmp_path):
    box = mailbox.mbox(tmp_path / "Archive.mbox")
    for number, folder in MESSAGES:
        box.add(raw(number, folder))
    box.close()
    found = list(find(tmp_path / "Archive.mbox"))
    assert len(found) == len(MESSAGES)
    assert {one.folder for one in found} == {"Archive"}
    (tmp_path / "empty").write_bytes(b"")
    assert list(find(tmp_path / "empty")) == []
    with pytest.raises(SourceError):
        list(find(tmp_path / "nowhere"))


def test_training_is_resumed_where_it_stopped(source, client, tmp_path, monkeypatch):
    found = [one for one in find(source) if is_choice(one.folder)]
    monkeypatch.setattr("feedrank.clients.mail.training.BATCH_FEATURES", 200)
    monkeypatch.setattr("feedrank.clients.mail.training.PREDICTED", 25)
    done = []

    def stop(count):
        done.append(count)
        if sum(done) >= 20:
            raise KeyboardInterrupt

    with State(tmp_path / "s.db") as state, pytest.raises(KeyboardInterrupt):
        train(client, state, found, stop)
    assert 20 <= client.learner("mail").version < 60
    with State(tmp_path / "s.db") as state:
        second = train(client, state, found)
        assert sum(done) + len(second.mistakes) == 60
        assert len(state.rounds(100)) == 25
        assert train(client, state, found).mistakes == []
    with State(":memory:") as fresh:  # the state file is lost: the service knows them all the same
        third = train(client, fresh, found)
        assert (third.mistakes, third.known) == ([], 60)
    info = client.learner("mail")
    assert (info.version, info.progress.rounds) == (60, 60)
    assert set(info.labels) == set(TOPICS)
    # An interruption changes nothing in what is learned.
    with (
        Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path / 'other.db'}")) as other,
        State(":memory:") as state,
    ):
        curve = train(other, state, found)
        assert curve.points()[-1][0] == 60
        assert other.learner("mail").progress == info.progress
        assert other.predict("mail", {"features": ["subject:flight"]}, remember=False) == client.predict(
            "mail", {"features": ["subject:flight"]}, remember=False
        )


def test_a_curve_has_few_points_and_true_shares(client, tmp_path):
    directories(tmp_path)
    assert (tmp_path / "service.db").exists()  # what is no message is not read as one
    with State(":memory:") as state:
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
        ("Junk E-mail", False), ("Entwürfe", False), ("Trash/old", False), ("Sentiment", True), ("Lists/python", False),
    ],
)  # fmt: skip
def test_folders_that_are_a_persons_choice(folder, chosen):
    assert is_choice(folder, ["Lists/*"]) is chosen


ROUNDS = st.lists(
    st.builds(Round, st.sampled_from("ab"), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.booleans()), max_size=60
)


@given(ROUNDS, st.floats(0.5, 0.99))
def test_the_threshold_is_the_least_margin_with_the_precision(rounds, precision):
    def holds(margin):
        kept = [one for one in rounds if one.margin >= margin]
        return kept and (sum(one.right for one in kept) + 1) / (len(kept) + 3) >= precision

    fit = [one.margin for one in rounds if holds(one.margin)]
    assert threshold(rounds, precision) == (min(fit) if fit else math.inf)


@given(ROUNDS)
def test_a_folder_may_be_surer_than_all(rounds):
    certainty = Certainty(rounds, 0.6)
    for label in "abc":
        own = threshold([one for one in rounds if one.label == label], 0.6)
        assert certainty.least(label) == min(own, threshold(rounds, 0.6))


def test_the_threshold_keeps_its_promise_on_a_stream():
    luck = random.Random(3)
    rounds, filed = [], []
    for _ in range(3000):
        margin = luck.random()
        right = luck.random() < 0.5 + margin / 2  # 95 % are right above 0.9 only
        if len(rounds) % 20 == 0:
            certainty = Certainty(rounds, 0.9)
        if margin >= certainty.least("a"):
            filed.append(right)
        rounds.append(Round("a", margin, right))
    assert len(filed) > 500
    assert sum(filed) / len(filed) > 0.88


def test_the_state_is_kept_by_account_and_learner(tmp_path):
    path = tmp_path / "deep" / "s.db"
    with State(path, "one") as state:
        state.put_folder(Folder("A", 1, 5, 2, "A"))
        for uid, key in ((1, "k1"), (2, "k2")):
            state.place("A", uid, key)
        state.see("k1", "p1", "A", 0.5)
        state.act("k1", "filed", "INBOX", "A")
        state.mark_learned([feedback_id("k1", "A")])
        state.rename_folder("A", "B/C")
    with State(path, "one") as state, State(path, "two", "other") as foreign, state.copy() as copy:
        assert state.folders() == {"B/C": Folder("B/C", 1, 5, 2, "A")}
        assert state.uids("B/C") == {1: "k1", 2: "k2"}
        assert state.prediction("k1") == ("p1", "A", 0.5)
        assert [action.folder for action in state.actions("filed", "k1")] == ["B/C"]
        assert state.is_learned(feedback_id("k1", "A"))
        assert not state.is_learned(feedback_id("k1", "B"))
        assert (foreign.folders(), foreign.is_seen("k1"), foreign.actions("filed")) == ({}, False, [])
        assert not foreign.is_learned(feedback_id("k1", "A"))
        copy.forget_folder("B/C")
        copy.see("k1")
        assert copy.prediction("k1") is None
        assert state.folders()
        assert state.prediction("k1")
