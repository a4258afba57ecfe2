"""`feedrank mail train` and `rank` as a person runs them."""

import json

import pytest
from typer.testing import CliRunner

from feedrank.clients.mail_cli import app

TOPICS = {"Work": "budget meeting report", "Travel": "flight hotel passport"}


def raw(number, folder):
    return (
        f"Message-ID: <{number}@example.org>\nFrom: {folder.lower()}@example.org\nSubject: {TOPICS[folder]}\n"
        f"Date: Mon, {1 + number % 28:02} Jan 2024 10:00:00 +0000\n\n{TOPICS[folder]}\n"
    ).encode()


@pytest.fixture
def run(tmp_path):
    for number in range(120):
        folder = list(TOPICS)[number % 2]
        (tmp_path / "mail" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "mail" / folder / str(number)).write_bytes(raw(number, folder))
    (tmp_path / "mail" / "Trash").mkdir()
    (tmp_path / "mail" / "Trash" / "1").write_bytes(raw(999, "Work"))
    common = ["--state", str(tmp_path / "mail.db"), "--store", f"sqlite:{tmp_path / 's.db'}"]

    def call(command, *words, stdin=b""):
        return CliRunner().invoke(app, [command, *words, *common], input=stdin)

    return call


def test_train_then_rank(run, tmp_path):
    trained = run("train", str(tmp_path / "mail"))
    assert trained.exit_code == 0, trained.output
    assert "120 messages learned from 2 folders" in trained.output
    assert "mistakes so far" in trained.output
    again = run("train", str(tmp_path / "mail"))
    assert "0 messages learned" in again.output
    found = run("rank", "--format", "json", "--reasons", "4", stdin=raw(500, "Travel"))
    told = json.loads(found.stdout)
    assert (told["folder"], told["sure"]) == ("Travel", True)
    assert [entry["folder"] for entry in told["ranking"]] == ["Travel", "Work"]
    assert all(len(entry["reasons"]) == 4 for entry in told["ranking"])
    assert "from:travel@example.org" in told["ranking"][0]["reasons"]
    text = run("rank", "--top", "1", stdin=raw(500, "Work"))
    assert text.stdout.split()[1] == "Work"
    assert "from:work@example.org" in text.stdout
    assert run("rank", stdin=b"\xff\x00 no message at all").exit_code == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("train", "/nowhere/at/all"), "neither a directory nor a file"),
        (("train", "imaps://mail.example.org"), "must be imaps://user@host"),
        (("rank", "--learner", "nobody"), "404"),
        (("rank", "--format", "xml"), "text or json"),
        (("watch", "imaps://me@mail.example.org"), "run `feedrank mail train` first"),
        (("watch", "imaps://me@mail.example.org", "--mode", "delete"), "suggest or file"),
    ],
)
def test_what_a_person_can_mend_is_one_line(run, words, line):
    result = run(*words)
    assert result.exit_code != 0
    assert line in result.output
    assert "Traceback" not in result.output


def test_server_or_store(run):
    result = run("rank", "--server", "http://127.0.0.1:9")
    assert result.exit_code != 0
    assert "not both" in result.output
