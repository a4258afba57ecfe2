"""The command line: helpful, lazy, and never a stack trace for what a user can do wrong."""

import subprocess
import sys

import pytest

from feedrank.cli import COMMANDS


def feedrank(*arguments, **environ):
    command = [sys.executable, "-m", "feedrank.cli", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environ or None
    )


def test_help_lists_every_command():
    done = feedrank("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in COMMANDS)


def test_version():
    assert feedrank("--version").stdout.startswith("feedrank 0.")


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
    ("arguments", "told"),
    [
        (["keys", "list", "--file", "no/such"], "cannot read"),
        (["keys", "add", "--file", "no/such", "--scope", "root"], "scopes"),
        (["serve", "--host", "0.0.0.0"], "loopback only"),
        (["serve", "--store", "mysql://x"], "sqlite:PATH"),
        (["serve", "--port", "99999"], "at most 65535"),
    ],
)
def test_wrong_use_is_one_clear_line(arguments, told):
    done = feedrank(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("feedrank: ")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_missing_extra_says_what_to_install():
    block = (
        "import sys; sys.modules[sys.argv[1]] = None; del sys.argv[1]; from feedrank.cli import main; main()"
    )
    for missing, command, extra in (("typer", "serve", "service"), ("typer", "keys", "service")):
        run = [sys.executable, "-c", block, missing, command]
        done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert f"pip install 'feedrank[{extra}]'" in done.stderr
        assert "Traceback" not in done.stderr


def test_numpy_gets_one_thread_unless_told_otherwise():
    program = (
        "import sys, os; sys.argv = ['feedrank', '--version']; from feedrank.cli import main; "
        "assert 'numpy' not in sys.modules; main(); print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    for environ, threads in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")):
        run = [sys.executable, "-c", program]
        done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True, env=environ)
        assert done.stdout.split()[-1] == threads
