"""The package as a user gets it: public names, what imports what, and a wheel in an empty environment."""

import importlib
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import feedrank

ROOT = Path(feedrank.__file__).resolve().parent.parent

PUBLIC = {
    "feedrank": {"__version__"},
    "feedrank.learners": {
        "FeedrankError",
        "InputError",
        "InstanceError",
        "Learner",
        "Listing",
        "OptionError",
        "Outcome",
        "Prediction",
        "SnapshotError",
        "SpecError",
        "TruthError",
        "Words",
        "build",
        "dump",
        "fingerprint",
        "load",
    },
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names(name):
    module = importlib.import_module(name)
    assert set(module.__all__) == PUBLIC[name]
    assert all(hasattr(module, public) for public in module.__all__)
    assert module.__doc__


def loaded_by(statement):
    """The top-level modules that a fresh interpreter has after a statement."""
    code = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=os.sep)
    return set(out.stdout.split())


def test_the_clients_need_no_numpy():
    assert not {"numpy", "scipy", "fastapi", "redis"} & loaded_by("import feedrank.clients")


def test_the_core_needs_no_service():
    assert not {"fastapi", "redis", "httpx", "pydantic"} & loaded_by("import feedrank.learners")


def test_the_umbrella_needs_nothing():
    assert not {"numpy", "fastapi", "httpx", "typer"} & loaded_by("import feedrank")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT],
        check=True,
        capture_output=True,
        timeout=100,
    )
    (path,) = out.glob("feedrank-*.whl")
    return path


def test_the_pages_are_in_the_wheel(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("service/page/static", "clients/mail/static"):
        files = {f"feedrank/{folder}/{file.name}" for file in (ROOT / folder).iterdir()}
        assert len(files) >= 3
        assert files <= held


@pytest.mark.timeout(300)
def test_the_wheel_works_in_an_empty_environment(wheel, tmp_path):
    """The base install: numpy and scipy, no more. The command line says what to install for the rest."""
    venv.create(tmp_path / "env", with_pip=True)
    scripts = tmp_path / "env" / "bin"
    subprocess.run(
        [scripts / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel],
        check=True,
        capture_output=True,
        timeout=250,
    )
    session = (
        "from feedrank.learners import build, dump, load;"
        "learner = build({'task': 'multiclass'});"
        "learner.learn({'features': ['cheap', 'pills']}, {'label': 'junk'});"
        "learner.learn({'features': ['board', 'meeting']}, {'label': 'work'});"
        "print(load(dump(learner)).predict({'features': ['meeting']}).label)"
    )
    told = subprocess.run(
        [scripts / "python", "-c", session], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert told.stdout.strip() == "work"
    # The service's files are in the wheel, and its absence is explained in one line.
    refused = subprocess.run(
        [scripts / "feedrank", "serve"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert refused.returncode != 0
    assert "feedrank[service]" in refused.stderr
    assert "Traceback" not in refused.stderr
