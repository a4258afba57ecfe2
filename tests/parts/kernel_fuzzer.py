"""Hostile inputs to the kernel itself, for scripts/harden_kernel: `python tests/parts/kernel_fuzzer.py --inputs 2000`.

json       bodies, right, changed and cut: what the native reader reads, orjson reads to the same values
snapshots  right ones, changed and signed anew: refused, or a learner that predicts and learns
rounds     events of every task by chance: the digest of all states is printed, to be compared with that of the other kernel
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from pathlib import Path
from typing import Any

import orjson

PARTS = Path(__file__).resolve().parent
sys.path[:0] = [str(PARTS), str(PARTS.parent / "learners")]

from fuzz_inputs import changed, mangled, request_of, snapshot_input, snapshots  # noqa: E402
from task_events import run, stream  # noqa: E402
from test_laws import SPECS  # noqa: E402

from feedrank import learners  # noqa: E402
from feedrank.learners import InputError, SnapshotError, kernel  # noqa: E402

SAMPLE: dict[str, Any] = {"features": ["x"]}


def plain(value: Any) -> Any:
    """What the kernel read, with the features as Python objects."""
    if isinstance(value, kernel.Features):
        values = value.values
        return list(value.names) if values is None else dict(zip(value.names, values.tolist(), strict=True))
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, list) else value


def expected(value: Any, items: bool = False) -> Any:
    """What orjson read, with the features as the kernel has them."""
    if isinstance(value, list):
        return [expected(entry, items) for entry in value]
    if not isinstance(value, dict):
        return value
    return {
        key: named(member)
        if key == "features" and not items and isinstance(member, list | dict)
        else expected(member, items or key == "items")
        for key, member in value.items()
    }


def named(features: Any) -> Any:
    if isinstance(features, dict):
        return {name: float(value) for name, value in features.items()}
    if features and isinstance(features[0], str):
        return list(dict.fromkeys(features))
    return {str(i): float(value) for i, value in enumerate(features)}


def read_json(rng: random.Random) -> None:
    _, _, value = request_of(rng)
    for _ in range(rng.randrange(3)):
        value = changed(value, rng)
    try:
        data = orjson.dumps(value)
    except TypeError:  # numbers beyond 64 bits
        data = json.dumps(value).encode("utf-8", "surrogatepass")
    if rng.random() < 0.5:
        data = mangled(data, rng)
    try:
        kernel.check_body(data)
    except InputError:
        return
    read = kernel.loads(data)
    if read is not None:
        assert plain(read) == expected(orjson.loads(data)), data


def read_snapshot(rng: random.Random, made: dict[str, bytes]) -> None:
    try:
        learner = learners.load(snapshot_input(rng, made).body)
    except SnapshotError:
        return
    try:
        json.dumps(learner.predict(SAMPLE).to_json(), allow_nan=False)
        learner.learn(SAMPLE, {"label": "a"})
    except InputError:
        return


def learn(number: int) -> bytes:
    """The fingerprint behind some rounds."""
    spec = SPECS[number % len(SPECS)]
    learner = learners.build(spec)
    run(learner, stream(spec, number, 6))
    return bytes.fromhex(learners.fingerprint(learner))


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--inputs", type=int, default=2_000)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    made, digest = snapshots(), hashlib.sha256()
    for number in range(chosen.inputs):
        rng = random.Random(f"{chosen.seed}:{number}")
        if number % 10 == 0:
            digest.update(learn(number // 10 + 1_000 * chosen.seed))
        elif kernel.NAME == "native":
            read_snapshot(rng, made) if number % 10 == 1 else read_json(rng)
    print(digest.hexdigest())


if __name__ == "__main__":
    main()
