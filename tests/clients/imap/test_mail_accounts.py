"""Accounts: their addresses, passwords and certificates, and what is refused."""

import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from dovecot_server import one_layout, taught
from mail_rounds import raw
from waiting import until

from feedrank.clients.mail.account import Account, AccountError, Secret, SecretError, Trust, connect
from feedrank.clients.mail.bookkeeping import MailState
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


@one_layout
def test_certificates_are_checked_and_can_be_pinned(mail):
    import hashlib
    import ssl

    url = f"imaps://{mail.user}@127.0.0.1:{mail.server.tls}"
    pem = ssl.get_server_certificate(("127.0.0.1", mail.server.tls))
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()
    pinned = ":".join(digest[at : at + 2] for at in range(0, 64, 2)).upper()
    for trust in (
        Trust(mail.server.root / "authority.pem"),
        Trust(fingerprint=pinned),
        Trust(fingerprint=f"sha256:{digest}"),
    ):
        with connect(Account.of(url, Secret(), trust)) as imap:
            assert imap.folder_exists("INBOX")
    lines = []
    for trust, reason in ((Trust(), "is not trusted"), (Trust(fingerprint="00" * 32), "another fingerprint")):
        with pytest.raises(
            AccountError, match=reason
        ):  # at once, also in `watch`, which tries again otherwise
            watch(Account.of(url, Secret(), trust), mail.client, mail.state, WatchSettings(), lines.append)
    assert lines == []


@one_layout
def test_a_failing_password_command_is_fatal_at_first_and_tried_again_later(mail, tmp_path):
    flag = tmp_path / "fail"
    command = f"sh -c 'test ! -e {flag} && echo secret || {{ echo locked >&2; exit 1; }}'"
    trust = mail.account.trust
    account = Account.of(f"imap://{mail.user}@127.0.0.1:{mail.server.port}", Secret(command), trust)
    taught(mail)
    flag.touch()
    with pytest.raises(SecretError, match="locked"):
        watch(account, mail.client, mail.state, WatchSettings(), print)
    flag.unlink()
    lines, stop = [], threading.Event()

    def report(line):
        lines.append(line)
        if "locked" in line:
            flag.unlink()

    def run():
        with MailState(tmp_path / "mail.db", account.name, service=mail.state.service) as own:
            watch(account, mail.client, own, WatchSettings(), report, poll=1.0, stop=stop)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        mail.person.append("INBOX", raw(40, "Work"))
        until(lambda: any("m40" in line for line in lines), lines)
        flag.touch()
        pids = subprocess.run(["doveadm", "-c", str(mail.server.root / "dovecot.conf"), "kick", mail.user],
                              capture_output=True, text=True, check=False, **mail.server.as_user)  # fmt: skip
        assert pids.returncode == 0, pids.stderr
        until(lambda: any("locked" in line and "again in" in line for line in lines), lines)
        with connect(mail.account) as imap:
            imap.append("INBOX", raw(41, "Work"))
        until(lambda: any("m41" in line for line in lines), lines)
    finally:
        stop.set()
        thread.join(600)


def test_a_refused_login_is_one_line(odd, client, tmp_path):
    _, account = odd({"INBOX": []}, login=b"NO [AUTHENTICATIONFAILED]")
    with MailState(":memory:", account.name) as state, pytest.raises(SecretError, match="does not accept me"):
        watch(account, client, state, WatchSettings(), print)
    words = ["mail", "undo", f"imap://me@127.0.0.1:{account.port}", "--state", str(tmp_path / "m.db")]
    done = subprocess.run(
        [sys.executable, "-m", "feedrank.cli", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "does not accept me with this password" in done.stderr


def test_who_names_a_certificate_gets_tls_or_nothing(odd):
    _, account = odd({"INBOX": []})
    pinned = replace(account, trust=Trust(fingerprint="00" * 32))
    with pytest.raises(AccountError, match="offers no TLS"), connect(pinned):
        pass
