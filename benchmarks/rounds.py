"""Rounds per second on a synthetic mail stream, beside the bare product, Vowpal Wabbit and River, in one run.

    python benchmarks/rounds.py [--messages 4000]
    python benchmarks/rounds.py --table [--quick] [--only ROW]
    FEEDRANK_KERNEL=numpy python benchmarks/rounds.py

20,000 words (Zipf), 101 folders, about 120 words a message. Each contender predicts and learns every message. Times are the
best of interleaved blocks, by processor time, so that a noisy neighbour slows all of them or none; ratios are what to read.
The kernel is the native one where it was built; FEEDRANK_KERNEL=numpy takes the other. Below, the preset on dense numbers:
every event names all features, and least squares on their curves takes part. `--table` is every task and
algorithm as a multiple of its floor (`round_shapes.py`), with the multiple to reach.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import round_shapes
from report import Report, arguments, track

from feedrank.learners import build, kernel

WORDS, FOLDERS, ACTIVE = 20_000, 101, 120
Message = tuple[list[str], str]


def stream(
    count: int, seed: int = 0, words: int = WORDS, folders: int = FOLDERS, common: int = 70, own: int = 70
) -> list[Message]:
    """Messages of so many common words, and so many out of 300 of the folder's topic; each counts once."""
    rng = np.random.default_rng(seed)
    zipf = 1 / np.arange(1, words + 1)
    zipf /= zipf.sum()
    names = [f"w{i}" for i in range(words)]
    topics = [rng.permutation(words)[:300] for _ in range(folders)]
    messages = []
    for _ in range(count):
        folder = int(rng.integers(folders))
        drawn = np.concatenate([rng.choice(words, common, p=zipf), rng.choice(topics[folder], own)])
        messages.append(([names[i] for i in np.unique(drawn)], f"folder{folder}"))
    return messages


def blocks(run: Callable[[Message], object], messages: list[Message], size: int) -> list[float]:
    """Seconds a round, for each block of the stream."""
    seconds = []
    for start in range(0, len(messages) - size + 1, size):
        begin = time.process_time()
        for message in messages[start : start + size]:
            run(message)
        seconds.append((time.process_time() - begin) / size)
    return seconds


def ours(spec: dict[str, Any], predict: bool) -> Callable[[Message], object]:
    learner = build({"task": "multiclass", **spec})

    def round_(message: Message) -> object:
        if predict:
            learner.predict({"features": message[0]}, top=10)
        return learner.learn({"features": message[0]}, {"label": message[1]})

    return round_


def bare() -> Callable[[Message], object]:
    """The floor: one product over the active rows, nothing else."""
    rng = np.random.default_rng(1)
    W = rng.standard_normal((WORDS, FOLDERS))
    v = np.ones(ACTIVE)
    rows = iter([rng.permutation(WORDS)[:ACTIVE] for _ in range(50)] * 10_000)
    return lambda message: v @ W.take(next(rows), 0)


def vowpal_wabbit(options: str) -> Callable[[Message], object]:
    from vowpalwabbit import Workspace

    vw = Workspace(f"--oaa {FOLDERS} {options} --quiet")

    def round_(message: Message) -> object:
        text = " ".join(message[0])
        vw.predict(f"| {text}")
        return vw.learn(f"{int(message[1][6:]) + 1} | {text}")

    return round_


def river() -> Callable[[Message], object]:
    from river import linear_model, multiclass

    model = multiclass.OneVsRestClassifier(linear_model.Perceptron())

    def round_(message: Message) -> object:
        x = dict.fromkeys(message[0], 1)
        model.predict_one(x)
        return model.learn_one(x, message[1])

    return round_


def dense(features: int, labels: int, count: int = 600, size: int = 100) -> float:
    """Seconds a round of the preset on so many numbers; a curve of all of them says the label. Best of blocks."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(count, features))
    y = (np.abs(X) @ rng.normal(size=(features, labels))).argmax(axis=1)
    learner = build({"task": "multiclass"})
    best = float("inf")
    for start in range(0, count, size):
        block = [
            ({"features": dict(zip(map(str, range(features)), row, strict=True))}, {"label": str(label)})
            for row, label in zip(
                X[start : start + size].tolist(), y[start : start + size].tolist(), strict=True
            )
        ]
        begin = time.process_time()
        for instance, truth in block:
            learner.predict(instance)
            learner.learn(instance, truth)
        best = min(best, (time.process_time() - begin) / size)
    return best


# What a round is made of: a name, and the functions whose time it is. Inclusive, and none within another.
PARTS = {
    "names to rows, weighting, length": ["kernel.table:Table.look"],
    "scaling": ["scaling:scale"],
    "scores": ["kernel.theta:Weights.scores"],
    "of naive Bayes, beside them": ["kernel.welford:log"],
    "softmax, calibration": ["algorithms.auto.blend:softmax", "algorithms.auto.calibration:calibrated"],
    "the best labels": ["kernel:best"],
    "trust of the pool": ["algorithms.auto.pool:pool_round"],
    "direction": ["algorithms.dual_ascent.certified:ascend"],
    "features join": ["kernel.table:Table.join"],
    "features counted": ["kernel.table:Table.count", "scaling:tally"],
    "step": ["kernel.theta:Weights.step"],
    "naive Bayes learns": ["kernel:recount"],
}


def parts(spec: dict[str, Any], messages: list[Message]) -> dict[str, float]:
    """Microseconds of each part in the median round, and of what is left; what the clock itself takes is in both."""
    spent = dict.fromkeys(PARTS, 0.0)
    kept: list[tuple[Any, str, Any]] = []

    def timed(part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            begin = time.perf_counter()
            try:
                return call(*arguments, **named)
            finally:
                spent[part] += time.perf_counter() - begin

        return run

    for part, places in PARTS.items():
        for place in places:
            module, _, path = place.partition(":")
            *outer, name = path.split(".")
            owner = import_module(f"feedrank.learners.{module}")
            for attribute in outer:
                owner = getattr(owner, attribute)
            kept.append((owner, name, getattr(owner, name)))
            setattr(owner, name, timed(part, getattr(owner, name)))
    run = ours(spec, True)
    rounds = []
    for at, message in enumerate(messages):
        spent.update(dict.fromkeys(PARTS, 0.0))
        begin = time.perf_counter()
        run(message)
        if at >= 1_000:
            rounds.append([*spent.values(), time.perf_counter() - begin])
    for owner, name, call in kept:
        setattr(owner, name, call)
    *each, whole = (1e6 * np.median(np.array(rounds), axis=0)).tolist()
    return dict(zip(PARTS, each, strict=True)) | {"all else": whole - sum(each), "the whole round": whole}


def main() -> None:
    parser = arguments(__doc__, "rounds")
    parser.add_argument("--messages", type=int, default=4_000)
    parser.add_argument("--parts", action="store_true", help="what a round on the NumPy kernel is made of")
    parser.add_argument(
        "--table", action="store_true", help="every shape of round, as multiples of its floor"
    )
    parser.add_argument("--only", default="", help="only the rows of --table with this in their name")
    options = parser.parse_args()
    report = Report("Rounds on a synthetic mail stream", options.out)
    if options.table:
        report.text(f"Kernel: {kernel.NAME}. Load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
        warm = 600 if options.quick else 1_000
        round_shapes.table(report, stream(warm + 400), warm, options.quick, options.only)
        return
    count = 100 if options.quick else options.messages
    messages = stream(count + 1_000)
    warm, rest = messages[:1_000], messages[1_000:]
    predtron = {"algorithm": "predtron"}
    ascent = {"algorithm": "dual-ascent", "update": "III", "weighting": "idf", "normalize": "unit"}
    if options.parts:
        one, other = parts(ascent, messages), parts({}, messages)
        rows = [[name, f"{one[name]:.1f}", f"{other[name]:.1f}"] for name in one]
        report.table(["us of the median round", "dual ascent III", "preset"], rows)
        return
    floor, both = "bare product `v @ W.take(rows, 0)`", "feedrank dual ascent III, idf, unit length"
    report.text(
        f"Kernel: {kernel.NAME}. Load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n"
    )
    contenders: dict[str, tuple[Callable[[], Callable[[Message], object]], int]] = {
        floor: (bare, 100),
        "feedrank predtron, learn": (lambda: ours(predtron, False), 100),
        "feedrank predtron, predict and learn": (lambda: ours(predtron, True), 100),
        both: (lambda: ours(ascent, True), 100),
        "feedrank dual ascent III as label ranking": (
            lambda: ours({"task": "label-ranking", **ascent}, True),
            100,
        ),
        "feedrank preset (auto), predict and learn": (lambda: ours({}, True), 100),
        "feedrank preset (auto), loss: weighted": (
            lambda: ours({"loss": "weighted", "weights": {"folder1": 2.0}}, True),
            100,
        ),
        "Vowpal Wabbit --oaa, predict and learn": (lambda: vowpal_wabbit(""), 100),
        "Vowpal Wabbit --oaa -b 22, predict and learn": (lambda: vowpal_wabbit("-b 22"), 100),
        "Vowpal Wabbit --oaa -b 22 --scores, predict and learn": (
            lambda: vowpal_wabbit("-b 22 --scores"),
            100,
        ),
        "River one-vs-rest perceptron, predict and learn": (river, 5),
    }
    ready = {}
    for name, (make, size) in contenders.items():
        try:
            run = make()
        except ModuleNotFoundError as missing:
            report.text(f"(left out: {name}; pip install {missing.name}, or feedrank[bench])\n")
            continue
        for message in warm[: 10 * size]:
            run(message)
        ready[name] = (run, size)
    best = dict.fromkeys(ready, float("inf"))
    # Interleaved: every contender sees every stretch of the machine's mood.
    for start in track(range(0, count - 99, 100), "blocks"):
        for name, (run, size) in ready.items():
            best[name] = min([best[name], *blocks(run, rest[start : start + size], size)])
    report.table(
        [
            f"{count} messages, {WORDS} words, {FOLDERS} folders",
            "us a round",
            "over the bare product",
            "over dual ascent III",
        ],
        [
            [name, f"{seconds * 1e6:.1f}", f"{seconds / best[floor]:.2f}", f"{seconds / best[both]:.2f}"]
            for name, seconds in best.items()
        ],
    )
    shapes = [(8, 2), (14, 2), (19, 7), (30, 2), (50, 10)]
    report.table(
        [
            "preset on dense numbers",
            *(f"{features} features, {labels} labels" for features, labels in shapes),
        ],
        [["us a round, predict and learn", *(f"{1e6 * dense(*shape):.1f}" for shape in shapes)]],
    )


if __name__ == "__main__":
    main()
