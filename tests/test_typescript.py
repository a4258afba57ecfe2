"""The TypeScript client of docs/generated-clients.md: made from the API's description, type-checked, run."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import feedrank

ROOT = Path(feedrank.__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "generated-clients.md"
TSC = ["--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="needs Node and npm"),
]


def run(*command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def server(tmp_path):
    command = [Path(sys.executable).parent / "feedrank", "serve", "--port", "0", "--store"]
    with subprocess.Popen(
        [*command, f"sqlite:{tmp_path}/ts.db"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield re.search(r"http://[\d.:]+", process.stdout.readline())[0]
        finally:
            process.terminate()


@pytest.fixture
def project(tmp_path, server):
    """What the guide's commands make, with the description of the server."""
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "package.json").write_text('{"name": "app", "private": true, "type": "module"}')
    install = ["npm", "install", "--no-audit", "--no-fund"]
    (steps,) = re.findall(r"^```console\n(.*?)^```", GUIDE.read_text(), flags=re.M | re.S)
    packages = re.findall(r"[\w-]+@[\d.]+", steps)
    done = subprocess.run([*install, *packages], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("npm's packages cannot be had here")
    (folder / "openapi.json").write_text(httpx.get(f"{server}/openapi.json").text)
    make = re.search(r"^npx (.*)$", steps, flags=re.M)[1].split()
    run("npx", "--no-install", *make, cwd=folder)
    (program,) = re.findall(r"^```ts\n(.*?)^```", GUIDE.read_text(), flags=re.M | re.S)
    (folder / "shelf.ts").write_text(program.replace("http://127.0.0.1:8000", server))
    return folder


def test_the_program_of_the_guide_is_typed_and_runs(project):
    run("npx", "--no-install", "tsc", *TSC, "shelf.ts", cwd=project)
    assert sorted(run("node", "shelf.js", cwd=project).split()) == ["cheap", "dear"]
    wrong = (project / "shelf.ts").read_text().replace("entry.id)", "entry.nothing)")
    (project / "wrong.ts").write_text(wrong)
    refused = subprocess.run(
        ["npx", "--no-install", "tsc", *TSC, "--noEmit", "wrong.ts"], cwd=project, check=False
    )
    assert refused.returncode != 0
