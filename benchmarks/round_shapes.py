"""Rounds of every shape as multiples of a floor, all in one interleaved run: what `rounds.py --table` prints.

A contender is a callable that makes the next of its rounds. All take turns, a few rounds each, and the best turn by
processor time counts, so that a noisy neighbour slows all of them or none. A row is the quotient of two contenders.
"""

from __future__ import annotations

import base64
import itertools
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from report import Report, track

from feedrank.learners import ItemList, build, kernel, reading

Turn = Callable[[], object]
# The row; what is measured; over what; the multiple to reach.
Row = tuple[str, str, str, float]

ROWS: tuple[Row, ...] = (
    ("multiclass preset / predtron, words", "preset", "predtron", 5),
    ("multiclass preset / Vowpal Wabbit --scores", "preset", "vw --scores", 1),
    ("label-ranking preset / multiclass preset", "label-ranking preset", "preset", 2),
    ("dual ascent II with entropy / predtron", "entropy II", "predtron", 5),
    ("dual ascent III with entropy / predtron", "entropy III", "predtron", 8),
    ("predtron on label rankings / predtron", "predtron, label-ranking", "predtron", 5),
    ("predtron, norm group / predtron", "group", "predtron", 6),
    ("predtron, norm l1 / predtron", "l1", "predtron", 10),
    ("slam on label rankings / predtron", "slam, label-ranking", "predtron", 3),
    ("listnet on label rankings / predtron", "listnet, label-ranking", "predtron", 3),
    ("minimax on label rankings / predtron", "minimax, label-ranking", "predtron", 3),
    ("quadratic surrogate / predtron", "quadratic", "predtron", 30),
    ("lists preset / NumPy's product and sort", "lists preset", "product and sort", 100),
    ("lists listnet / NumPy's product and sort", "lists listnet", "product and sort", 15),
    ("choice of 50 / Vowpal Wabbit's squarecb", "choice", "squarecb", 1),
    ("1,536 numbers as JSON: reading / orjson", "numbers", "orjson", 1),
    ("text / its own words as features", "text", "text's words", 1.3),
    ("preset with 10,000 labels, 2,400 learned / dual ascent", "many preset", "many ascent", 3),
)


class Mail:
    """The stream of `rounds.py` for one learner, endlessly."""

    def __init__(self, messages: list[Any], warm: int, spec: dict[str, Any]) -> None:
        self.learner = build({"task": "multiclass", **spec})
        self.messages = itertools.cycle(messages[warm:])
        for message in messages[:warm]:
            self.round(message)

    def round(self, message: Any) -> None:
        self.learner.predict({"features": message[0]}, top=10)
        self.learner.learn({"features": message[0]}, {"label": message[1]})

    def __call__(self) -> None:
        self.round(next(self.messages))


class Texts(Mail):
    """The same words as raw text."""

    def round(self, message: Any) -> None:
        text = " ".join(message[0])
        self.learner.predict({"text": text}, top=10)
        self.learner.learn({"text": text}, {"label": message[1]})


def words_of(messages: list[Any]) -> list[Any]:
    """The features that `Texts` makes of them."""
    spec, made = build({"task": "multiclass"}).spec, []
    for names, folder in messages:
        parsed = reading.instance(spec, {"text": " ".join(names)})
        assert not isinstance(parsed, ItemList)
        values = np.ones(len(parsed.names)) if parsed.values is None else parsed.values
        made.append((dict(zip(parsed.names, values.tolist(), strict=True)), folder))
    return made


class Lists:
    """Lists of 100 x 136 with five grades, as columns, to rank and to learn from."""

    def __init__(self, spec: dict[str, Any], items: int = 100, features: int = 136, warm: int = 30) -> None:
        rng = np.random.default_rng(1)
        w = rng.normal(size=features)
        ids, names = [f"d{i}" for i in range(items)], [f"f{j}" for j in range(features)]
        made = []
        for _ in range(20):
            X = rng.random((items, features)).astype("<f4")
            ranks = (X @ w + rng.normal(size=items)).argsort().argsort()
            rows = base64.b64encode(X.tobytes()).decode()
            grades = dict(zip(ids, (ranks * 5 // items).tolist(), strict=True))
            made.append(({"items": {"ids": ids, "columns": names, "rows": rows}}, {"relevance": grades}))
        self.learner = build({"task": "subset-ranking", **spec})
        self.lists = itertools.cycle(made)
        for _ in range(warm):
            self()

    def __call__(self) -> None:
        instance, truth = next(self.lists)
        self.learner.predict(instance, top=10)
        self.learner.learn(instance, truth)


def product_and_sort(items: int = 100, features: int = 136) -> Turn:
    """The floor of lists: one product and one sort in NumPy."""
    rng = np.random.default_rng(2)
    X, w = rng.random((items, features)), rng.normal(size=features)
    return lambda: np.argsort(-(X @ w), kind="stable")


def _choices(items: int, features: int, context: int) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    rng = np.random.default_rng(3)
    shown = [(rng.random((items, features)), rng.random(context), float(rng.random())) for _ in range(50)]
    return itertools.cycle(shown)


def choice(items: int = 50, features: int = 10, context: int = 21) -> Turn:
    """A choice of 50 items, and its reward."""
    learner, shown = build({"task": "choice"}), _choices(items, features, context)
    ids, names = [f"i{i}" for i in range(items)], [f"f{j}" for j in range(features)]
    about = [f"c{j}" for j in range(context)]

    def turn() -> None:
        X, c, reward = next(shown)
        items = [
            {"id": name, "features": dict(zip(names, row, strict=True))}
            for name, row in zip(ids, X.tolist(), strict=True)
        ]
        instance = {"items": items, "features": dict(zip(about, c.tolist(), strict=True))}
        prediction = learner.predict(instance, chance=reward)  # type: ignore[call-arg]
        learner.learn(instance, {"reward": reward}, served=prediction.served())

    for _ in range(30):
        turn()
    return turn


def squarecb(items: int = 50, features: int = 10, context: int = 21) -> Turn:
    """The same by Vowpal Wabbit, from its own text."""
    from vowpalwabbit import Workspace

    model = Workspace("--cb_explore_adf --squarecb -q ca --quiet -b 20", enable_logging=False)
    shown = _choices(items, features, context)

    def turn() -> None:
        X, c, reward = next(shown)
        shared = "shared |c " + " ".join(f"c{j}:{v:g}" for j, v in enumerate(c.tolist()))
        lines = ["|a " + " ".join(f"f{j}:{v:g}" for j, v in enumerate(row)) for row in X.tolist()]
        p = np.array(model.predict([shared, *lines]))
        chosen = int(min(len(p) - 1, np.searchsorted(p.cumsum(), reward)))
        lines[chosen] = f"{chosen}:{-reward}:{p[chosen]} {lines[chosen]}"
        model.learn([shared, *lines])

    for _ in range(30):
        turn()
    return turn


def many(spec: dict[str, Any], rounds: int = 2_400, labels: int = 10_000, words: int = 5_000) -> Mail:
    """So many labels that the spec names, of which the first rounds have met 2,400."""
    rng = np.random.default_rng(4)
    names = [f"w{i}" for i in range(words)]
    zipf = 1 / np.arange(1.0, words + 1)
    zipf /= zipf.sum()
    messages = [
        ([names[i] for i in np.unique(rng.choice(words, 30, p=zipf))], f"label{n % rounds}")
        for n in range(rounds + 200)
    ]
    return Mail(messages, rounds, {"labels": [f"label{n}" for n in range(labels)], **spec})


def numbers(count: int = 1_536) -> tuple[Turn, Turn]:
    """A JSON array of so many numbers, read by the kernel as a vector's list and by orjson."""
    import orjson

    rng = np.random.default_rng(5)
    line = json.dumps({"features": rng.normal(size=count).astype("f4").astype("f8").tolist()}).encode()

    def ours() -> object:
        loaded = kernel.loads(line)
        return json.loads(line) if loaded is None else loaded

    return ours, lambda: orjson.loads(line)


def vowpal(options: str, folders: int, messages: list[Any]) -> Turn:
    """Predict and learn by Vowpal Wabbit."""
    from vowpalwabbit import Workspace

    vw, cycle = Workspace(f"--oaa {folders} {options} --quiet"), itertools.cycle(messages)

    def turn() -> None:
        words, folder = next(cycle)
        text = " ".join(words)
        vw.predict(f"| {text}")
        vw.learn(f"{int(folder[6:]) + 1} | {text}")

    for _ in range(len(messages) // 2):
        turn()
    return turn


def contenders(messages: list[Any], warm: int, quick: bool) -> dict[str, tuple[Callable[[], Turn], int]]:
    """How each is made, and how many of its rounds are one turn."""

    def mail(rounds: int, warmed: int = warm, **spec: Any) -> tuple[Callable[[], Turn], int]:
        return lambda: Mail(messages, warmed, spec), rounds

    ranking = {"task": "label-ranking"}
    entropy = {"algorithm": "dual-ascent", "complexity": "entropy"}
    ascent = {"algorithm": "dual-ascent", "weighting": "idf", "normalize": "unit"}
    both = numbers()
    found = 400 if quick else 2_400
    early = min(warm, 300)
    worded = messages[: early + 200]
    return {
        "predtron": mail(100, algorithm="predtron"),
        "preset": mail(60),
        "vw --scores": (lambda: vowpal("-b 22 --scores", 101, messages), 40),
        "label-ranking preset": mail(20, **ranking),
        "entropy II": mail(40, **entropy, update="II"),
        "entropy III": mail(40, **entropy, update="III"),
        "predtron, label-ranking": mail(40, algorithm="predtron", **ranking),
        "group": mail(20, algorithm="predtron", norm="group"),
        "l1": mail(5, 200, algorithm="predtron", norm="l1"),
        "slam, label-ranking": mail(40, algorithm="slam", **ranking),
        "listnet, label-ranking": mail(40, algorithm="listnet", **ranking),
        "minimax, label-ranking": mail(40, algorithm="minimax-perceptron", **ranking),
        "quadratic": mail(5, 300, algorithm="quadratic-surrogate"),
        "product and sort": (product_and_sort, 200),
        "lists preset": (lambda: Lists({}), 10),
        "lists listnet": (lambda: Lists({"algorithm": "listnet"}), 20),
        "choice": (choice, 10),
        "squarecb": (squarecb, 10),
        "numbers": (lambda: both[0], 50),
        "orjson": (lambda: both[1], 50),
        "text": (lambda: Texts(worded, early, {}), 40),
        "text's words": (lambda: Mail(words_of(worded), early, {}), 40),
        "many preset": (lambda: many({}, found), 20),
        "many ascent": (lambda: many(ascent, found), 20),
    }


def young(labels: int, rounds: int = 200) -> tuple[float, float]:
    """Seconds of the first 20 rounds of a preset, each, and of the last 20; the least of three learners."""
    rng = np.random.default_rng(6)
    names = [f"label{n}" for n in range(labels)]
    first, last = [], []
    for _ in range(3):
        learner = build({"task": "multiclass", "labels": names})
        spent = []
        for n in range(rounds):
            words = [f"w{i}" for i in np.unique((rng.pareto(0.5, 12) * 3).astype(int) % 5_000)]
            begin = time.process_time()
            learner.predict({"features": words}, top=10)
            learner.learn({"features": words}, {"label": names[n % min(labels, 20)]})
            spent.append(time.process_time() - begin)
        first.append(sum(spent[:20]) / 20)
        last.append(sorted(spent[-50:])[25])
    return min(first), min(last)


def measure(
    messages: list[Any], warm: int, turns: int, quick: bool, only: str = ""
) -> tuple[dict[str, float], dict[str, float]]:
    """The best seconds a round of every contender, and the bytes that those with many labels report."""
    made: dict[str, tuple[Turn, int]] = {}
    sizes: dict[str, float] = {}
    needed = {name for row in ROWS if only in row[0] for name in row[1:3]}
    for name, (make, rounds) in track(
        [item for item in contenders(messages, warm, quick).items() if item[0] in needed], "learners"
    ):
        try:
            made[name] = make(), rounds
        except ModuleNotFoundError:
            continue
        if name.startswith("many"):
            sizes[name] = float(made[name][0].learner.nbytes())  # type: ignore[attr-defined]
    best = dict.fromkeys(made, float("inf"))
    for _ in track(range(turns), "turns"):
        for name, (turn, rounds) in made.items():
            begin = time.process_time()
            for _ in range(rounds):
                turn()
            best[name] = min(best[name], (time.process_time() - begin) / rounds)
    return best, sizes


def table(report: Report, messages: list[Any], warm: int, quick: bool, only: str = "") -> None:
    """Every row of the issue: microseconds, the multiple, and what it should be at most."""
    best, sizes = measure(messages, warm, 5 if quick else 15, quick, only)
    rows = [
        [
            name,
            f"{best[one] * 1e6:.1f}",
            f"{best[other] * 1e6:.1f}",
            f"{best[one] / best[other]:.2f}",
            f"{aim:g}",
        ]
        for name, one, other, aim in ROWS
        if one in best and other in best
    ]
    if only in "first 20 events":
        for labels in (100, 10_000):
            first, later = young(labels)
            rows.append(
                [
                    f"first 20 events of a preset / later, {labels} labels",
                    f"{first * 1e6:.1f}",
                    f"{later * 1e6:.1f}",
                    f"{first / later:.2f}",
                    "10",
                ]
            )
    report.table(["round", "us", "over us", "multiple", "to reach"], rows)
    if sizes:
        each = ", ".join(f"{name[5:]} {size / 1e6:.0f} MB" for name, size in sizes.items())
        report.text(
            f"Memory of the learners of 10,000 labels: {each} (to reach: 100 MB for the preset, 60 for dual ascent)."
        )
