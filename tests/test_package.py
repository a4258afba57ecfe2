"""The package as a user gets it: public names, what imports what, and a wheel in an empty environment."""

import functools
import importlib
import os
import shutil
import subprocess
import sys
import tarfile
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
        "ItemList",
        "OptionError",
        "Outcome",
        "Prediction",
        "SnapshotError",
        "SpecError",
        "TruthError",
        "FeatureVector",
        "build",
        "dump",
        "fingerprint",
        "load",
        "pieces",
        "reference",
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


FOLDERS = ("learners", "service", "clients")
NO_COMPILER = "no-such-compiler"


def checkout(target, linked):
    """A copy of what a build needs; without links, they are what a zip download or Windows makes of them."""
    ignore = shutil.ignore_patterns("__pycache__", "*.so", *FOLDERS)
    shutil.copytree(ROOT / "feedrank", target / "feedrank", ignore=ignore)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        if linked:
            (target / "feedrank" / name).symlink_to(f"../{name}")
        else:
            (target / "feedrank" / name).write_text(f"../{name}")
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, target)
    return target


def run(*command, cwd=None, **environ):
    """What a command prints; of this process' environment it has all but the path to this checkout."""
    environ = {**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, **environ}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory, quick_cc):
    """`built(linked)`: the sdist of a checkout, and the wheel made from it; made once."""

    @functools.cache
    def build(linked):
        folder = tmp_path_factory.mktemp("build")
        source = checkout(folder / "source", linked)
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", source, CC=quick_cc)
        (sdist,) = (folder / "dist").glob("feedrank-*.tar.gz")
        (wheel,) = (folder / "dist").glob("feedrank-*.whl")
        return sdist, wheel

    return build


def files_of(folder):
    """Every file of a folder, by the name it has when installed."""
    return {
        f"feedrank/{path.relative_to(ROOT).as_posix()}"
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".so", ".pyd")
    }


@pytest.mark.parametrize("linked", [True, False])
def test_sdist_and_wheel_hold_every_file_of_all_three_packages(built, linked):
    sdist, wheel = built(linked)
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(sdist) as archive:
        in_sdist = {f"feedrank/{name.partition('/')[2]}" for name in archive.getnames()}
    for folder in FOLDERS:
        assert len(files_of(folder)) > 10
        assert files_of(folder) <= in_wheel
        assert files_of(folder) <= in_sdist
    assert not any(name.startswith(("feedrank/tests", "feedrank/benchmarks")) for name in in_wheel)


EVERY_PACKAGE = (
    "import feedrank, feedrank.learners, feedrank.service.http.app, feedrank.clients.mail, feedrank.clients.search;"
    "print(feedrank.__file__)"
)


@pytest.mark.parametrize(("linked", "which"), [(False, 0), (True, 1)], ids=["sdist", "wheel"])
def test_what_was_built_installs_and_imports(built, linked, which, tmp_path):
    pip = (
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--no-deps",
        "--no-build-isolation",
    )
    run(*pip, "--target", tmp_path / "site", built(linked)[which], CC=NO_COMPILER)  # `built` had one
    here = {"cwd": tmp_path, "PYTHONPATH": str(tmp_path / "site")}
    assert str(tmp_path) in run(sys.executable, "-c", EVERY_PACKAGE, **here)
    assert "feedrank 0." in run(sys.executable, "-m", "feedrank.cli", "--version", **here)


@pytest.mark.parametrize("linked", [True, False])
def test_a_checkout_imports_with_and_without_links(linked, tmp_path):
    source = checkout(tmp_path / "source", linked)
    assert str(source) in run(sys.executable, "-c", EVERY_PACKAGE, cwd=tmp_path, PYTHONPATH=str(source))


@pytest.mark.parametrize("linked", [True, False])
def test_an_editable_install_follows_the_checkout(linked, tmp_path):
    source = checkout(tmp_path / "source", linked)
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    backend = f"import setuptools.build_meta as b; b.build_editable({str(wheels)!r})"
    run(sys.executable, "-c", backend, cwd=source, CC=NO_COMPILER)
    (wheel,) = wheels.glob("*.whl")
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", wheel)
    seen = "import feedrank, feedrank.cli, importlib.util as u; print(u.find_spec('feedrank.clients').origin)"
    assert str(source) in run(python, "-c", seen, cwd=tmp_path)
    assert (next((tmp_path / "env").rglob("*feedrank*.pth")).read_text().strip() == str(source)) == linked


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_native_kernel_is_built_where_a_compiler_is_and_only_there(tmp_path):
    source = checkout(tmp_path / "source", linked=False)
    kernel = source / "learners" / "kernel"
    (kernel / "c" / "python").mkdir(parents=True, exist_ok=True)
    (kernel / "__init__.py").touch()
    (kernel / "c" / "python" / "native.c").write_text(
        "#include <Python.h>\n"
        'static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", NULL, -1, NULL};\n'
        "PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&module); }\n"
    )
    for compiler, binaries in (("cc", 1), (NO_COMPILER, 0)):
        out = tmp_path / compiler
        build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, source)
        run(*build, CC=compiler)
        (wheel,) = out.glob("*.whl")
        names = [name for name in zipfile.ZipFile(wheel).namelist() if "_native" in name]
        assert names == ["feedrank/learners/kernel/_native.abi3.so"] * binaries


@pytest.mark.timeout(1200)
def test_the_wheel_works_in_an_empty_environment(built, tmp_path):
    """The base install: numpy and scipy, no more. The command line says what to install for the rest."""
    venv.create(tmp_path / "env", with_pip=False)
    scripts = tmp_path / "env" / "bin"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        scripts / "python",
        "install",
        "--quiet",
        "--no-compile",
        built(True)[1],
    )
    session = (
        "from feedrank.learners import build, dump, load;"
        "learner = build({'task': 'multiclass'});"
        "learner.learn({'features': ['cheap', 'pills']}, {'label': 'junk'});"
        "learner.learn({'features': ['board', 'meeting']}, {'label': 'work'});"
        "print(load(dump(learner)).predict({'features': ['meeting']}).label)"
    )
    assert run(scripts / "python", "-c", session, cwd=tmp_path).strip() == "work"
    # The service's files are in the wheel, and its absence is explained in one line.
    refused = subprocess.run(
        [scripts / "feedrank", "serve"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert refused.returncode != 0
    assert "feedrank[service]" in refused.stderr
    assert "Traceback" not in refused.stderr
