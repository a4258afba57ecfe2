"""Hostile requests against a service in a process of its own: none may give a 5xx, a NaN or a dead process.

    python benchmarks/fuzz.py --inputs 100000 --seed 1
    python benchmarks/fuzz.py --seed 1 --keys --redis   the same on Redis, with keys
    python benchmarks/fuzz.py --seed 1 --only 4711      one input again, and what it gives
    python benchmarks/fuzz.py --full --inputs 1000000   predictions with bodies up to the limit of 8 MiB, by a key that
                                                        may predict, beside a neighbour who sends small ones

With --full the process must stay within its budget of memory (--memory), and 503 with `Retry-After` is a right reply.

Changed bodies, heads, snapshots and streams (tests/parts/fuzz_inputs.py). Input number i of a seed is always the same, and
what is found is printed with both. The exit status is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from report import Report, arguments, track

from feedrank.service.http.keyring import add_key

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "parts"))
import full_bodies
from full_bodies import Neighbour, full_input, memory_of
from fuzz_inputs import input_of
from fuzzer import Fuzzer
from kill_rounds import Service
from redis_server import RedisServer

MOST = 20  # findings that are printed
FRESH = 2_000  # inputs after which the learners are made anew: what is sent shall be tried, not long logs


def main() -> None:
    parser = arguments(__doc__, "fuzz")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="number of the one input to send")
    parser.add_argument("--keys", action="store_true", help="the service asks for keys, and gets one")
    parser.add_argument("--redis", action="store_true", help="on Redis, not SQLite")
    parser.add_argument("--full", action="store_true", help="bodies up to the limit, by a key with `predict`")
    parser.add_argument("--minutes", type=float, default=0, help="with --full: end after so many")
    parser.add_argument("--memory", type=int, default=1024, help="with --full: the budget, in MiB")
    options = parser.parse_args()
    if options.quick:
        options.inputs = 200
    if options.full:
        full(options)
        return
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ending:
        store, settings, key = f"sqlite:{folder}/fuzz.db", {}, ""
        if options.redis:
            redis = RedisServer(Path(folder), "--appendfsync", "no")
            ending.callback(redis.kill)
            store = redis.url
        if options.keys:
            key = add_key(f"{folder}/keys", ["admin"])
            settings["FEEDRANK_KEYS_FILE"] = f"{folder}/keys"
        service = Service(store, FEEDRANK_LOG_LEVEL="error", FEEDRANK_MAX_BODY="256k", **settings)
        fuzzer = Fuzzer(service.url, key)
        begun = time.monotonic()
        try:
            fuzzer.prepare()
            if options.only is not None:
                print(input_of(options.seed, options.only, fuzzer.made).wire()[:2_000])
            numbers = range(options.inputs) if options.only is None else [options.only]
            for number in track(numbers, "inputs"):
                if number % FRESH == FRESH - 1:
                    fuzzer.prepare()
                fuzzer.send(options.seed, number)
                if len(fuzzer.found) >= MOST or service.process.poll() is not None:
                    break
            if service.process.poll() is None:
                fuzzer.finish()
            else:
                fuzzer.found.append(f"the process ended with {service.process.returncode}")
        finally:
            fuzzer.close()
            with contextlib.redirect_stdout(io.StringIO()) as log:
                service.stop(signal.SIGTERM)
        report = Report("Hostile requests", options.out)
        minutes = (time.monotonic() - begun) / 60
        where = f"{'Redis' if options.redis else 'SQLite'}, with{'' if options.keys else 'out'} keys"
        report.text(
            f"{where}. Seed {options.seed}: {sum(fuzzer.sent.values())} inputs in {minutes:.0f} minutes.\n"
        )
        report.table(["inputs", "sent"], sorted(fuzzer.sent.items()))
        report.table(["status", "replies"], sorted(fuzzer.statuses.items()))
        report.text(f"Found: {len(fuzzer.found)}.\n")
        for line in fuzzer.found:
            report.text(f"- {line}")
        if fuzzer.found:
            errors = [line for line in log.getvalue().splitlines() if '"level":"error"' in line]
            sys.exit("\n".join([*errors[-MOST:], f"{len(fuzzer.found)} found"]))


LIMIT = 8 * 2**20
ALONE = 20.0  # seconds for which the neighbour is alone
PATIENCE = 0.1  # seconds for which nobody's predictions may keep a neighbour waiting


def full(options: argparse.Namespace) -> None:
    """Bodies up to the limit: what they take, and whom they keep waiting."""
    with tempfile.TemporaryDirectory() as folder:
        keys = f"{folder}/keys"
        admin, key, other = (add_key(keys, [scope]) for scope in ("admin", "predict", "predict"))
        service = Service(
            f"sqlite:{folder}/fuzz.db",
            FEEDRANK_LOG_LEVEL="error",
            FEEDRANK_KEYS_FILE=keys,
            FEEDRANK_MEMORY=f"{options.memory}m",
        )
        shapes: Counter[str] = Counter()
        begun = time.monotonic()
        with service.client() as client:
            client.headers["Authorization"] = f"Bearer {admin}"
            for name, spec in {**full_bodies.SPECS, "neighbour": {"task": "multiclass"}}.items():
                client.put(f"learners/{name}", json=spec).raise_for_status()
        fuzzer = Fuzzer(service.url, key, busy=True)
        at_rest = memory_of(service.process.pid, "VmHWM")
        neighbour = Neighbour(fuzzer.host, fuzzer.port, other)
        time.sleep(0.5 if options.quick else ALONE)
        alone = neighbour.end()
        neighbour = Neighbour(fuzzer.host, fuzzer.port, other)
        try:
            for number in track(range(options.inputs), "inputs"):
                shape, one = full_input(options.seed, number, LIMIT)
                shapes[shape] += 1
                fuzzer.sent[f"{len(one.body).bit_length():2d}"] += 1
                fuzzer.judge(one, f"{options.seed}:{number} {shape}")
                if len(fuzzer.found) >= MOST or service.process.poll() is not None:
                    break
                if options.minutes and time.monotonic() - begun > 60 * options.minutes:
                    break
        finally:
            fuzzer.close()
            waits = neighbour.end()
            alive = service.process.poll() is None
            peak = memory_of(service.process.pid, "VmHWM") if alive else 0
            with contextlib.redirect_stdout(io.StringIO()):
                service.stop(signal.SIGTERM)
    if not alive:
        fuzzer.found.append(f"the process ended with {service.process.returncode}")
    if peak > options.memory * 2**20:
        fuzzer.found.append(f"{peak / 2**20:.0f} MiB resident, of {options.memory}")
    report = Report("Bodies up to the limit", options.out)
    minutes = (time.monotonic() - begun) / 60
    report.text(f"Seed {options.seed}: {sum(shapes.values())} inputs in {minutes:.0f} minutes.\n")
    report.text(
        f"Memory: {at_rest / 2**20:.0f} MiB at rest, at most {peak / 2**20:.0f} of {options.memory}.\n"
    )
    rows = []
    for title, times in (("alone", alone), ("beside the bodies", waits)):
        if times:
            parts = (0.5, 0.99, 0.999)
            at = [f"{1e3 * times[int(part * (len(times) - 1))]:.1f}" for part in parts]
            late = sum(wait > PATIENCE for wait in times)
            rows.append((title, len(times), *at, f"{1e3 * times[-1]:.0f}", late))
    columns = ["the neighbour, ms", "predictions", "median", "99 %", "99.9 %", "slowest", "above 100"]
    report.table(columns, rows)
    report.table(["bytes below 2 to the", "sent"], sorted(fuzzer.sent.items()))
    report.table(["shape", "sent"], sorted(shapes.items()))
    report.table(["status", "replies"], sorted(fuzzer.statuses.items()))
    report.text(f"Found: {len(fuzzer.found)}.\n")
    for line in fuzzer.found:
        report.text(f"- {line}")
    if fuzzer.found:
        sys.exit(f"{len(fuzzer.found)} found")


if __name__ == "__main__":
    main()
