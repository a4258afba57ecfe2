"""The command line: helpful, lazy, and never a stack trace for what a user can do wrong."""

import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from feedrank.cli import COMMANDS, EXTRAS

ROOT = Path(__file__).parents[1]


def feedrank(*arguments):
    return program("-m", "feedrank.cli", *arguments)


def program(*arguments, environ=None):
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ)


def test_help_lists_every_command():
    done = feedrank("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in COMMANDS)


def test_version():
    assert re.fullmatch(r"feedrank 0\.\S+, (native|numpy) kernel\n", feedrank("--version").stdout)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("le", "learners"),
        ("learners\nretr", "retract"),
        ("import\n--tru", "--truth"),
        ("completion\nz", "zsh"),
    ],
)
def test_tab_completes_commands_their_parts_and_options(words, expected):
    done = program("-m", "feedrank.cli", environ={**os.environ, "_FEEDRANK_WORDS": words})
    assert done.stdout.split() == [expected]


def test_bash_takes_the_completion():
    ask = 'eval "$1"; COMP_WORDS=(feedrank learners); COMP_CWORD=1; declare -F _feedrank && complete -p feedrank'
    done = subprocess.run(
        ["bash", "-c", ask, "bash", feedrank("completion", "bash").stdout],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_feedrank" in done.stdout
    assert feedrank("completion", "tcsh").stderr.startswith("feedrank completion: name a shell")
    assert feedrank("completion", "-h").stdout.startswith("usage: feedrank completion SHELL\n")


def test_unknown_command():
    done = feedrank("servo")
    assert done.returncode == 1
    assert "no command 'servo'" in done.stderr


def test_keys_from_adding_to_revoking(tmp_path):
    file = str(tmp_path / "keys")
    made = feedrank(
        "keys", "add", "--file", file, "--scope", "predict", "--scope", "feedback", "--prefix", "mail-"
    )
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    shown = feedrank("keys", "list", "--file", file).stdout
    identity = shown.split()[0]
    assert identity in secret
    assert "predict,feedback  mail-" in shown
    assert secret not in shown
    assert feedrank("keys", "revoke", "--file", file, identity).returncode == 0
    assert feedrank("keys", "list", "--file", file).stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["keys", "list", "--file", "no/such"], "cannot read"),
        (["keys", "add", "--file", "no/such", "--scope", "root"], "scopes"),
        (["serve", "--host", "0.0.0.0"], "loopback only"),
        (["serve", "--store", "mysql://x"], "sqlite:PATH"),
        (["serve", "--port", "99999"], "--port must be at most 65535"),
    ],
)
def test_wrong_use_is_one_clear_line(arguments, message):
    done = feedrank(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("feedrank: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_help_is_one_letter_away_on_every_command_and_its_parts():
    for words in (["serve"], ["keys"], ["keys", "add"], ["rank", "train"], ["experiment", "aa"]):
        done = feedrank(*words, "-h")
        assert done.returncode == 0, done.stderr
        assert f"feedrank {' '.join(words)}" in done.stdout


def test_a_reader_that_stops_reading_sees_no_trace():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "feedrank.cli", "--help"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.returncode == 1
    assert done.stderr == ""


def test_an_early_interrupt_leaves_no_trace():
    """Ctrl-C while the command is still being imported: the signal comes when it asks for typer."""
    interrupt = (
        "import os, signal, sys\n"
        # A shell starts what runs in its background with the signal ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt()); sys.argv = ['feedrank', 'serve']\n"
        "from feedrank.cli import main; main()\n"
    )
    done = program("-c", interrupt)
    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr == ""


def required(extra, extras):
    """The modules that an extra brings, by pyproject.toml."""
    modules = set()
    for line in extras[extra]:
        if line.startswith("feedrank["):
            modules |= required(line[len("feedrank[") : -1], extras)
        else:
            name = re.match(r"[\w-]+", line)[0].removesuffix("-py").replace("-", "_")
            modules.add("opentelemetry" if name.startswith("opentelemetry") else name)
    return modules


@pytest.fixture(scope="module")
def extras():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return {name: required(name, declared) for name in declared if name != "bench"}


def test_the_table_of_extras_is_that_of_the_package(extras):
    for module, extra in EXTRAS.items():
        assert module in extras[extra] | {"starlette"}
    base = {"typer", "rich"}
    assert set().union(*extras.values()) - base <= set(EXTRAS)


CALLS = {
    "serve": ["--port", "0", "--store", "sqlite:lists/is-no-folder.db"],
    "keys": ["list", "--file", "no/such"],
    "replay": ["nobody", "--store", "sqlite:log.db"],
    "verify": ["--store", "sqlite:log.db"],
    "sweep": ["nobody", "--random", "1", "--store", "sqlite:log.db"],
    "evaluate": ["nobody", "--spec", "lists", "--store", "sqlite:log.db"],
    "experiment": ["aa", "--runs", "1", "--events", "2"],
    "learners": ["show", "nobody", "--store", "sqlite:learners.db"],
    "import": ["lists", "--format", "csv", "--learner", "x", "--store", "sqlite:import.db"],
    "export": ["log.parquet", "--learner", "x", "--store", "sqlite:export.db"],
    "ingest": ["nats://127.0.0.1:9/events", "--learner", "x", "--store", "sqlite:ingest.db"],
    "mail": ["train", "inbox", "--store", "sqlite:mail.db", "--state", "state.db"],
    "rank": ["evaluate", "lists", "--store", "sqlite:rank.db"],
    "search": ["demo", "--port", "0", "--store", "sqlite:search.db"],
}
WITHOUT = (
    "import sys; sys.modules.update(dict.fromkeys(sys.argv[1].split(','))); del sys.argv[1];"
    "from feedrank.cli import main; main()"
)


@pytest.mark.parametrize("command", COMMANDS)
def test_with_any_wrong_set_of_extras_a_command_says_in_one_line_what_to_install(command, extras, tmp_path):
    (tmp_path / "lists").write_text("1 qid:1 1:0.5\n")
    every = set().union(*extras.values())
    own = extras[COMMANDS[command][2]]
    for present in (set(), own, extras["service" if own != extras["service"] else "clients"]):
        missing = every - present
        call = CALLS.get(command, ["-h"])
        code = [sys.executable, "-c", WITHOUT, ",".join(sorted(missing)), command, *call]
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            code,
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=environ,
            stdin=subprocess.DEVNULL,
        )
        assert "Traceback" not in done.stderr
        advice = re.fullmatch(
            r"feedrank: \w+ needs (\w+); run: pip install 'feedrank\[([\w,]+)\]'\n", done.stderr
        )
        if advice:
            assert advice[1] in set().union(*(extras[name] for name in advice[2].split(",")))
        else:  # what is there suffices for this call
            assert "No module named" not in done.stderr
            assert present


def test_numpy_gets_one_thread_unless_told_otherwise():
    code = (
        "import sys, os; sys.argv = ['feedrank', '--version']; from feedrank.cli import main; "
        "assert 'numpy' not in sys.modules; main(); print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    for environ, threads in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")):
        done = program("-c", code, environ={**environ, "PYTHONPATH": str(ROOT)})
        assert done.stdout.split()[-1] == threads
