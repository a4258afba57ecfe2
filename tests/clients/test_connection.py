"""Which service a command line talks to."""

import pytest
import typer

from feedrank.clients.connection import service


def test_one_of_both_must_be_named():
    """What is learned is people's words: it must not go to whatever listens on the usual port."""
    with pytest.raises(typer.BadParameter, match="--server URL or --store"), service(None, None, None):
        pytest.fail("there is a service that nobody asked for")


def test_one_place_at_a_time():
    with pytest.raises(typer.BadParameter, match="not both"), service("http://x", "sqlite:x.db", None):
        pytest.fail("there are two services")


def test_an_address(tmp_path):
    with service("http://127.0.0.1:9", None, "key") as client:
        assert client._http.base_url == "http://127.0.0.1:9"
        assert client._http.headers["authorization"] == "Bearer key"
    with service(None, f"sqlite:{tmp_path / 'x.db'}", None) as client:
        client.ready()
