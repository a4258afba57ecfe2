"""What the benchmarks of the running service share: its process, its load, and messages to send."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
WORDS, FOLDERS, LENGTH = 20_000, 101, 120
SPEC = {"task": "multiclass", "algorithm": "predtron"}


class Served(NamedTuple):
    """A server that answers: its address, its process, and the seconds that its start took."""

    url: str
    pid: int
    seconds: float


@contextlib.contextmanager
def running(*command: str) -> Iterator[Served]:
    """A Python program that serves, from the line in which it names its address until the end."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    try:
        line = next((line for line in process.stdout or () if "http://" in line), "")
        if not line:
            raise RuntimeError(f"{' '.join(command)} did not start")
        yield Served(
            "http://" + line.split("http://", 1)[1].split()[0], process.pid, time.perf_counter() - begun
        )
    finally:
        process.terminate()
        process.wait(60)
        if process.stdout:
            process.stdout.close()


def serving(store: str) -> contextlib.AbstractContextManager[Served]:
    """`feedrank serve` on a store."""
    return running("-m", "feedrank.cli", "serve", "--port", "0", "--store", store)


def load(url: str, file: Path, seconds: float, connections: int) -> dict[str, float]:
    """One run of the generator, in a process of its own."""
    command = [sys.executable, HERE / "http_load.py", url, file, str(seconds), str(connections)]
    figures: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return figures


# What wrk runs: the bodies of the file in turn, and the figures of `http_load.py` as JSON.
WRK = """
local bodies, turn = {}, 0
for line in io.lines(%s) do bodies[#bodies + 1] = line end
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
function request() turn = turn + 1; return wrk.format(nil, nil, nil, bodies[(turn - 1) %% #bodies + 1]) end
function done(summary, latency)
  local wrong = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
  io.write(string.format('{"count":%%d,"rate":%%f,"p50":%%f,"p99":%%f,"wrong":%%d}\\n', summary.requests,
    summary.requests / summary.duration * 1e6, latency:percentile(50) / 1e6, latency:percentile(99) / 1e6, wrong))
end
"""


def load_by_wrk(url: str, file: Path, seconds: float, connections: int) -> dict[str, float]:
    """The same run by `wrk` (Debian's package of that name), a generator of others."""
    script = file.with_suffix(".lua")
    script.write_text(WRK % json.dumps(str(file)))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "-s", script, url]
    out = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    figures: dict[str, float] = json.loads(out.splitlines()[-1])
    if figures.pop("wrong"):
        raise RuntimeError(f"wrk was refused: {out}")
    return figures


def spent(process: int) -> float:
    """Seconds of processor time that a process has used, by Linux's clock of it (CPUCLOCK_SCHED)."""
    return time.clock_gettime(~process << 3 | 2)


def message(chance: random.Random) -> dict[str, float]:
    """About 120 words, the frequent ones more often."""
    return {f"word-{int(WORDS * chance.random() ** 2)}": 1.0 for _ in range(LENGTH)}


def folder(chance: random.Random) -> str:
    return f"folder-{chance.randrange(FOLDERS)}"


def asked(chance: random.Random, remember: bool = False) -> dict[str, object]:
    """The body of a prediction."""
    return {"features": message(chance), "top": 10, "remember": remember}


def taught(chance: random.Random) -> dict[str, object]:
    """The body of a feedback."""
    return {"features": message(chance), "label": folder(chance)}


def write(file: Path, bodies: list[dict[str, object]]) -> Path:
    """One JSON body a line."""
    file.write_text("\n".join(json.dumps(body) for body in bodies))
    return file
