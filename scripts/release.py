"""Build a release and check it as its users will meet it; nothing is uploaded.

    python scripts/release.py [--keep] [--outdir dist]
    python scripts/release.py --try    step 2 alone, with the feedrank of this Python; it must have the native kernel

1. the sdist of this checkout; from it, a wheel with the native kernel and one without, for every platform;
2. each in an empty environment: learn, save, load, and both kernels have the same bits;
3. the changelog's entry of this version gets its date (not with `--keep`).
"""

import argparse
import datetime
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SESSION = """
import hashlib
from feedrank import __version__
from feedrank.learners import build, dump, load, kernel

learner = build({"task": "multiclass"})
for _ in range(20):
    learner.learn({"text": "board meeting on monday"}, {"label": "work"})
    learner.learn({"text": "cheap pills on monday"}, {"label": "junk"})
assert load(dump(learner)).predict({"text": "cheap meeting pills"}).label == "junk"
print(__version__, kernel.NAME, hashlib.sha256(dump(learner)).hexdigest())
"""


def run(*command: str | Path, cwd: Path = ROOT, **environ: str) -> str:
    """The command's output; what fails ends the release with what it said."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(  # noqa: S603  (our own commands)
        command, cwd=cwd, env=clean | environ, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def version() -> str:
    """As the package has it."""
    text = (ROOT / "feedrank" / "__init__.py").read_text()
    return str(re.findall(r'^__version__ = "(.+)"$', text, flags=re.M)[0])


def build(out: Path, work: Path) -> list[Path]:
    """The sdist, and the two wheels made of it."""
    maker: tuple[str, ...] = (sys.executable, "-m", "build")
    if importlib.util.find_spec("setuptools"):
        maker += ("--no-isolation",)  # nothing has to be fetched
    run(*maker, "--sdist", "--outdir", out)
    (sdist,) = out.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(work, filter="data")
    (source,) = work.iterdir()
    run(*maker, "--wheel", "--outdir", out, source)
    run(*maker, "--wheel", "--outdir", out, source, FEEDRANK_NATIVE="0")
    return [sdist, *sorted(out.glob("*.whl"))]


def tried(artifact: Path, folder: Path) -> str:
    """What a session says in an empty environment that holds the artifact and what it needs."""
    venv.create(folder, with_pip=True)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    run(scripts / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", artifact)
    return run(scripts / "python", "-c", SESSION, cwd=folder).strip()


def dated(text: str, name: str, day: datetime.date) -> str:
    """The changelog, in which the entry of this version has its date."""
    entry = re.compile(rf"^## {re.escape(name)}(, not yet released|, \d{{4}}-\d\d-\d\d)?$", flags=re.M)
    if not entry.search(text):
        raise SystemExit(f"CHANGELOG.md has no entry `## {name}`")
    return entry.sub(f"## {name}, {day.isoformat()}", text, count=1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build a release and check it; nothing is uploaded.")
    parser.add_argument("--keep", action="store_true", help="leave the changelog as it is")
    parser.add_argument("--try", dest="here", action="store_true", help="try what is installed")
    parser.add_argument("--outdir", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    if options.here:
        said = run(sys.executable, "-c", SESSION, cwd=Path(tempfile.gettempdir())).split()
        if said[:2] != [version(), "native"]:
            raise SystemExit(f"installed is {' '.join(said)}, not {version()} with the native kernel")
        return
    name, out = version(), options.outdir.resolve()
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        (source := Path(folder) / "source").mkdir()
        artifacts = build(out, source)
        bits = set()
        for i, artifact in enumerate(artifacts):
            said = tried(artifact, Path(folder) / f"env-{i}")
            actual, kernel, digest = said.split()
            if actual != name:
                raise SystemExit(f"{artifact.name} is version {actual}, not {name}")
            bits.add(digest)
            print(f"{artifact.name}: works, kernel {kernel}")
        if len(bits) > 1:
            raise SystemExit("the kernels do not have the same bits")
    if not options.keep:
        changelog = ROOT / "CHANGELOG.md"
        changelog.write_text(dated(changelog.read_text(), name, datetime.datetime.now(datetime.UTC).date()))
    print(f"feedrank {name} is in {out}")


if __name__ == "__main__":
    main()
