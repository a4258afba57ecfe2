"""Messages about two topics, folders that were learned from them, and a record that makes every prediction sure."""

from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.extract import features
from feedrank.clients.mail.filing import asked
from feedrank.clients.mail.imap_source import ImapSource
from feedrank.clients.mail.training import train

WORDS = {"Work": "budget meeting report deadline", "Travel": "flight hotel boarding passport"}
FOLDERS = tuple(WORDS)


def raw(number, topic, message_id=True):
    head = f"Message-ID: <m{number}@example.org>\r\n" if message_id else f"X-Number: {number}\r\n"
    return (
        f"{head}From: {topic.lower()}@example.org\r\nTo: me@example.org\r\nSubject: {WORDS[topic]} {number}\r\n"
        f"Date: Mon, 05 Feb 2024 10:{number % 60:02}:00 +0000\r\n\r\n{WORDS[topic]}\r\n"
    ).encode()


def taught(client, state, person, look, count=6):
    """Folders with mail, learned by `train`, and a watcher that has seen them."""
    for number in range(count):
        topic = FOLDERS[number % 2]
        person.append(topic, raw(number, topic))
    return trained(client, state, person, look)


def trained(client, state, person, look):
    curve = train(client, state, ImapSource(person, state).find())
    look()
    return curve


LESSONS = tuple((raw(900, topic), topic) for topic in FOLDERS)


def trusted(client, lessons=LESSONS, rounds=120):
    """A record of right decisions, after which such mail is filed; the learner's version then."""
    for number in range(rounds):
        told, label = lessons[number % len(lessons)]
        told = told.replace(b"<m900@", b"<record%d@" % number)
        prediction = client.predict("mail", asked(features(told), 0.95))
        event = {"prediction_id": prediction.prediction_id, "label": label}
        last = client.feedback("mail", event).version
    return last


def version(client):
    return client.learner("mail").version


def has_seen_inbox(path, account):
    """Whether whoever watches with this state file has looked at the inbox."""
    if not path.exists():
        return False
    with MailState(path, account.name) as own:
        return "INBOX" in own.folders()
