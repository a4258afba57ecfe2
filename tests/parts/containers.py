"""Containers from what we ship, by podman, on a base that Debian's packages give: no registry is asked.

The base has the names that our files ask for. It brings Python, a compiler, Redis and nginx of Debian, so that each image
is run by our own files: Dockerfile, Compose, the manifest. Nothing of it is seen outside its own folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
STORAGE = Path(os.environ.get("FEEDRANK_HARDEN", "/var/tmp/feedrank-harden"))
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
IMAGE = "localhost/feedrank:latest"
SUITE = "bookworm"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PACKAGES = (
    "python3",
    "python3-venv",
    "python3-dev",
    "gcc",
    "libc6-dev",
    "ca-certificates",
    "redis-server",
    "nginx-light",
)
# What docker-entrypoint.sh of the Redis image does where it need not drop root.
ENTRYPOINT = '#!/bin/sh\nexec "$@"\n'


def missing() -> str | None:
    """Why no container can run here, or None."""
    if os.name != "posix" or os.geteuid() != 0:
        return "containers are built and run as root"
    for program in ("podman", "debootstrap", "catatonit"):
        if not shutil.which(program) and not Path("/usr/libexec/podman", program).exists():
            return f"no {program}: `apt-get install podman runc catatonit debootstrap` to run what ships"
    return None


def names() -> list[str]:
    """The images that our files build upon."""
    text = (ROOT / "docker" / "Dockerfile").read_text()
    found = re.findall(r"^ARG \w*BASE=(\S+)", text, re.MULTILINE)
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    found += [service["image"] for service in compose["services"].values() if "build" not in service]
    return sorted(set(found))


class Engine:
    """podman with a storage of its own."""

    def __init__(self) -> None:
        STORAGE.mkdir(parents=True, exist_ok=True)
        self._conf = STORAGE / "containers.conf"
        # The limits that podman asks for by itself are more than root may have in a container.
        limits = [f"{name}={most}:{most}" for name, most in (("nofile", 4096), ("nproc", 4096))]
        runtime = "runc" if shutil.which("runc") else "crun"
        self._conf.write_text(
            f"[containers]\ndefault_ulimits = {json.dumps(limits)}\n"
            f'[engine]\nruntime = "{runtime}"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n'
        )
        self._command = ["podman", "--root", f"{STORAGE}/storage", "--runroot", f"{STORAGE}/run"]

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[str]:
        environ = {**os.environ, "CONTAINERS_CONF": str(self._conf)}
        return subprocess.Popen([*self._command, *arguments], text=True, env=environ, **options)  # type: ignore[call-overload,no-any-return]

    def run(self, *arguments: str, check: bool = True, text: str | None = None) -> str:
        """Its standard output; what it says beside fails the caller if it fails."""
        pipes = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "stdin": subprocess.PIPE if text else None,
        }
        process = self.start(*arguments, **pipes)
        out, errors = process.communicate(text)
        assert not check or process.returncode == 0, f"podman {' '.join(arguments)}\n{out}\n{errors}"
        return out

    def make_base(self) -> None:
        """The base under all names, made once."""
        present = self.run("images", "--format", "{{.Repository}}:{{.Tag}}").split()
        if all(f"localhost/{name}" in present for name in names()):
            return
        with tempfile.TemporaryDirectory(dir=STORAGE) as folder:
            command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr
            inside = Path(folder)
            shutil.copy(CERTIFICATES, inside / "etc/ssl/certs")  # what this machine trusts
            entrypoint = inside / "usr/bin/docker-entrypoint.sh"
            entrypoint.write_text(ENTRYPOINT)
            entrypoint.chmod(0o755)
            shutil.rmtree(inside / "var/cache/apt/archives", ignore_errors=True)
            archive = STORAGE / "base.tar"
            subprocess.run(["tar", "-C", folder, "-cf", archive, "."], check=True)
        changes = ['CMD ["nginx", "-g", "daemon off;"]', f"ENV PATH={PATH}"]
        words = [word for change in changes for word in ("--change", change)]
        self.run("import", *words, str(archive), "localhost/feedrank-base")
        archive.unlink()
        for name in names():
            self.run("tag", "localhost/feedrank-base", f"localhost/{name}")

    def build(self) -> None:
        """The image, from the Dockerfile as it is."""
        options = ["--network", "host", "--format", "docker", "--tag", IMAGE]
        self.run("build", *options, "--file", str(ROOT / "docker" / "Dockerfile"), str(ROOT))

    def address(self, container: str) -> str:
        form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return self.run("inspect", "--format", form, container).strip()

    @contextmanager
    def container(self, *arguments: str) -> Iterator[str]:
        """A running container, removed at the end; its id."""
        name = self.run("run", "--detach", *arguments).strip()
        try:
            yield name
        finally:
            self.run("rm", "--force", "--volumes", "--time", "0", name)
