"""Fixtures of mail over IMAP: an account on a real server (pymap, Dovecot), the person who uses it, and the watcher."""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from dovecot_server import INSTALLED, LAYOUTS, Dovecot
from imap_server import clear
from mail_rounds import FOLDERS, WORDS
from odd_imap_server import OddServer

from feedrank.clients import Client
from feedrank.clients.mail.account import Account, Secret, Trust, connect
from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.extract import SPEC
from feedrank.clients.mail.filing import WatchSettings
from feedrank.clients.mail.watcher import Watcher
from feedrank.embedded import Embedded


@pytest.fixture(autouse=True)
def no_audits(monkeypatch):
    """What would be filed is filed: audits are drawn by chance."""
    monkeypatch.setattr("feedrank.learners.inference.assurance.DRAWN", 0.0)


@pytest.fixture
def account(imap_server, monkeypatch):
    if imap_server.process.poll() is not None:
        imap_server.start()
    monkeypatch.setenv("FEEDRANK_MAIL_PASSWORD", "secret")
    return Account.of(imap_server.url, Secret())


@pytest.fixture
def person(account):
    """The person's own mail program, on an empty account with two folders."""
    with connect(account) as imap:
        clear(imap, FOLDERS)
        imap.noop()
        yield imap


@pytest.fixture
def client(client):
    """A client of a service that has a learner for mail."""
    client.create("mail", SPEC)
    return client


@pytest.fixture
def state(tmp_path, account):
    with MailState(tmp_path / "mail.db", account.name) as made:
        yield made


def looking(account, client, state):
    """What looks once, on a connection of its own, and gives what was reported."""

    def look(**settings):
        lines = []
        with connect(account) as imap:
            Watcher(imap, client, state, WatchSettings(**settings), lines.append).look()
        return lines

    return look


@pytest.fixture
def look(account, client, state):
    return looking(account, client, state)


@pytest.fixture(scope="module", params=LAYOUTS)
def dovecot(request):
    """A Dovecot for each layout of folders."""
    if not INSTALLED:
        pytest.skip(
            "no Dovecot: `apt-get install dovecot-imapd dovecot-lmtpd dovecot-sieve` to test against it"
        )
    # Not below pytest's directory, which is root's alone where the tests are root's.
    with tempfile.TemporaryDirectory(prefix="dovecot-", ignore_cleanup_errors=True) as root:
        running = Dovecot(Path(root), request.param)
        yield running
        running.stop()


@pytest.fixture
def mail(dovecot, tmp_path, monkeypatch, request):
    """A fresh user of Dovecot with two folders, a service, a state, and what looks at them."""
    monkeypatch.setenv("FEEDRANK_MAIL_PASSWORD", "secret")
    user = f"u{abs(hash(request.node.name)) % 10**9}"
    account = Account.of(
        f"imap://{user}@127.0.0.1:{dovecot.port}", Secret(), Trust(dovecot.root / "authority.pem")
    )
    store = f"sqlite:{tmp_path / 'service.db'}"
    service = Embedded(store, tmp_path / "service.db.socket")
    with (
        connect(account) as person,
        Client("http://embedded", transport=service) as client,
        MailState(tmp_path / "mail.db", account.name, service=store) as state,
    ):
        for folder in WORDS:
            person.create_folder(dovecot.name(folder))
        yield SimpleNamespace(
            account=account,
            person=person,
            client=client,
            state=state,
            look=looking(account, client, state),
            server=dovecot,
            user=user,
        )


@pytest.fixture
def odd(monkeypatch):
    """Make servers, and give an account on each."""
    monkeypatch.setenv("FEEDRANK_MAIL_PASSWORD", "secret")
    made = []

    def make(*arguments, **more):
        made.append(OddServer(*arguments, **more))
        return made[-1], Account.of(f"imap://me@127.0.0.1:{made[-1].port}", Secret())

    yield make
    for one in made:
        one.close()
