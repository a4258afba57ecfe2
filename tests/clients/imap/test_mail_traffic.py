"""What a look costs a server, counted in bytes on Dovecot, and that new mail is seen without IDLE.

The same looks where the server has none of these extensions are those of every other test of this folder (pymap).
"""

import os

from dovecot_server import one_layout, taught
from imapclient import IMAPClient
from mail_rounds import raw, version

from feedrank.clients.mail.account import connect
from feedrank.clients.mail.filing import WatchSettings
from feedrank.clients.mail.mailboxes import boxes, headers, messages_of, status
from feedrank.clients.mail.message import key, read_headers
from feedrank.clients.mail.watcher import Watcher

FOLDERS, MESSAGES = 500, 1_000


def counted(imap):
    """How many bytes the server has said since, when it is called."""
    protocol, sizes = imap._imap, []

    def counting(real):
        def reading(*arguments):
            told = real(*arguments)
            sizes.append(len(told))
            return told

        return reading

    for name in ("read", "readline"):
        setattr(protocol, name, counting(getattr(protocol, name)))

    def since():
        total = sum(sizes)
        sizes.clear()
        return total

    return since


@one_layout
def test_a_look_at_many_folders_and_messages_is_cheap_and_sees_new_mail_without_idle(mail):
    place = mail.server.root / "mail" / mail.user / "cur"
    for number in range(1000, 1000 + MESSAGES):
        path = place / f"{number}.M{number}.host:2,"
        path.write_bytes(raw(number, "Work"))
        if mail.server.as_user:
            os.chown(path, mail.server.as_user["user"], mail.server.as_user["group"])
    for number in range(FOLDERS):
        mail.person.create_folder(mail.server.name(f"Folder {number}"))
    taught(mail)
    lines = []
    with connect(mail.account) as imap:
        watcher = Watcher(imap, mail.client, mail.state, WatchSettings(), lines.append)
        watcher.look()
        assert len(mail.state.uids("INBOX")) == MESSAGES
        since = counted(imap)
        watcher.look()
        quiet = since()
        assert 0 < quiet < 60_000
        mail.person.append("INBOX", raw(5, "Work"))
        watcher.look()  # the inbox is selected here, and nothing but a NOOP tells of what is new
        assert since() < quiet + 20_000
        assert len(mail.state.uids("INBOX")) == MESSAGES + 1
        one = mail.server.name("Folder 7")
        imap.select_folder("INBOX", readonly=True)
        since()
        assert len(messages_of(imap)) == MESSAGES + 1
        assert since() < 500
        mail.person.append(one, raw(6, "Work"))
        watcher.look()
        assert f"{one}: learned <m6@example.org>" in lines
    assert version(mail.client) == 7


@one_layout
def test_what_is_told_together_is_what_is_told_one_by_one(mail, monkeypatch):
    taught(mail)
    odd = mail.server.name('a "b" & ö')
    mail.person.create_folder(odd)
    mail.person.append(odd, raw(9, "Work"))
    mail.person.append("INBOX", raw(10, "Work"), [rb"\Seen"])
    mail.person.append("INBOX", raw(11, "Work"), [rb"\Deleted"])
    with connect(mail.account) as imap:
        told = {}
        listed = boxes(imap, "INBOX", statuses=told)
        assert odd in told
        assert all(told[name] == status(imap, name) for name in [*(box.name for box in listed), "INBOX"])
        imap.select_folder("INBOX", readonly=True)
        ranges = [messages_of(imap, *criteria) for criteria in ((), ("SEEN",), ("ANSWERED",))]
        real = IMAPClient.has_capability

        def plain(self, name):
            return name not in ("ESEARCH", "LIST-STATUS") and real(self, name)

        monkeypatch.setattr(IMAPClient, "has_capability", plain)
        assert [messages_of(imap, *criteria) for criteria in ((), ("SEEN",), ("ANSWERED",))] == ranges
        assert [len(uids) for uids in ranges] == [1, 1, 0]
        none = {}
        assert boxes(imap, "INBOX", statuses=none) == listed
        assert none == {}


@one_layout
def test_a_message_is_known_by_few_headers_or_by_all(mail):
    long = b"Message-ID: <" + b"x" * 300 + b"@example.org>\r\n"
    letters = [
        raw(1, "Work"),
        raw(2, "Work", message_id=False),
        long + raw(3, "Work", message_id=False),
        b"\r\nhi\r\n",
    ]
    for letter in letters:
        mail.person.append("INBOX", letter)
    with connect(mail.account) as imap:
        imap.select_folder("INBOX", readonly=True)
        found = dict(headers(imap, messages_of(imap)))
    assert [key(fields) for fields in found.values()] == [key(read_headers(letter)) for letter in letters]
    assert len(found[min(found)]) == 2
