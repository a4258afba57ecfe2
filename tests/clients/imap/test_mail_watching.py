"""Watching: new mail is seen, with IDLE or without, and lost connections are outlived."""

import contextlib
import socket
import threading

import pytest
from imap_server import move
from imapclient import IMAPClient
from mail_rounds import has_seen_inbox, raw, taught
from waiting import until

from feedrank.clients.mail.account import Account
from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.filing import WatchSettings
from feedrank.clients.mail.loop import watch


class Proxy:
    """A wire to the server that can be cut."""

    def __init__(self, port):
        self.target, self.open = port, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
                self.open += [near, far]
                for a, b in ((near, far), (far, near)):
                    threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    def pump(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        self.shut(source, sink)

    def shut(self, *sockets):
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def cut(self):
        self.shut(*self.open)
        self.open.clear()

    def close(self):
        self.shut(self.listener)
        self.cut()


@pytest.fixture
def wire(imap_server):
    made = Proxy(imap_server.port)
    yield made
    made.close()


@pytest.mark.parametrize("idle", [True, False])
def test_watching_sees_new_mail_and_outlives_lost_connections(
    client, tmp_path, account, person, wire, idle, state, look, monkeypatch
):
    taught(client, state, person, look)
    if not idle:
        real = IMAPClient.has_capability
        monkeypatch.setattr(
            IMAPClient, "has_capability", lambda self, name: name != "IDLE" and real(self, name)
        )
    through = Account(account.host, wire.port, account.user, account.tls, account.secret)
    lines, stop, errors = [], threading.Event(), []

    def run():
        try:
            with MailState(tmp_path / "watch.db", through.name) as own:
                watch(
                    through, client, own, WatchSettings(), lines.append, poll=30.0 if idle else 0.3, stop=stop
                )
        except Exception as error:
            errors.append(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        until(lambda: has_seen_inbox(tmp_path / "watch.db", through), lines)
        person.append("INBOX", raw(10, "Work"))
        until(lambda: "Work: suggested for <m10@example.org>" in lines, lines)
        move(person, "INBOX", "Travel", 10)
        until(lambda: "Travel: learned <m10@example.org>" in lines, lines)
        wire.cut()
        person.append("INBOX", raw(11, "Work"))
        until(lambda: any("suggested for <m11@example.org>" in line for line in lines), lines)
        assert any("again in" in line for line in lines)
    finally:
        stop.set()
        thread.join(300)
    assert not thread.is_alive()
    assert errors == []
    assert len([line for line in lines if "m1" in line]) == 3
