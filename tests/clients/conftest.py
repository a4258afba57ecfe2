"""Fixtures of the clients' tests: the service embedded, a real IMAP server, and mailboxes of every kind. No mocks."""

import pytest
from imap_server import ImapServer
from sample_mail import directories, maildir, mboxes, nested_maildirs, prefixed_maildir, thunderbird

from feedrank.clients import Client
from feedrank.embedded import Embedded


@pytest.fixture
def client(tmp_path):
    """A client of a service in the same process, on an empty store."""
    with Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path / 'service.db'}")) as made:
        yield made


@pytest.fixture(scope="module")
def imap_server():
    running = ImapServer()
    yield running
    running.stop()


@pytest.fixture(params=[maildir, prefixed_maildir, nested_maildirs, directories, mboxes, thunderbird])
def source(request, tmp_path):
    root = tmp_path / "mail"
    root.mkdir()
    request.param(root)
    return root
