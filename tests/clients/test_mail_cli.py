"""The mail commands as a person runs them: train, rank, deliver, unit, the accounts file, a store that is shared."""

import json
import mailbox
import re
import socket
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from feedrank.clients import Client, local_socket
from feedrank.clients.connection import service
from feedrank.clients.mail import read
from feedrank.clients.mail.accounts_file import read_accounts
from feedrank.clients.mail.extract import SPEC
from feedrank.clients.mail.options import note, printable
from feedrank.clients.mail.sources import find
from feedrank.clients.mail_cli import app
from feedrank.embedded import Embedded

TOPICS = {"Work": "budget meeting report", "Travel": "flight hotel passport"}


def raw(number, folder):
    return (
        f"Message-ID: <{number}@example.org>\nFrom: {folder.lower()}@example.org\nSubject: {TOPICS[folder]}\n"
        f"Date: Mon, {1 + number % 28:02} Jan 2024 10:00:00 +0000\n\n{TOPICS[folder]}\n"
    ).encode()


@pytest.fixture(autouse=True)
def no_audits(monkeypatch):
    """What is sure is delivered: audits are drawn by chance."""
    monkeypatch.setattr("feedrank.learners.inference.assurance.DRAWN", 0.0)


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
    result = run("rank", "--format", "json", "--reasons", "4", stdin=raw(500, "Travel"))
    reply = json.loads(result.stdout)
    assert (reply["folder"], reply["sure"]) == ("Travel", True)
    assert [entry["folder"] for entry in reply["ranking"]] == ["Travel", "Work"]
    assert all(len(entry["reasons"]) == 4 for entry in reply["ranking"])
    assert "from:travel@example.org" in reply["ranking"][0]["reasons"]
    text = run("rank", "--top", "1", stdin=raw(500, "Work"))
    assert text.stdout.split()[1] == "Work"
    assert "from:work@example.org" in text.stdout
    assert run("rank", stdin=b"\xff\x00 no message at all").exit_code == 0


def test_the_inbox_is_learned_as_far_as_it_was_read_and_left_there(run, tmp_path):
    box = mailbox.Maildir(tmp_path / "box")
    for number in range(40):
        message = mailbox.MaildirMessage(raw(number, "Work"))
        message.set_subdir("cur")
        message.set_flags("S")
        box.add_folder("Work").add(message)
    letters = [b"Subject: dinner on sunday\n\nsee you\n"] * 9
    ages, flags = [9, 9, 9, 9, 9, 9, 9, 1, 9], "SSSSSSSS "
    for number, (letter, age, flag) in enumerate(zip(letters, ages, flags, strict=True)):
        date = (datetime.now(UTC) - timedelta(days=age)).strftime("%a, %d %b %Y %H:%M:%S +0000")
        head = f"Message-ID: <own{number}@example.org>\nFrom: friend@example.org\nDate: {date}\n"
        message = mailbox.MaildirMessage(head.encode() + letter)
        message.set_subdir("cur")
        message.set_flags(flag.strip())
        box.add(message)
    without = run("train", str(tmp_path / "box"), "--without-inbox", "--learner", "without")
    assert "40 messages learned from 1 folders" in without.output
    assert "47 messages learned from 2 folders" in run("train", str(tmp_path / "box")).output
    letter = b"From: friend@example.org\nSubject: dinner\n\nsee you on sunday\n"
    assert run("rank", "--top", "1", stdin=letter).stdout.split()[1] == "INBOX"
    (tmp_path / "mbox").write_bytes(
        b"".join(
            b"From x\nMessage-ID: <%d@x>\nDate: Mon, 05 Feb 2024 10:00:00 +0000\n%s\n\nhi\n\n"
            % (number, status)
            for number, status in enumerate(
                (
                    b"Status: RO",
                    b"Status: O",
                    b"X-Mozilla-Status: 0001",
                    b"X-Mozilla-Status: 0000",
                    b"Status:",
                )
            )
        )
    )
    assert [one.key for one in find(tmp_path / "mbox") if one.is_read] == ["0@x", "2@x"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("train", "/nowhere/at/all"), "neither a directory nor a file"),
        (("train", "imaps://mail.example.org"), "must be imaps://user@host"),
        (("rank", "--learner", "nobody"), "there is no learner 'nobody' yet"),
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


def test_a_state_file_that_is_none_is_one_line(tmp_path):
    path = tmp_path / "mail.db"
    path.write_bytes(b"no database at all, but long enough to look at" * 100)
    words = ["rank", "--store", f"sqlite:{tmp_path / 's.db'}", "--state", str(path)]
    result = CliRunner().invoke(app, words, input=b"Subject: hello")
    assert result.exit_code == 1
    assert "not a database" in result.output
    assert "Traceback" not in result.output


def test_what_others_wrote_does_not_steer_the_terminal(capfd):
    assert printable("a\x1b[2J\x9bb\r\nc\x7f é") == "a\ufffd[2J\ufffdb\ufffd\ufffdc\ufffd é"
    note("learned <\x1b]0;owned\x07@example.org>")
    assert "\x1b" not in capfd.readouterr().err


@pytest.mark.parametrize("name", ["a%h b$HOME.toml", 'a "b".toml', "a\\b.toml", "a'b.toml"])
def test_the_unit_runs_a_file_of_any_name(tmp_path, name):
    path = tmp_path / name
    path.write_text('store = "sqlite:s.db"\n[[account]]\nurl = "imaps://me@example.org"\n')
    unit = CliRunner().invoke(app, ["unit", str(path)]).stdout
    command = next(line for line in unit.splitlines() if line.startswith("ExecStart=")).partition("=")[2]
    # What systemd does: C escapes within double quotes, `%%` and `$$`.
    last = re.findall(r'"((?:[^"\\]|\\.)*)"', command)[-1]
    assert re.sub(r"\\(.)", r"\1", last).replace("%%", "%").replace("$$", "$") == str(path)


def test_server_or_store(run):
    result = run("rank", "--server", "http://127.0.0.1:9")
    assert result.exit_code != 0
    assert "not both" in result.output


def test_an_empty_learner_says_so(tmp_path):
    with Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path / 's.db'}")) as client:
        client.create("mail", SPEC)
    words = ["rank", "--store", f"sqlite:{tmp_path / 's.db'}", "--state", str(tmp_path / "m.db")]
    result = CliRunner().invoke(app, words, input=raw(1, "Work"))
    assert result.exit_code == 1
    assert "the learner 'mail' is empty: run `feedrank mail train` first" in result.output


def test_rank_uses_the_store_of_the_process_that_has_it_open(run, tmp_path):
    assert run("train", str(tmp_path / "mail")).exit_code == 0
    store, place = f"sqlite:{tmp_path / 's.db'}", tmp_path / "s.db.socket"
    assert not place.exists()
    with service(None, store, None) as first:  # as `watch` does
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        reply = json.loads(run("rank", "--format", "json", stdin=raw(500, "Travel")).stdout)
        assert reply["folder"] == "Travel"
        with service(None, store, None) as second:
            second.feedback("mail", {"features": ["x"], "label": "Other"})
        assert first.learner("mail").version == 121
    assert not place.exists()
    assert json.loads(run("rank", "--format", "json", stdin=raw(500, "Travel")).stdout)["folder"] == "Travel"


def test_a_socket_of_a_dead_process_is_replaced(tmp_path):
    place = tmp_path / "s.db.socket"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place))
    assert not local_socket.is_shared(place)
    with service(None, f"sqlite:{tmp_path / 's.db'}", None) as client:
        client.create("mail", SPEC)
        assert local_socket.is_shared(place)
    assert local_socket.socket_of("redis://localhost") is None
    assert local_socket.socket_of("sqlite:" + "x" * 200) is None


def test_a_store_that_cannot_be_opened_is_one_line(tmp_path):
    with Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path / 's.db'}")) as client:
        client.create("mail", SPEC)  # open in here, and not shared
        words = ["mail", "rank", "--store", f"sqlite:{tmp_path / 's.db'}", "--state", str(tmp_path / "m.db")]
        done = subprocess.run(
            [sys.executable, "-m", "feedrank.cli", *words],
            input=raw(1, "Work"),
            capture_output=True,
            check=False,
        )
    assert done.returncode == 1
    assert b"is in use by process" in done.stderr
    assert b"Traceback" not in done.stderr


def test_deliver_never_fails(run, tmp_path):
    account = "imap://me@127.0.0.1:1"
    lost = run("deliver", account, stdin=raw(1, "Work"))
    assert (lost.exit_code, lost.stdout) == (0, "")
    broken = CliRunner().invoke(
        app,
        ["deliver", "nonsense", "--server", "http://127.0.0.1:9", "--state", str(tmp_path / "m.db")],
        input=b"x",
    )
    assert (broken.exit_code, broken.stdout) == (0, "")
    assert "the inbox it is" in broken.stderr


ACCOUNTS = """
store = "sqlite:s.db"
state = "mail.db"

[[account]]
url = "imaps://me@example.org"
mode = "file"
exclude = ["Lists/*"]

[[account.always]]
from = "*@BANK.example"
subject = "*invoice*"
folder = "Bills"

[[account.never]]
from = "*@family.example"

[[account.never]]
folder = "Projects/*"
"""


def test_the_accounts_file_and_its_rules(tmp_path):
    path = tmp_path / "accounts.toml"
    path.write_text(ACCOUNTS)
    chosen = read_accounts(path)
    assert (chosen.store, chosen.state) == (f"sqlite:{tmp_path / 's.db'}", tmp_path / "mail.db")
    (watched,) = chosen.accounts
    rules = watched.settings.rules
    assert (watched.account.name, watched.settings.mode) == ("me@example.org:993", "file")
    bill = read(b"From: Bank <no-reply@bank.example>\nSubject: Your INVOICE 7\n\n")
    other = read(b"From: no-reply@bank.example\nSubject: News\n\n")
    aunt = read(b"From: aunt@family.example\nSubject: Hello\n\n")
    assert [rules.folder(one) for one in (bill, other, aunt)] == ["Bills", None, None]
    assert [rules.keeps(one) for one in (bill, other, aunt)] == [False, False, True]
    assert [rules.closed(other, [folder]) for folder in ("Projects/A", "Bills")] == [True, False]
    assert rules.lines() == [
        "always: from *@bank.example, subject *invoice* → Bills", "never: from *@family.example", "never: Projects/*",
    ]  # fmt: skip
    unit = CliRunner().invoke(app, ["unit", str(path)])
    assert f"mail run {path}" in unit.stdout
    assert "WantedBy=default.target" in unit.stdout


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (('mode = "file"', 'mode = "delete"'), "mode is suggest or file"),
        (('mode = "file"', "colour = 1"), "there is no setting 'colour'"),
        (('mode = "file"', "oauth = 1"), "oauth must be bool"),
        (('url = "imaps://me@example.org"', 'url = "imaps://example.org"'), "must be imaps://user@host"),
        (('store = "sqlite:s.db"', ""), "give `store` or `server`"),
        (('folder = "Bills"', ""), "`always` needs a folder"),
        (("[[account]]", "[[account"), "accounts.toml"),
        (('from = "*@family.example"', ""), "`never` needs"),
    ],
)
def test_what_is_wrong_in_the_accounts_file_is_one_line(tmp_path, change, reason):
    path = tmp_path / "accounts.toml"
    path.write_text(ACCOUNTS.replace(*change))
    result = CliRunner().invoke(app, ["run", str(path)])
    assert result.exit_code == 1
    assert reason in result.output
    assert "Traceback" not in result.output
