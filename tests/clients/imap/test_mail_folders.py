"""Folders that are never learned, have odd names, are renamed or deleted."""

import re

from imap_server import move, numbers
from mail_rounds import FOLDERS, raw, taught, trusted, version

from feedrank.clients.mail.filing import keyword
from feedrank.clients.mail.mailboxes import boxes


def test_trash_and_chosen_folders_are_never_learned(client, state, person, look):
    for name in ("Trash", "Junk", "Sent", "Drafts", "Lists/python", "Sent Items"):
        person.create_folder(name)
    taught(client, state, person, look)
    for number, name in enumerate(("Trash", "Junk", "Sent", "Drafts", "Lists/python", "Sent Items"), 20):
        person.append("INBOX", raw(number, "Work"))
        look(exclude=["Lists/*"])
        move(person, "INBOX", name, number)
    look(exclude=["Lists/*"])
    assert version(client) == 6
    assert [box.name for box in boxes(person, "INBOX", ["Lists/*"])] == list(FOLDERS)


def test_odd_folder_names(client, state, person, look):
    names = ["Büro & Co", "日本/旅行 2024", "a b/c d", "x.y", "&-odd", 'quo"ted', "Work/Sub"]
    taught(client, state, person, look)
    for name in names:
        person.create_folder(name)
    look()
    for number, _ in enumerate(names, 10):
        person.append("INBOX", raw(number, "Travel").replace(b"travel@", b"someone%d@" % number))
    look()
    for number, name in enumerate(names, 10):
        move(person, "INBOX", name, number)
    assert sorted(look()) == sorted(
        f"{name}: learned <m{number}@example.org>" for number, name in enumerate(names, 10)
    )
    assert set(client.learner("mail").labels) == {*FOLDERS, *names}
    lessons = [
        (raw(900, "Travel").replace(b"travel@", b"someone%d@" % number), name)
        for number, name in enumerate(names, 10)
    ]
    trusted(client, lessons, 300)
    for number, _ in enumerate(names, 10):
        again = raw(number, "Travel").replace(b"travel@", b"someone%d@" % number)
        person.append("INBOX", again.replace(b"<m%d@" % number, b"<m%d@" % (number + 50)))
    assert sorted(look(mode="file")) == sorted(
        f"{name}: filed <m{number}@example.org>" for number, name in enumerate(names, 60)
    )
    for number, name in enumerate(names, 10):
        assert numbers(person, name) == [number, number + 50]


def test_a_renamed_folder_keeps_its_label(client, state, person, look):
    taught(client, state, person, look)
    trusted(client)
    person.select_folder("INBOX")
    person.rename_folder("Travel", "Reisen/2024")
    assert look() == ["Travel: is now Reisen/2024"]
    person.append("INBOX", raw(10, "Travel"))
    assert look(mode="file") == ["Reisen/2024: filed <m10@example.org>"]
    person.append("INBOX", raw(11, "Travel"))
    look()
    move(person, "INBOX", "Reisen/2024", 11)
    assert look() == ["Reisen/2024: learned <m11@example.org>"]
    assert client.learner("mail").labels == list(FOLDERS)
    person.create_folder("Travel")  # a new folder of the old name is another folder
    person.append("INBOX", raw(12, "Travel"))
    look()
    move(person, "INBOX", "Travel", 12)
    look()
    assert len(client.learner("mail").labels) == 3


def test_a_deleted_folder_is_not_suggested_any_more(client, state, person, look):
    taught(client, state, person, look)
    trusted(client)
    person.select_folder("INBOX")
    person.delete_folder("Travel")
    person.append("INBOX", raw(10, "Travel"))
    assert look(mode="file") == ["Travel: gone", "Work: suggested for <m10@example.org>"]
    assert numbers(person, "INBOX") == [10]


def test_keywords_are_atoms():
    assert keyword("Work.2024") == "feedrank-Work.2024"
    folders = ["Büro & Co/Ä (1)", "Bäro & Co/Ö (1)", "日本", "中国", "a/b", "a_b"]
    made = [keyword(folder) for folder in folders]
    assert len(set(made)) == len(folders)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", one) for one in made)
