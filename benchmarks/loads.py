"""Long logs, large learners, and lists: what starting, folding, saving and reading them takes.

    python benchmarks/loads.py [--only fold|start|large|single|lists] [--quick] [--against FOLDER]

fold    events/s of `feedrank replay` on a log of 20,000 events, by its processor time
start   seconds until a service that was killed with kill -9 is ready again and tells of a learner with 100,000 events
large   1 million features and 100 labels: seconds of dump and load, and the memory of the process that loaded
single  the same with `"precision": "float32"`
lists   a list of 100 items with 46 features, predicted and learned: as objects, and as columns and rows

`--against` names a checkout of another version, which does the same in turns with this one.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import httpx
from report import Report, arguments, track
from served import HERE, SPEC, taught

ROOT = HERE.parent
LABELS = 100
TURNS, FOLDS = 3, 9  # the best of so many is taken; folds are short
COMPILED = tempfile.TemporaryDirectory(prefix="feedrank-compiled-")


def python(code: Path, *command: str, **options: Any) -> subprocess.Popen[str]:
    """A Python that imports feedrank from this folder, compiled at its first use, as an installed package is."""
    environment = {**os.environ, "PYTHONPATH": str(code), "PYTHONPYCACHEPREFIX": COMPILED.name}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, text=True, env=environment, cwd=code, **options
    )


def spent(code: Path, *command: str) -> tuple[float, str]:
    """Processor seconds of a command, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = python(code, *command)
    text, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, text


def serve(code: Path, store: str) -> tuple[subprocess.Popen[str], str, float]:
    """`feedrank serve`: the process, its address, and the seconds until it was ready."""
    begun = time.perf_counter()
    process = python(code, "-m", "feedrank.cli", "serve", "--port", "0", "--store", store)
    assert process.stdout is not None
    line = next(line for line in process.stdout if "http://" in line)
    return process, "http://" + line.split("http://", 1)[1].split()[0], time.perf_counter() - begun


def filled(code: Path, folder: Path, events: int) -> str:
    """A store with one learner of so many events, whose service was killed."""
    store = f"sqlite:{folder / f'{events}.db'}"
    process, url, _ = serve(code, store)
    chance = random.Random(7)
    with httpx.Client(base_url=url, timeout=600, trust_env=False) as client:
        client.put("/v1/learners/mail", json=SPEC).raise_for_status()
        for _ in track(range(events // 500), "events"):
            batch = {"events": [taught(chance) for _ in range(500)]}
            client.post("/v1/learners/mail/feedback", json=batch).raise_for_status()
    process.send_signal(signal.SIGKILL)
    process.wait()
    return store


def fold(code: Path, folder: Path, events: int, turns: int) -> list[float]:
    """Events a second, best of some; what an empty replay takes is taken off."""
    store, nothing = filled(code, folder, events), filled(code, folder, 500)
    command = ("-m", "feedrank.cli", "replay", "mail", "--store")
    turns = FOLDS if turns == TURNS else turns
    empty = min(spent(code, *command, nothing)[0] for _ in range(turns))
    return [(events - 500) / (min(spent(code, *command, store)[0] for _ in range(turns)) - empty)]


def start(code: Path, folder: Path, events: int, turns: int) -> list[float]:
    """Seconds until ready, until the learner's version was in a reply, and the processor time of all that."""
    store, times = filled(code, folder, events), []
    client = httpx.Client(trust_env=False, timeout=600)  # made beforehand: it reads certificates
    for _ in range(turns):
        begun = time.perf_counter()
        process, url, ready = serve(code, store)
        version = client.get(f"{url}/v1/learners/mail").json()["version"]
        used = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        processor = sum(map(int, used)) / os.sysconf("SC_CLK_TCK")
        times.append((ready, time.perf_counter() - begun, processor))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if version != events:
            raise RuntimeError(f"{version} events of {events}")
    return [min(each) for each in zip(*times, strict=True)]


LARGE = """
import os, sys, time, resource
from feedrank.learners import build, dump, load
features, labels, file, precision = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
if file == "make":
    spec = {"task": "multiclass", "algorithm": "predtron", "labels": [f"l{i}" for i in range(labels)]}
    learner = build(spec | ({"precision": precision[1]} if len(precision) > 1 else {}))
    for start in range(0, features, 1000):
        words = [f"word-{i}" for i in range(start, start + 1000)]
        learner.learn({"features": words}, {"label": f"l{start // 1000 % labels}"})
    begun = time.process_time(); data = dump(learner); print(time.process_time() - begun)
    open(sys.argv[4], "wb").write(data)
else:
    data = open(file, "rb").read()
    begun = time.process_time(); learner = load(data); print(time.process_time() - begun)
    del data
    pages = int(open("/proc/self/statm").read().split()[1])
    print(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def large(code: Path, folder: Path, features: int, turns: int, *precision: str) -> list[float]:
    """Processor seconds of dump and load, megabytes of the process with the learner, and the most it had."""
    file = str(folder / "large")
    dumped = float(spent(code, "-c", LARGE, str(features), str(LABELS), "make", file, *precision)[1])
    loaded = [
        tuple(map(float, spent(code, "-c", LARGE, str(features), str(LABELS), file)[1].split()))
        for _ in range(turns)
    ]
    return [dumped, *(min(one[i] for one in loaded) for i in range(3))]


def single(code: Path, folder: Path, features: int, turns: int) -> list[float]:
    """`large`, with weights of float32."""
    return large(code, folder, features, turns, "float32")


LISTS = """
import json, random, time
from feedrank.learners import build
chance = random.Random(3)
ids, names = [f"d{i}" for i in range(100)], [f"feature-{j}" for j in range(46)]
made = []
for _ in range(40):
    rows = [[chance.random() for _ in names] for _ in ids]
    objects = [{"id": id, "features": dict(zip(names, row))} for id, row in zip(ids, rows)]
    made.append(({"items": objects}, {"items": {"ids": ids, "columns": names, "rows": rows}}))
learners = [build({"task": "subset-ranking", "algorithm": "listnet"}) for _ in range(2)]
best = [9.0, 9.0]
for turn in range(12):
    for side in range(2):
        begun = time.process_time()
        for pair in made:
            learners[side].predict(pair[side])
        best[side] = min(best[side], (time.process_time() - begun) / len(made))
print(*best)
"""


def lists(code: Path, folder: Path, size: int, turns: int) -> list[float]:
    """Microseconds of a prediction on objects, on columns and rows, and their ratio."""
    objects, columns = map(float, spent(code, "-c", LISTS)[1].split())
    return [1e6 * objects, 1e6 * columns, columns / objects]


PARTS = {
    "fold": (fold, 20_000, 3_000, ["events/s"]),
    "start": (start, 100_000, 2_000, ["ready, s", "learner replies, s", "processor, s"]),
    "large": (large, 1_000_000, 20_000, ["dump, s", "load, s", "MB with the learner", "MB at most"]),
    "single": (single, 1_000_000, 20_000, ["dump, s", "load, s", "MB with the learner", "MB at most"]),
    "lists": (lists, 0, 0, ["objects, us", "columns and rows, us", "ratio"]),
}


def main() -> None:
    parser = arguments(__doc__, "loads")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--against", type=Path, help="a checkout of another version")
    options = parser.parse_args()
    report = Report("Long logs, large learners, lists", options.out)
    report.text(f"Load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
    sides = {"this version": ROOT}
    if options.against is not None:
        sides[f"against {json.dumps(options.against.name)}"] = options.against.resolve()
    for name, (part, size, quick, columns) in PARTS.items():
        if options.only not in (None, name):
            continue
        if name in ("single", "lists"):
            sides = {"this version": ROOT}  # float32, columns and rows are new
        rows: list[list[object]] = []
        for side, code in sides.items():
            with tempfile.TemporaryDirectory() as folder:
                figures = part(
                    code, Path(folder), quick if options.quick else size, 1 if options.quick else TURNS
                )
            rows.append([side, *(f"{figure:.4g}" for figure in figures)])
        report.table([f"{name}, {quick if options.quick else size:,}", *columns], rows)


if __name__ == "__main__":
    main()
