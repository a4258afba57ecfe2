"""Accounts: their addresses and passwords, and who is not let in."""

import sys

import pytest

from feedrank.clients.mail.account import Account, AccountError, Secret, SecretError
from feedrank.clients.mail.filing import WatchSettings
from feedrank.clients.mail.loop import watch


def test_a_wrong_password_ends_it(account, client, state, monkeypatch):
    monkeypatch.setenv("FEEDRANK_MAIL_PASSWORD", "wrong")
    with pytest.raises(SecretError, match="does not accept me"):
        watch(account, client, state, WatchSettings(), print)


def test_secrets_and_addresses(tmp_path, monkeypatch):
    monkeypatch.setenv("FEEDRANK_MAIL_PASSWORD", "env")
    path = tmp_path / "password"
    path.write_text("filed\nmore\n")
    assert Secret().read() == "env"
    assert Secret(file=path).read() == "filed"
    assert Secret(command=f"{sys.executable} -c 'print(7)'").read() == "7"
    with pytest.raises(AccountError, match="failed"):
        Secret(command=f"{sys.executable} -c 'raise SystemExit(3)'").read()
    monkeypatch.delenv("FEEDRANK_MAIL_PASSWORD")
    with pytest.raises(AccountError, match="no password"):
        Secret().read()
    one = Account.of("imaps://a.b%40example.org@mail.example.org", Secret())
    assert (one.user, one.host, one.port, one.tls) == ("a.b@example.org", "mail.example.org", 993, True)
    for url in ("mail.example.org", "imaps://mail.example.org", "http://a@b", "imaps://a:secret@b"):
        with pytest.raises(AccountError):
            Account.of(url, Secret())
