"""Fixtures of the clients' tests: the service embedded, and a real IMAP server. No mocks."""

import pytest
from imap_server import ImapServer

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
