"""Fixtures of the HTTP tests: the app in process, and the real server in a process of its own. The store is real."""

import contextlib
import os
import select
import signal
import subprocess
import sys

import httpx
import pytest

from feedrank.service.contract.settings import Settings
from feedrank.service.http.app import create_app

PROBLEM = "application/problem+json"


@pytest.fixture
def make_client(tmp_path, serving):
    """`make_client(**settings)`: a client of an app over a fresh SQLite file."""
    with contextlib.ExitStack() as stack:

        def make(**settings):
            number = len(list(tmp_path.glob("*.db")))
            app = create_app(Settings(**{"store": f"sqlite:{tmp_path / f'{number}.db'}", **settings}))
            url = stack.enter_context(serving(app))
            client = stack.enter_context(httpx.Client(base_url=url, timeout=600, trust_env=False))
            client.app = app
            return client

        yield make


@pytest.fixture(scope="module")
def shared(tmp_path_factory, serving):
    """One server with default settings for all tests of a file."""
    app = create_app(Settings(store=f"sqlite:{tmp_path_factory.mktemp('shared') / 'test.db'}"))
    with serving(app) as url, httpx.Client(base_url=url, timeout=600, trust_env=False) as client:
        client.app = app
        yield client


@pytest.fixture
def client(shared):
    """A client of a server without learners."""
    yield shared
    for entry in shared.get("/v1/learners", params={"limit": 1000}).json()["learners"]:
        assert shared.delete(f"/v1/learners/{entry['name']}").status_code == 204


@pytest.fixture
def mail(client):
    """A client whose server has the learner `mail`."""
    made = client.put("/v1/learners/mail", json={"task": "multiclass", "algorithm": "predtron"})
    assert made.status_code == 201, made.text
    return client


@pytest.fixture
def refused():
    """`refused(reply, status, type)`: check that a reply is the problem document that was due, and return it."""

    def check(reply, status, kind):
        assert reply.status_code == status, reply.text
        assert reply.headers["content-type"] == PROBLEM
        problem = reply.json()
        assert problem["type"] == kind
        assert problem["status"] == status
        assert problem["title"]
        assert problem["detail"]
        if status == 422:
            assert problem["errors"]
            assert all(set(place) == {"pointer", "detail"} for place in problem["errors"])
        assert "Traceback" not in reply.text
        return problem

    return check


class Process:
    """`feedrank serve` as a process; `url` once it is ready."""

    def __init__(self, store, log, *, environ=None, port=0):
        self.log = log
        command = [sys.executable, "-m", "feedrank.cli", "serve", "--port", str(port), "--store", store]
        # A pipe that nobody reads would block the server once it is full of log lines.
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **(environ or {})},
            )
        ready, _, _ = select.select([self.process.stdout], [], [], 600)
        self.line = self.process.stdout.readline() if ready else ""
        assert "http://" in self.line, log.read_text() if ready else "slow"
        self.url = self.line.split("ready on ")[1].split()[0]

    def client(self, **more):
        return httpx.Client(base_url=self.url, timeout=600, trust_env=False, **more)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=600)

    def stop(self):
        """SIGTERM; returns (exit status, standard error)."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=600)
        return self.process.returncode, self.log.read_text()


@contextlib.contextmanager
def processes(folder):
    """Starts server processes over an SQLite file of the folder, or `store`; at the end none of them runs."""
    running = []

    def start(*, port=0, store=None, **environ):
        log = folder / f"{len(running)}.log"
        process = Process(store or f"sqlite:{folder / 'process.db'}", log, environ=environ, port=port)
        running.append(process)
        return process

    yield start
    for process in running:
        if process.process.poll() is None:
            process.kill()


@pytest.fixture
def start(tmp_path):
    """`start(**environ)`: a server process of this test, which may kill it or set its environment."""
    with processes(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def start_shared(tmp_path_factory):
    """`start_shared(**environ)`: a server process for all tests of a file that leave it as it was."""
    with contextlib.ExitStack() as stack:

        def start(**environ):
            return stack.enter_context(processes(tmp_path_factory.mktemp("shared")))(**environ)

        yield start


@pytest.fixture(scope="module")
def process(start_shared):
    """The shared server process with default settings."""
    return start_shared()
