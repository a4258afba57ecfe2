"""What pyproject.toml cannot say: which folder is which package, and the kernel that is compiled where a compiler is.

    feedrank            feedrank/
    feedrank.learners   learners/
    feedrank.service    service/
    feedrank.clients    clients/

The folders are named here, so that neither a build nor an editable install depends on the links in feedrank/: a zip
download and Windows have none. Where the links are, an editable install goes through them: type checkers and editors
follow a path, not an import hook.
"""

import os
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
FOLDERS = {
    "feedrank": "feedrank",
    **{f"feedrank.{name}": name for name in ("learners", "service", "clients")},
}
LINKED = all((ROOT / "feedrank" / name).is_dir() for name in FOLDERS.values() if name != "feedrank")
KERNEL = ROOT / "learners" / "kernel" / "c"  # core/: C alone, each file by itself; python/native.c: the edge
CODE = {".py", ".pyc", ".so", ".pyd"}


def contents(package: str, folder: Path) -> dict[str, list[str]]:
    """The package and those inside it, each with its files that are not code: pages, scripts for Redis, py.typed."""
    data: list[str] = []
    inner: dict[str, list[str]] = {}
    pending = [folder]
    while pending:
        for path in sorted(pending.pop().iterdir()):
            if path.is_symlink() or path.name == "__pycache__":
                continue
            if (path / "__init__.py").exists():
                inner |= contents(f"{package}.{path.name}", path)
            elif path.is_dir():
                pending.append(path)
            elif path.suffix and path.suffix not in CODE:  # a link that became a text file has no suffix
                data.append(path.relative_to(folder).as_posix())
    return {package: data, **inner}


def native() -> list[Extension]:
    """The native kernel. Without a compiler the build goes on, and the NumPy kernel gives the same bits.

    FEEDRANK_NATIVE=0 leaves it out: a wheel for every platform.
    """
    sources = [KERNEL / "python" / "native.c", *sorted((KERNEL / "core").glob("*.c"))]
    if not sources[0].exists() or os.environ.get("FEEDRANK_NATIVE") == "0":
        return []
    return [
        Extension(
            "feedrank.learners.kernel._native",
            [path.relative_to(ROOT).as_posix() for path in sources],
            depends=[path.relative_to(ROOT).as_posix() for path in sorted(KERNEL.glob("*/*.h"))],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            py_limited_api=True,
            optional=True,
            # Equal bits on every CPU: no fused multiply-add.
            extra_compile_args=["-O3", "-ffp-contract=off"],
        )
    ]


class FreshBuild(build_py):
    """Modules that were renamed or removed since the last build in this folder must not come back in a wheel."""

    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


DATA = {name: data for top, folder in FOLDERS.items() for name, data in contents(top, ROOT / folder).items()}

setup(
    packages=list(DATA),
    package_dir={"": "."} if LINKED and "editable_wheel" in sys.argv else FOLDERS,
    package_data=DATA,
    include_package_data=False,  # what is listed above, and no folder guessed to be a package
    ext_modules=native(),
    cmdclass={"build_py": FreshBuild},
    # One binary for this version of Python and every later one: the kernel keeps to the stable ABI.
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if native() else {},
)
