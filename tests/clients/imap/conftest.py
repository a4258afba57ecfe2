"""Fixtures of mail over IMAP: an account on a real server (pymap), the person who uses it, and the watcher."""

import pytest
from imap_server import clear
from mail_rounds import FOLDERS

from feedrank.clients.mail.account import Account, Secret, connect
from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.extract import SPEC
from feedrank.clients.mail.filing import WatchSettings
from feedrank.clients.mail.watcher import Watcher


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


@pytest.fixture
def look(account, client, state):
    """Look once on a connection of its own, and give what was reported."""

    def once(**settings):
        lines = []
        with connect(account) as imap:
            Watcher(imap, client, state, WatchSettings(**settings), lines.append).look()
        return lines

    return once
