"""Vectors: what reading and scoring 1,536 numbers takes, and what the preset makes of vectors and words together.

    python benchmarks/vectors.py

The vectors are clusters: one centre a label, and noise; the words name the label in 40 of 100 texts. With
--embeddings, also every `NAME_x`, `NAME_y`, `NAME_t` (vectors, labels, texts) of a file of yours.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from report import Report, arguments, track

from feedrank.learners import build, kernel, reading

WIDTH, LABELS, ROUNDS, REPEATS = 1_536, 20, 15, 20
OLD = ["dual-ascent", "least-squares", "naive-bayes", "adagrad", "recent-errors", "trees", "entropy"]
WAYS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "words": ({}, ("text",)),
    "class means": ({"experts": ["class-means"]}, ("vector",)),
    "ridge": ({"experts": ["vector-ridge"]}, ("vector",)),
    "preset without the two": ({"experts": OLD}, ("vector",)),
    "preset": ({}, ("vector",)),
    "preset, with words": ({}, ("vector", "text")),
}
Events = list[tuple[dict[str, Any], str]]


def clusters(count: int, labels: int, width: int) -> Events:
    """Events of a mixture of Gaussians."""
    rng = np.random.default_rng(0)
    centres, events = rng.normal(size=(labels, width)), []
    for _ in range(count):
        k, other = int(rng.integers(labels)), int(rng.integers(labels))
        said = k if rng.random() < 0.4 else other
        vector = centres[k] + rng.normal(size=width) * 3.5
        events.append(({"vector": vector, "text": f"topic{said} word{rng.integers(200)}"}, str(k)))
    return events


def stored(path: Path | None) -> dict[str, Events]:
    """What a model made of texts."""
    if path is None:
        return {}
    data = np.load(path)
    return {
        name[:-2]: [
            ({"vector": vector, "text": str(text)}, str(label))
            for vector, text, label in zip(
                data[name], data[name[:-2] + "_t"], data[name[:-2] + "_y"], strict=True
            )
        ]
        for name in data.files
        if name.endswith("_x")
    }


def lost(spec: dict[str, Any], parts: Sequence[str], events: Events) -> tuple[float, float]:
    """The share of mistakes, and microseconds of processor time an event."""
    learner, mistakes, start = build({"task": "multiclass", **spec}), 0, time.process_time()
    for instance, label in events:
        mistakes += learner.learn({part: instance[part] for part in parts}, {"label": label}).mistake
    return mistakes / len(events), 1e6 * (time.process_time() - start) / len(events)


def speeds() -> dict[str, float]:
    """Microseconds of each, the best of some interleaved rounds."""
    rng = np.random.default_rng(0)
    learner = build({"task": "multiclass", "algorithm": "predtron"})
    for n in range(3 * LABELS):
        learner.learn({"vector": rng.normal(size=WIDTH)}, {"label": str(n % LABELS)})
    vectors = rng.normal(size=(2, WIDTH)).astype("<f4")
    lists = [json.dumps({"vector": vector.astype(np.float64).tolist()}).encode() for vector in vectors]
    packed = [
        json.dumps({"vector": base64.b64encode(vector.tobytes()).decode()}).encode() for vector in vectors
    ]
    W, x = rng.normal(size=(WIDTH, LABELS)), vectors[0].astype(np.float64)

    def reply(body: bytes) -> object:
        parsed = reading.instance(learner.spec, kernel.loads(body))
        rounds: Any = learner._fused
        return learner.predict(parsed) if rounds is None else rounds.predict(parsed, -1, learner.labels.names)

    cases: dict[str, Callable[[], object]] = {
        "bare product, 1,536 x 20": lambda: kernel.times(x, W),
        "the same by BLAS": lambda: x @ W,
        "list: orjson": lambda: orjson.loads(lists[0]),
        "list: read": lambda: reading.instance(
            learner.spec, kernel.loads(lists[0]) or orjson.loads(lists[0])
        ),
    }
    if kernel.NAME == "native":
        # Two bodies in turn, because the last instance is not looked up again.
        cases["two of base64: read, scored, ranked"] = lambda: [reply(body) for body in packed]
    best = dict.fromkeys(cases, float("inf"))
    for _ in track(range(ROUNDS), "rounds"):
        for name, case in cases.items():
            start = time.process_time()
            for _ in range(REPEATS):
                case()
            best[name] = min(best[name], 1e6 * (time.process_time() - start) / REPEATS)
    if "two of base64: read, scored, ranked" in best:
        best["base64: read, scored, ranked"] = best.pop("two of base64: read, scored, ranked") / 2
    return best


def main() -> None:
    """Times, then mistakes."""
    parser = arguments(__doc__, "vectors")
    parser.add_argument("--embeddings", type=Path, help="an .npz file of vectors, labels and texts")
    given = parser.parse_args()
    report = Report("Vectors", given.out)
    report.table(
        ["1,536 numbers", "microseconds"], [[name, f"{each:.1f}"] for name, each in speeds().items()]
    )
    rows: list[list[object]] = []
    sets = {
        "clusters of 384 numbers, 20 labels": clusters(1_500, 20, 384),
        "clusters of 1,536 numbers, 20 labels": clusters(500, 20, WIDTH),
        **stored(given.embeddings),
    }
    for name, events in track(list(sets.items()), "sets"):
        played = [lost(spec, parts, events) for spec, parts in WAYS.values()]
        rows.append([name, len(events), *(f"{share:.4f}" for share, _ in played), f"{played[-1][1]:.0f}"])
    report.table(["events", "number", *WAYS, "microseconds an event of the last"], rows)


if __name__ == "__main__":
    main()
