"""Hostile requests against a service in a process of its own: none may give a 5xx, a NaN or a dead process.

    python benchmarks/fuzz.py --inputs 100000 --seed 1
    python benchmarks/fuzz.py --seed 1 --keys --redis   the same on Redis, with keys
    python benchmarks/fuzz.py --seed 1 --only 4711      one input again, and what it gives

Changed bodies, heads, snapshots and streams (tests/parts/fuzz_inputs.py). Input number i of a seed is always the same, and
what is found is printed with both. The exit status is 1 if anything was found.
"""

from __future__ import annotations

import contextlib
import io
import signal
import sys
import tempfile
import time
from pathlib import Path

from report import Report, arguments, track

from feedrank.service.http.keyring import add_key

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "parts"))
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
    options = parser.parse_args()
    if options.quick:
        options.inputs = 200
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


if __name__ == "__main__":
    main()
