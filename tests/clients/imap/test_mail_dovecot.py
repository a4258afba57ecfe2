"""Mail against a real Dovecot: namespaces, renames, copies, rules, and training that is killed."""

import os
import subprocess
import sys

import pytest
from dovecot_server import one_layout, taught
from imap_server import move
from mail_rounds import WORDS, raw, trusted, version

from feedrank.clients import Client
from feedrank.clients.mail.account import connect
from feedrank.clients.mail.folder_names import is_choice
from feedrank.clients.mail.imap_source import ImapSource
from feedrank.clients.mail.mailboxes import boxes
from feedrank.clients.mail.rules import Rule, Rules
from feedrank.clients.mail.sources import find
from feedrank.clients.mail.training import train
from feedrank.clients.mail.undo import undo
from feedrank.embedded import Embedded


def test_folders_have_one_name_from_the_server_and_from_its_disk(mail):
    mail.person.create_folder(mail.server.name("Work/Größe"))
    assert len(taught(mail).mistakes) == 6
    mail.person.append(mail.server.name("Work/Größe"), raw(50, "Work"))
    listed = {box.label for box in boxes(mail.person, "INBOX")}
    assert listed == {"Work", "Travel", "Work/Größe"}
    assert {box.label for box in boxes(mail.person, "INBOX", archive=True)} == listed | {"Old"}
    disk = mail.server.root / "mail" / mail.user
    messages = [one for one in find(disk) if is_choice(one.folder)]
    assert {one.folder for one in messages} == listed
    assert (
        len(train(mail.client, mail.state, messages).mistakes) == 1
    )  # the new one: the others are known by their label
    with connect(mail.account) as imap:
        assert ImapSource(imap, mail.state).find() == []


def test_moves_are_learned_once_and_renames_followed_by_all_commands(mail):
    taught(mail)
    work, travel, trips = map(mail.server.name, ("Work", "Travel", "Trips"))
    mail.person.append("INBOX", raw(10, "Work"))
    assert mail.look() == [f"{work}: suggested for <m10@example.org>"]
    move(mail.person, "INBOX", travel, 10)
    assert mail.look() == [f"{travel}: learned <m10@example.org>"]
    assert mail.look() == []
    mail.person.unselect_folder()
    mail.person.rename_folder(travel, trips)
    assert mail.look() == [f"{travel}: is now {trips}"]
    mail.person.append("INBOX", raw(11, "Travel"))
    assert mail.look() == [f"{trips}: suggested for <m11@example.org>"]
    before = version(mail.client)
    disk = [one for one in find(mail.server.root / "mail" / mail.user) if is_choice(one.folder)]
    assert {one.folder for one in disk} == {"Work", "Trips"}
    assert train(mail.client, mail.state, disk).mistakes == []
    with connect(mail.account) as imap:
        assert train(mail.client, mail.state, ImapSource(imap, mail.state).find()).mistakes == []
    assert version(mail.client) == before
    assert mail.state.folder_of("Travel") == "Trips"


@one_layout
def test_a_copy_says_where_its_twin_is_and_a_moved_message_has_none(mail):
    taught(mail)
    mail.person.append("INBOX", raw(2, "Work").replace(b"<m2@", b"<twin@"))
    mail.look()
    mail.person.select_folder("INBOX")
    mail.person.move(mail.person.search(), mail.server.name("Travel"))
    mail.look()
    move(mail.person, mail.server.name("Work"), mail.server.name("Travel"), 4)
    mail.look()
    events = [event["instance"]["features"] for event in mail.client.events("mail", after=6).events]
    copies = [[name for name in features if name.startswith("copy:")] for features in events]
    assert copies == [["copy:Work"], []]


def test_sure_mail_is_filed_put_back_and_undone(mail):
    taught(mail)
    record = trusted(mail.client)
    travel = mail.server.name("Travel")
    for number in (20, 21):
        mail.person.append("INBOX", raw(number, "Travel"))
    assert sorted(mail.look(mode="file")) == [
        f"{travel}: filed <m{number}@example.org>" for number in (20, 21)
    ]
    assert mail.look(mode="file") == []
    assert version(mail.client) == record
    move(mail.person, travel, "INBOX", 20)
    assert mail.look(mode="file") == [
        f"{travel}: <m20@example.org> was put back",
        "INBOX: learned <m20@example.org>",
    ]
    assert mail.client.learner("mail").labels == [*WORDS, "INBOX"]
    with connect(mail.account) as imap:
        assert undo(imap, mail.state, 5) == 1
    assert mail.look(mode="file") == ["INBOX: learned <m21@example.org>"]


@one_layout
def test_a_move_by_copying_and_marking_is_a_move(mail):
    """Programs without MOVE copy a message and mark the first as deleted; some never expunge it."""
    work, travel = mail.server.name("Work"), mail.server.name("Travel")

    def move_slowly(origin, folder, number):
        mail.person.select_folder(origin)
        uids = mail.person.search(["UNDELETED", "HEADER", "Message-ID", f"m{number}@example.org"])
        mail.person.copy(uids, folder)
        mail.person.delete_messages(uids)

    mail.person.append(work, raw(90, "Travel"))
    move_slowly(work, travel, 90)
    taught(mail)
    truths = [event["truth"]["label"] for event in mail.client.events("mail").events]
    assert truths.count("Travel") == 4  # the one marked in Work is not there
    assert truths.count("Work") == 3
    mail.person.append("INBOX", raw(30, "Work"))
    mail.look()
    mail.person.select_folder("INBOX")
    mail.person.add_flags(mail.person.search(), [rb"\Seen"])
    move_slowly("INBOX", mail.server.name("Trash"), 30)
    assert mail.look(keep=0.0) == []  # deleted, not kept
    trusted(mail.client)
    mail.person.append("INBOX", raw(31, "Travel"))
    assert mail.look(mode="file") == [f"{travel}: filed <m31@example.org>"]
    mail.look()
    move_slowly(travel, "INBOX", 31)
    assert f"{travel}: <m31@example.org> was put back" in mail.look(mode="file")


@one_layout
def test_rules_name_folders_as_the_commands_do_also_when_they_were_renamed(mail):
    taught(mail)
    work, travel = mail.server.name("Work"), mail.server.name("Travel")
    rules = Rules(
        [
            Rule.of({"from": "boss@*", "folder": "Work"}, always=True),
            Rule.of({"from": "other@*", "folder": "Nowhere"}, always=True),
        ],
        [Rule.of({"folder": "Trav*"}, always=False)],
    )
    trusted(mail.client)
    mail.person.append("INBOX", raw(20, "Travel"))
    mail.person.append("INBOX", raw(21, "Travel").replace(b"travel@", b"boss@"))
    lines = mail.look(mode="file", rules=rules)
    assert sorted(lines) == [
        f"{work}: filed <m21@example.org>",
        f"{work}: suggested for <m20@example.org>",
        "always: from other@* → Nowhere: there is no such folder",
    ]
    mail.person.rename_folder(work, mail.server.name("Office"))
    mail.person.rename_folder(travel, mail.server.name("Trips"))
    later = Rules(
        [Rule.of({"from": "boss@*", "folder": "Office"}, always=True)],
        [Rule.of({"folder": "Trips"}, always=False)],
    )
    mail.person.append("INBOX", raw(22, "Travel").replace(b"travel@", b"boss@"))
    mail.person.append("INBOX", raw(23, "Travel"))
    office = mail.server.name("Office")
    assert mail.look(mode="file", rules=later)[-2:] == [
        f"{office}: filed <m22@example.org>",
        f"{office}: suggested for <m23@example.org>",
    ]


@one_layout
@pytest.mark.parametrize("flag", [rb"\Answered", rb"\Seen"])
def test_what_is_answered_from_the_inbox_or_left_there_belongs_there(mail, flag):
    taught(mail)
    mail.person.append("INBOX", raw(30, "Work"))
    mail.look()
    assert mail.look(keep=0.0) == []  # neither answered nor read
    mail.person.select_folder("INBOX")
    mail.person.add_flags(mail.person.search(), [flag])
    assert mail.look(keep=1e6) == (["INBOX: learned <m30@example.org>"] if flag == rb"\Answered" else [])
    if flag == rb"\Seen":
        assert mail.look(keep=0.0) == ["INBOX: learned <m30@example.org>"]
    assert mail.look(keep=0.0) == []
    assert mail.client.events("mail", after=6).events[0]["truth"] == {"label": "INBOX"}
    move(mail.person, "INBOX", mail.server.name("Travel"), 30)  # a later change of mind is learned too
    assert mail.look() == [f"{mail.server.name('Travel')}: learned <m30@example.org>"]


@one_layout
def test_training_that_is_killed_goes_on_and_leaves_nothing_behind(mail, tmp_path):
    for number in range(60):
        topic = list(WORDS)[number % 2]
        mail.person.append(mail.server.name(topic), raw(number, topic))
    place = tmp_path / "run"
    place.mkdir()
    (place / "tmp").mkdir()
    code = (
        "import os, feedrank.clients.mail.training as t; t.BATCH_FEATURES = 300; mark = t._Batch.mark\n"
        "def cut(*a):\n    mark(*a); cut.n = getattr(cut, 'n', 0) + 1\n    cut.n < 3 or os.kill(os.getpid(), 9)\n"
        "t._Batch.mark = cut\nfrom feedrank.clients.mail_cli import main; main()"
    )
    words = ["train", f"imap://{mail.user}@127.0.0.1:{mail.server.port}", "--state", str(place / "mail.db")]
    words += ["--store", f"sqlite:{place / 's.db'}", "--ca-file", str(mail.server.root / "authority.pem")]
    environment = {**os.environ, "TMPDIR": str(place / "tmp")}
    killed = subprocess.run(
        [sys.executable, "-c", code, *words], env=environment, capture_output=True, check=False
    )
    assert killed.returncode == -9, killed.stderr
    assert list((place / "tmp").iterdir()) == []
    again = subprocess.run(
        [sys.executable, "-m", "feedrank.cli", "mail", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    learned = int(again.stdout.split()[0])
    assert 0 < learned < 60
    with Client("http://embedded", transport=Embedded(f"sqlite:{place / 's.db'}")) as client:
        assert client.learner("mail").version == 60
