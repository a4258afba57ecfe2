"""Which service a command line talks to."""

import importlib

import pytest
import typer

from feedrank.clients.serving import service


def test_a_missing_extra_is_told_with_its_remedy(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError("No module named 'fastapi'", name="fastapi")

    monkeypatch.setattr(importlib, "import_module", missing)
    with (
        pytest.raises(typer.BadParameter, match=r"needs fastapi: pip install 'feedrank\[service\]'"),
        service(None, "sqlite:x.db", None),
    ):
        pytest.fail("there is no service")


def test_one_place_at_a_time():
    with pytest.raises(typer.BadParameter, match="not both"), service("http://x", "sqlite:x.db", None):
        pytest.fail("there are two services")


def test_an_address(tmp_path):
    with service("http://127.0.0.1:9", None, "key") as client:
        assert client._http.base_url == "http://127.0.0.1:9"
        assert client._http.headers["authorization"] == "Bearer key"
    with service(None, f"sqlite:{tmp_path / 'x.db'}", None) as client:
        client.ready()
