"""Whose a folder is: private mail never goes into folders of others, and what others put there is nobody's choice here."""

import pytest
from dovecot_server import taught
from imap_server import move
from imapclient.exceptions import IMAPClientError
from mail_rounds import WORDS, raw, trusted, version

from feedrank.clients.mail.account import connect
from feedrank.clients.mail.imap_source import ImapSource
from feedrank.clients.mail.mailboxes import boxes
from feedrank.clients.mail.namespaces import Namespaces

LAYOUTS = {
    "Dovecot": (b'(("" "/")) NIL (("Public/" "/"))', b"/", {"Work", "Publicity"}, {"Public", "Public/Sales"}),
    "Dovecot's prefix": (
        b'(("INBOX." ".")) (("shared." ".")) (("Public." "."))',
        b".",
        {"INBOX.Work", "INBOX.Public"},
        {"shared", "shared.ann.Work", "Public.Sales", "Work"},
    ),
    "Cyrus": (
        b'(("INBOX." ".")) (("user." ".")) (("" "."))',
        b".",
        {"INBOX.Work"},
        {"user.ann", "user.ann.Work", "sales", "sales.offers"},
    ),
    "Cyrus, alternative": (
        b'(("" "/")) (("Other Users/" "/")) (("Shared Folders/" "/"))',
        b"/",
        {"Work"},
        {"Other Users/ann/Work", "shared folders/sales"},
    ),
    "Courier": (
        b'(("INBOX." ".")) NIL (("#shared." ".")("shared." "."))',
        b".",
        {"INBOX.Work"},
        {"#shared.ann.Work", "shared.sales"},
    ),
    "home directories": (
        b'(("" "/")("#mh/" "/")) (("~" "/")) (("#public/" "/"))',
        b"/",
        {"Work", "#mh/Old"},
        {"~ann/Work", "#public/Sales"},
    ),
    "only others": (b'NIL NIL (("" "/"))', b"/", set(), {"Sales"}),
    "nothing is said": (b"NIL NIL NIL", b"/", {"Work"}, set()),
    "both are said": (b'(("" "/")) NIL (("" "/"))', b"/", set(), {"Work"}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_the_persons_own_folders_are_listed(odd, layout):
    namespace, separator, own, foreign = LAYOUTS[layout]
    listed = [b'() "%s" "%s"' % (separator, name.encode()) for name in ("INBOX", *own, *foreign)]
    _, account = odd({}, listed=listed, namespace=namespace)
    with connect(account) as imap:
        assert {box.name for box in boxes(imap, "INBOX")} == own
        assert not Namespaces.of(imap).is_foreign("INBOX")
        named = {box.name: box.foreign for box in boxes(imap, "INBOX", shared=["*"])}
        assert {name for name in named if named[name]} == foreign
        one = sorted(foreign)[:1]
        assert {box.name for box in boxes(imap, "INBOX", shared=one)} == own | set(one)


@pytest.mark.parametrize("namespace", [b"garbage", b"((5 6)) NIL NIL", b'(("" "/")) NIL'])
def test_where_namespaces_cannot_be_read_no_folder_is_taken_for_the_persons_own(odd, namespace):
    _, account = odd({"INBOX": [], "Work": [1]}, namespace=namespace)
    with connect(account) as imap, pytest.raises(IMAPClientError, match="namespaces"):
        boxes(imap, "INBOX")


def test_private_mail_stays_out_of_public_folders_and_posts_of_others_teach_nothing(mail):
    sales = mail.server.public(f"Sales{mail.user}")
    mail.person.create_folder(sales)
    for number in range(40, 46):
        mail.person.append(sales, raw(number, "Travel"))
    taught(mail)
    assert set(mail.client.learner("mail").labels) == set(WORDS)
    record = trusted(mail.client)
    mail.person.append(sales, raw(46, "Travel"))
    mail.person.append("INBOX", raw(50, "Travel"))
    travel = mail.server.name("Travel")
    assert mail.look(mode="file") == [f"{travel}: filed <m50@example.org>"]
    assert version(mail.client) == record
    with connect(mail.account) as imap:
        assert {one.folder for one in ImapSource(imap, mail.state).find()} == {"Travel"}  # what was filed


def test_a_public_folder_that_is_named_learns_what_the_person_moves_there_and_nothing_else(mail):
    taught(mail)
    sales = mail.server.public(f"Sales{mail.user}")
    mail.person.create_folder(sales)
    mail.person.append(sales, raw(40, "Travel"))
    named = {"shared": [sales]}
    for number in (60, 61):
        mail.person.append("INBOX", raw(number, "Work"))
    mail.look(**named)
    mail.person.append(sales, raw(41, "Travel"))  # a post of another,
    mail.person.append(sales, raw(60, "Work"))  # and another's copy of a message that is still in the inbox
    assert mail.look(**named) == []
    move(mail.person, "INBOX", sales, 61)
    assert mail.look(**named) == [f"{sales}: learned <m61@example.org>"]
    assert mail.look(**named) == []
    assert version(mail.client) == 7
    assert mail.look() == [f"{sales}: gone"]  # named no more
