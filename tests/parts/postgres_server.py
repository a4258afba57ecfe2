"""A real PostgreSQL for tests: Debian's `postgresql`, or whatever has `initdb` and `postgres` in PATH."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg
import pytest
from ports import free_port
from waiting import until

USERS = ("postgres", "nobody")  # of whom one runs the server, which refuses to be run by root


def binaries() -> Path:
    """The folder of the newest one, or a skipped test."""
    path = shutil.which("initdb")
    if path:
        return Path(path).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name))
    if not folders:
        pytest.skip("no PostgreSQL: `apt-get install postgresql` to test the store on it")
    return folders[-1]


class PostgresServer:
    """A cluster in a folder of its own, or a standby of another; killed and started again, it has lost nothing."""

    def __init__(self, *options: str, primary: PostgresServer | None = None) -> None:
        self._bin, self.options = binaries(), options
        self.port = free_port()
        # Not below pytest's own folder, which nobody but its user may enter.
        self.folder = Path(tempfile.mkdtemp(prefix="feedrank-postgres-"))
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            known = {user.pw_name: user for user in pwd.getpwall()}
            user = next(known[name] for name in USERS if name in known)
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        if primary is None:
            words = ("-U", "feedrank", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
            self._run("initdb", "-D", str(self.data), *words)
        else:
            words = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", "feedrank", "-R", "-c", "fast", "-N")
            self._run("pg_basebackup", "-D", str(self.data), *words)
        self.start()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        return f"postgresql://feedrank@127.0.0.1:{self.port}/postgres"

    def _run(self, name: str, *words: str) -> None:
        subprocess.run(
            [str(self._bin / name), *words], check=True, capture_output=True, cwd=self.folder, **self._as
        )

    def start(self) -> None:
        command = [str(self._bin / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "200"}
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *self.options], stdout=log, stderr=log, cwd=self.folder, **self._as
            )
        until(self.answers, "postgres does not answer", not_yet=psycopg.Error, pause=0.02)

    def answers(self) -> bool:
        assert self.process.poll() is None, (self.folder / "log").read_text()
        return self.ask("SELECT 1") == [(1,)]

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        """Run a statement, and give its rows."""
        return ask(self.url, sql)

    def clear(self) -> None:
        """As FLUSHALL: no store is left."""
        self.ask("DROP SCHEMA IF EXISTS feedrank CASCADE")

    def each(self, what: signal.Signals) -> None:
        """A signal for all of its processes."""
        for process in [*self.children(), self.process.pid]:
            os.kill(process, what)

    def children(self) -> list[int]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(number) for number in path.read_text().split()]

    def kill(self) -> None:
        """As a crash of the machine, but for what its disk has."""
        if self.process.poll() is None:
            children = self.children()
            self.process.kill()
            self.process.wait()
            for child in children:
                until(lambda child=child: not alive(child), "a backend of PostgreSQL goes on")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
        shutil.rmtree(self.folder)


def ask(url: str, sql: str) -> list[tuple[object, ...]]:
    """Run a statement on the server of a store, and give its rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        result = connection.execute(sql)  # type: ignore[call-overload]
        return result.fetchall() if result.description else []


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
