"""The same sixty messages in mailboxes of every kind."""

import itertools
import mailbox
from datetime import UTC, datetime

TOPICS = {"Work": "budget meeting", "Work/Travel": "flight hotel", "Büro & Co": "Stempel Papier"}


def raw(number, folder):
    return (
        f"Message-ID: <{number}@example.org>\nFrom: a{number % 3}@example.org\nSubject: {TOPICS[folder]}\n"
        f"Date: {datetime(2024, 1, 1 + number % 28, number % 24, tzinfo=UTC):%a, %d %b %Y %H:%M:%S} +0000\n\n"
        f"{TOPICS[folder]} {number}\nFrom me to you\n"
    ).encode()


MESSAGES = [(number, folder) for number, folder in zip(range(60), itertools.cycle(TOPICS), strict=False)]


def filled_maildir(root, prefix):
    root.rmdir()
    box = mailbox.Maildir(root)
    folders = {"Work": "Work", "Work/Travel": "Work.Travel", "Büro & Co": "B&APw-ro &- Co"}
    made = {name: box.add_folder(prefix + on_disk) for name, on_disk in folders.items()}
    for number, folder in MESSAGES:
        made[folder].add(raw(number, folder))
    return box


def maildir(root):
    filled_maildir(root, "").add(raw(99, "Work"))


def prefixed_maildir(root):
    """As of a server whose folders are all below the inbox."""
    filled_maildir(root, "INBOX.")


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


def add_to_mbox(path, sender, message):
    with path.open("ab") as file:
        quoted = message.replace(b"\nFrom me", b"\n>From me")
        file.write(b"From %s Mon Jan  1 00:00:00 2024\n" % sender + quoted + b"\n")


def thunderbird(root):
    """`Work` is an mbox, and what is below it is in `Work.sbd`."""
    for number, folder in MESSAGES:
        *parents, name = folder.split("/")
        place = root.joinpath(*(f"{parent}.sbd" for parent in parents))
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{name}.msf").write_text("an index")
        add_to_mbox(place / name, b"-", raw(number, folder))


def mboxes(root):
    for number, folder in MESSAGES:
        path = root / f"{folder}.mbox"
        path.parent.mkdir(parents=True, exist_ok=True)
        add_to_mbox(path, b"someone", raw(number, folder))
