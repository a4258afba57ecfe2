"""Mailboxes of every kind are read alike; what cannot be read, or was deleted, is left out."""

import mailbox
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from sample_mail import MESSAGES, TOPICS, directories, nested_maildirs, raw

from feedrank.clients.mail.folder_names import is_choice
from feedrank.clients.mail.sources import SourceError, find, in_order


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
