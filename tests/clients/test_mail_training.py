"""Training from mailboxes: resumed where it stopped, once for each message, under labels that outlive a folder's name."""

import itertools
import os

import pytest
from sample_mail import TOPICS, directories, maildir, raw

from feedrank.clients import Client
from feedrank.clients.exceptions import Conflict
from feedrank.clients.mail.bookkeeping import MailState, feedback_id
from feedrank.clients.mail.extract import EARLIER
from feedrank.clients.mail.folder_names import is_choice
from feedrank.clients.mail.sources import find
from feedrank.clients.mail.training import create_learner, follow_log, train
from feedrank.embedded import Embedded


def test_a_message_that_is_moved_away_meanwhile_is_passed_over(tmp_path, client):
    directories(tmp_path / "mail")
    messages = list(find(tmp_path / "mail"))
    next(path for path in (tmp_path / "mail").rglob("*") if path.is_file()).unlink()
    with MailState(tmp_path / "state.db") as state:
        assert len(train(client, state, messages).mistakes) == len(messages) - 1


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
        logged = [event for event in client.events("mail").events if event.get("promise") == "account"]
        assert len(logged) >= 20  # the first ones had no label to decide on, or were learned before the stop
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
