"""The commands of mail against a real server: train, watch, sort, run and undo."""

import os
import subprocess
import sys

from imap_server import numbers
from mail_rounds import FOLDERS, has_seen_inbox, raw
from typer.testing import CliRunner
from waiting import until

from feedrank.clients.mail_cli import app

# `feedrank mail` in a process of its own, in which no audit is drawn.
PROGRAM = (
    "import feedrank.learners.inference.assurance as a; a.DRAWN = 0.0; "
    "from feedrank.clients.mail_cli import main; main()"
)


def test_the_commands_train_watch_and_undo(account, person, tmp_path):
    for number in range(100):
        person.append(FOLDERS[number % 2], raw(number, FOLDERS[number % 2]))
    url = f"imap://me@127.0.0.1:{account.port}"
    own = ["--state", str(tmp_path / "mail.db")]
    store = ["--store", f"sqlite:{tmp_path / 's.db'}"]

    def command(*words):
        return [sys.executable, "-c", PROGRAM, *words]

    words = command("train", url, *own, *store, "--precision", "0.9")
    trained = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "100 messages learned from 2 folders" in trained.stdout
    words = command("watch", url, *own, *store, "--mode", "file", "--precision", "0.9", "--poll", "1")
    watching = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: has_seen_inbox(tmp_path / "mail.db", account))
        person.append("INBOX", raw(200, "Travel"))
        assert watching.stderr.readline() == "Travel: filed <m200@example.org>\n"
        watching.terminate()
        assert watching.wait(300) == 0
    finally:
        watching.kill()
        watching.wait()
        watching.stderr.close()
    assert 200 in numbers(person, "Travel")
    undone = subprocess.run(command("undo", url, *own), capture_output=True, text=True, check=True)
    assert "1 put back" in undone.stdout
    assert numbers(person, "INBOX") == [200]


def test_the_backlog_is_shown_and_then_filed(account, person, tmp_path):
    for number in range(120):
        person.append(FOLDERS[number % 2], raw(number, FOLDERS[number % 2]))
    person.append("INBOX", raw(300, "Travel"))
    person.append("INBOX", raw(301, "Work"))
    url = f"imap://me@127.0.0.1:{account.port}"
    options = ["--state", str(tmp_path / "mail.db"), "--store", f"sqlite:{tmp_path / 's.db'}"]

    def command(*words):
        done = CliRunner().invoke(app, [*words, *options], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    command("train", url, "--precision", "0.9")
    dry = [sys.executable, "-c", PROGRAM, "sort", url, "--mode", "file", "--precision", "0.9"]
    wide = {**os.environ, "COLUMNS": "200"}  # of a terminal: what a process starts with
    table = subprocess.run(
        [*dry, "--dry-run", *options], capture_output=True, text=True, check=True, env=wide
    ).stdout
    assert "2 of 2 messages would be filed" in table
    assert numbers(person, "INBOX") == [300, 301]
    rows = [line.split("│") for line in table.splitlines() if " 30" in line]
    assert [(row[1].split()[-1], row[3].strip()) for row in rows] == [("301", "Work"), ("300", "Travel")]
    assert "2 of 2 messages filed" in command("sort", url, "--mode", "file", "--precision", "0.9")
    assert numbers(person, "INBOX") == []
    assert {300, 301} <= {*numbers(person, "Travel"), *numbers(person, "Work")}
    person.append("INBOX", raw(302, "Work"))  # came since, and is a line of the table like the others
    assert "1 of 1 messages filed" in command("sort", url, "--mode", "file", "--precision", "0.9")
    person.append("INBOX", raw(303, "Work").replace(b"Subject:", b"Subject: [/red]\x1b[2J"))
    table = command("sort", url, "--dry-run")
    assert "[/red]\ufffd[2J" in table  # neither markup nor for the terminal


def test_run_watches_accounts_and_obeys_rules_while_rank_works_beside_it(account, person, tmp_path):
    for number in range(20):
        person.append(FOLDERS[number % 2], raw(number, FOLDERS[number % 2]))
    store, state = f"sqlite:{tmp_path / 's.db'}", tmp_path / "mail.db"
    url = f"imap://me@127.0.0.1:{account.port}"
    program = [sys.executable, "-m", "feedrank.cli", "mail"]
    words = ["--state", str(state), "--store", store]
    assert CliRunner().invoke(app, ["train", url, *words], catch_exceptions=False).exit_code == 0
    (tmp_path / "accounts.toml").write_text(f"""
        store = "sqlite:s.db"
        state = "mail.db"
        [[account]]
        url = "{url}"
        mode = "file"
        poll = 1
        [[account.always]]
        subject = "*urgent*"
        folder = "Work"
        [[account]]
        url = "imap://nobody@127.0.0.1:{account.port}"
        learner = "other"
    """)
    command = [*program, "run", str(tmp_path / "accounts.toml")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            first = running.stderr.readline()
            assert "there is no learner 'other' yet" in first
            until(lambda: has_seen_inbox(state, account))
            ranked = subprocess.run(
                [*program, "rank", *words], input=raw(90, "Travel"), capture_output=True, check=True
            )
            assert ranked.stdout.split()[1] == b"Travel"
            person.append("INBOX", raw(91, "Travel").replace(b"Subject: ", b"Subject: URGENT "))
            assert running.stderr.readline() == f"{account.name}: Work: filed <m91@example.org>\n"
        finally:
            running.terminate()
            assert running.wait(600) == 0, running.stderr.read()
    assert 91 in numbers(person, "Work")
