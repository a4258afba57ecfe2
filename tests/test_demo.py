"""The first minute: one command, a server, three learners that have learned, and a summary."""

import os
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from feedrank.clients import Client
from feedrank.demo import app, served


def test_the_demo_serves_teaches_and_says_what_to_look_at(tmp_path):
    store = f"sqlite:{tmp_path / 'demo.db'}"
    arguments = ["--no-browser", "--port", "0", "--visitors", "30", "--rate", "1000", "--store", store]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "Open http://127.0.0.1:" in result.output
    assert "demo-mail: 10 messages" in result.output
    assert "demo-shop: 10 pages" in result.output
    again = CliRunner().invoke(app, arguments)
    assert "demo-mail: 20 messages" in again.output


def test_a_port_that_is_taken_is_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(
            app, ["--no-browser", "--port", port, "--store", f"sqlite:{tmp_path}/d.db"]
        )
    assert result.exit_code == 1
    assert "Traceback" not in result.output


def signalled(number, **environment):
    """The end of a demo whose terminal sends a signal: (return code, address of its server, output, errors)."""
    command = [sys.executable, "-m", "feedrank.cli", "demo", "--no-browser", "--port", "0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, **environment},
    ) as process:
        assert process.stdout is not None
        url = line = ""
        while "Stop with Ctrl-C" not in line:
            assert process.poll() is None
            line = process.stdout.readline()
            url = line.split()[1] if line.startswith("Open ") else url
        os.killpg(process.pid, number)
        output, errors = process.communicate()
    return process.returncode, url, output, errors


def test_a_terminals_interrupt_ends_it_with_the_summary():
    code, _, output, errors = signalled(signal.SIGINT)
    assert code == 0, errors
    assert "demo-test: " in output


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_closed_terminal_leaves_neither_a_server_nor_its_folder(tmp_path, number):
    code, url, _, errors = signalled(number, TMPDIR=str(tmp_path))
    assert code == 128 + number, errors
    assert "Traceback" not in errors
    place = urlsplit(url)
    with socket.socket() as one:
        assert one.connect_ex((place.hostname, place.port)) != 0
    assert list(tmp_path.iterdir()) == []


def test_learners_of_an_earlier_release_go_on(tmp_path):
    store = f"sqlite:{tmp_path / 'demo.db'}"
    with served(store, 0) as url, Client(url) as client:
        client.create("demo-mail", {"task": "multiclass", "algorithm": "predtron"})
    arguments = ["--no-browser", "--port", "0", "--visitors", "3", "--rate", "1000", "--store", store]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "demo-mail: 1 messages" in result.output


def test_a_learner_of_another_task_is_said_with_what_to_do(tmp_path):
    store = f"sqlite:{tmp_path / 'demo.db'}"
    with served(store, 0) as url, Client(url) as client:
        client.create("demo-mail", {"task": "subset-ranking"})
    result = CliRunner().invoke(app, ["--no-browser", "--port", "0", "--store", store])
    assert result.exit_code == 1
    assert "delete it (feedrank learners delete demo-mail) or take another --store" in result.output
