"""Out of the box: our preset on real streams, beside Vowpal Wabbit's best setting in hindsight, River and scikit-learn.

    python benchmarks/streams.py --data DATA [--parts quality,lists,units,labels,peers] [--only NAME,...] [--cache FILE]

Every round is predicted before it is learned. The loss is 0-1 (binary, multiclass), grades (ordinal) or mean Hamming
(multilabel); on lists NDCG at 10. Streams without an order of their own are played in `--orders` random orders, and
the mean is taken. Vowpal Wabbit's figures are the best of all settings of stream_vw.py, chosen after the fact.
Sets of your own: DATA/streams/NAME.jsonl.gz, a first line {"name", "task", "order": "random" or "file", "labels": a list
or null}, then a line [truth, features] for each event.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import stream_data
import stream_players as players
from report import Report, arguments, track
from stream_data import LISTS, Features, Stream
from stream_vw import Cache

from feedrank.learners import ItemList, build
from feedrank.learners.losses.rankings import ndcg_loss

NOISE = 0.2


def play(stream: Stream, player: players.Player, what: str) -> tuple[float, float, float, float]:
    """Mean loss, expected calibration error and its floor, microseconds of processor time a round."""
    losses, sure = [], []
    begin = time.process_time()
    for x, y in track(stream.rounds, what):
        said, probabilities = player(x, y)
        losses.append(players.loss(stream, said, y))
        sure += probabilities
    spent = time.process_time() - begin
    return float(np.mean(losses)), *players.calibration(sure), 1e6 * spent / len(losses)


def ours(stream: Stream, orders: int, settings: dict[str, Any]) -> tuple[float, float, float, float]:
    """The same, the mean over the orders."""
    count = orders if stream.shuffled else 1
    runs = [
        play(order, players.ours(order, settings)[0], stream.name)
        for order in (stream.order(k) for k in range(count))
    ]
    loss, calibration, floor, time = np.mean(runs, axis=0).tolist()
    return loss, calibration, floor, time


def geometric(ratios: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(np.maximum(ratios, 1e-9)))))


def quality(report: Report, streams: Sequence[Stream], orders: int, cache: Cache) -> dict[str, float]:
    """The preset beside Vowpal Wabbit; gives the ratio of each stream."""
    rows: list[list[object]] = []
    ratios: dict[str, float] = {}
    for stream in streams:
        best, setting, default = cache.best(stream, orders)
        loss, calibration, floor, time = ours(stream, orders, {})
        ratios[stream.name] = loss / best
        row = [stream.name, stream.task, loss, best, default, loss / best, calibration, floor, f"{time:.0f}"]
        rows.append(row)
        print(*rows[-1], setting, flush=True)
    report.text("## The preset and Vowpal Wabbit\n")
    head = ["stream", "task", "preset", "VW best in hindsight", "VW default", "preset / VW best"]
    report.table([*head, "calibration error", "its floor", "us a round"], rows)
    for group in dict.fromkeys(stream.group for stream in streams):
        of = [ratios[stream.name] for stream in streams if stream.group == group]
        report.text(f"{group}: geometric mean {geometric(of):.3f}, worst {max(of):.3f} of {len(of)}\n")
    if len(ratios) > 2:
        outs = [geometric([r for name, r in ratios.items() if name != out]) for out in ratios]
        report.text(
            f"all: geometric mean {geometric(list(ratios.values())):.3f}; with any one stream left out "
            f"{min(outs):.3f} to {max(outs):.3f}\n"
        )
    return ratios


def peers(report: Report, streams: Sequence[Stream], rounds: int) -> None:
    """The best in hindsight of our single algorithms, of River and of scikit-learn, first order, first rounds."""
    rows: list[list[object]] = []
    for whole in streams:
        stream = whole.order(0).first(rounds)
        ours = {name: settings for name, settings in players.OURS.items() if players.spec(stream, settings)}
        single = {name: (lambda s=s: players.ours(stream, s)[0]) for name, s in ours.items()}  # noqa: B023
        try:
            others = [players.river(stream), players.sklearn(stream)]
        except ModuleNotFoundError as missing:
            report.text(f"(left out: pip install {missing.name}, or feedrank[bench])\n")
            others = [{}, {}]
        cells: list[object] = [play(stream, players.ours(stream, {})[0], stream.name)[0]]
        for makers, group in zip((single, *others), ("", "River ", "scikit-learn "), strict=True):
            losses = {name: play(stream, make(), f"{stream.name} {name}")[0] for name, make in makers.items()}
            best = min(losses, key=lambda name: losses[name]) if losses else ""
            cells.append(f"{losses[best]:.4g} ({best.removeprefix(group)})" if losses else "")
        rows.append([stream.name, *cells])
        print(*rows[-1], flush=True)
    report.text(f"## Single algorithms, River, scikit-learn: mean loss, first order, first {rounds} rounds\n")
    report.table(["stream", "preset", "single algorithms", "River", "scikit-learn"], rows)


def _scaled(stream: Stream, factor: float) -> Stream:
    """The most frequent feature of the first rounds, times a factor."""
    counts: dict[str, int] = {}
    for x, _ in stream.rounds[:200]:
        for name in x:
            counts[name] = counts.get(name, 0) + 1
    chosen = max(counts, key=lambda name: counts[name])

    def change(x: Features) -> Features:
        numbers = dict(x) if isinstance(x, dict) else dict.fromkeys(x, 1.0)
        return {name: value * factor if name == chosen else value for name, value in numbers.items()}

    return stream.changed(change)


def _constant(stream: Stream) -> Stream:
    return stream.changed(
        lambda x: {**(x if isinstance(x, dict) else dict.fromkeys(x, 1.0)), "constant": 1000.0}
    )


def _swapped(stream: Stream) -> Stream:
    """From the middle on every label stands for the next one."""
    after = dict(zip(stream.labels, stream.labels[1:] + stream.labels[:1], strict=True))
    middle = len(stream.rounds) // 2
    return stream.with_rounds(
        (x, y if i < middle else after[y] if isinstance(y, str) else [after[name] for name in y])
        for i, (x, y) in enumerate(stream.rounds)
    )


def _noisy(stream: Stream) -> Stream:
    """A fifth of the truths are any label."""
    rng = np.random.default_rng(0)
    flips = rng.random(len(stream.rounds)) < NOISE
    others = rng.integers(len(stream.labels), size=len(stream.rounds))
    return stream.with_rounds(
        (x, y if not flip else stream.labels[k] if isinstance(y, str) else [stream.labels[k]])
        for (x, y), flip, k in zip(stream.rounds, flips.tolist(), others.tolist(), strict=True)
    )


UNITS: dict[str, Callable[[Stream], Stream]] = {
    "one feature x 1000": lambda stream: _scaled(stream, 1000.0),
    "one feature x 0.001": lambda stream: _scaled(stream, 0.001),
    "a constant of 1000": _constant,
}
LABELS: dict[str, Callable[[Stream], Stream]] = {
    "labels swap half-way": _swapped,
    "20 % label noise": _noisy,
}


def units(report: Report, streams: Sequence[Stream], rounds: int, orders: int) -> None:
    """The preset on changed features: its loss over that on the plain stream, both the mean over the orders."""
    rows = []
    for whole in streams:
        chosen = [whole.order(k).first(rounds) for k in range(orders if whole.shuffled else 1)]
        plain = float(np.mean([ours(stream, 1, {})[0] for stream in chosen]))
        row: list[object] = [whole.name, plain]
        for change in UNITS.values():
            row.append(float(np.mean([ours(change(stream), 1, {})[0] for stream in chosen])) / plain)
        rows.append(row)
        print(*row, flush=True)
    report.text(f"## Units: first {rounds} rounds of each order, loss over the plain one\n")
    report.table(["stream", "plain", *UNITS], rows)


def labels(report: Report, streams: Sequence[Stream], rounds: int, cache: Cache) -> None:
    """The preset on changed labels, and Vowpal Wabbit's best setting beside it."""
    rows = []
    for whole in streams:
        stream = whole.order(0).first(rounds)
        row: list[object] = [stream.name]
        for name, change in LABELS.items():
            changed = change(stream)
            loss = play(changed, players.ours(changed, {})[0], f"{stream.name}, {name}")[0]
            best = cache.best(changed.named(f"{stream.name}, {name}, {rounds}"), 1)[0]
            row.append(f"{loss:.4g} (VW best {best:.4g})")
        rows.append(row)
        print(*row, flush=True)
    report.text(f"## Labels that change: first {rounds} rounds, the loss\n")
    report.table(["stream", *LABELS], rows)


def ranking(report: Report, folder: Path, orders: int) -> None:
    """Lists: NDCG at 10 of the preset and of our single algorithms."""
    specs: dict[str, dict[str, Any]] = {
        "preset": {},
        "listnet": {"algorithm": "listnet", "normalize": "list"},
        "slam": {"algorithm": "slam", "normalize": "list"},
    }
    rows = []
    for name in LISTS:
        if not (folder / f"{name}-S1.txt.gz").exists():
            continue
        lists = stream_data.lists(folder, name)
        row: list[object] = [name, len(lists)]
        for settings in specs.values():
            gains = []
            for k in range(orders):
                learner = build({"task": "subset-ranking", **settings})
                for i in np.random.default_rng(k).permutation(len(lists)):
                    X, y = lists[i]
                    items = ItemList.dense([str(j) for j in range(len(X))], X)
                    order = np.array([int(name) for name, _ in learner.predict(items).ranking])
                    gains.append(1.0 - ndcg_loss(order, y, 10))
                    learner.learn(items, {"relevance": y})
            row.append(float(np.mean(gains)))
        rows.append(row)
    report.text("## Lists: NDCG at 10, each list ranked before it is learned from\n")
    report.table(["set", "lists", *specs], rows)


def picture(path: Path, ratios: dict[str, float]) -> None:
    """A bar a stream: the preset's loss over that of Vowpal Wabbit's best setting."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "streams"
    from matplotlib import pyplot as plt

    names = sorted(ratios, key=lambda name: ratios[name])
    figure, axes = plt.subplots(figsize=(7.5, 4.6))
    axes.barh(names, [ratios[name] for name in names], color="#3b6ea5")
    axes.axvline(1.0, color="#b03a2e", linewidth=1.2)
    axes.set_xlabel("loss of a spec that names only its task / Vowpal Wabbit's best setting in hindsight")
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlim(0.0, 1.1)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = arguments(__doc__, "streams", "streams", "enron", "multilabel", "letor")
    parser.add_argument("--only", help="names of streams, by commas")
    parser.add_argument("--orders", type=int, default=3, help="random orders of a stream that has none")
    parser.add_argument(
        "--rounds", type=int, default=3000, help="of each stream, for units, labels and peers"
    )
    parser.add_argument("--cache", type=Path, help="keeps Vowpal Wabbit's figures for the next run")
    parser.add_argument(
        "--parts",
        default="quality,lists",
        help="quality, lists, units and labels (changed streams), peers (our single algorithms, River, scikit-learn)",
    )
    parser.add_argument("--picture", type=Path, help="write the ratios as a picture to this file (SVG)")
    options = parser.parse_args()
    if options.data is None or not options.data.is_dir():
        print("skipped: streams.py needs --data DATA with streams/, enron/, multilabel/ or letor/")
        return
    if options.quick:
        options.orders, options.rounds, options.parts = 1, 30, "quality,lists,units,labels,peers"
    report = Report("Out of the box on real streams", options.out)
    names = options.only.split(",") if options.only else None
    streams = [s for s in stream_data.read(options.data) if names is None or s.name in names]
    cache = Cache(options.cache)
    parts = options.parts.split(",")
    if "lists" in parts and (options.data / "letor").is_dir():
        ranking(report, options.data / "letor", options.orders)
    if "quality" in parts:
        ratios = quality(report, streams, options.orders, cache)
        if options.picture:
            picture(options.picture, ratios)
    plain = [stream for stream in streams if stream.group == "streams"]
    if "units" in parts:
        units(report, plain, options.rounds, options.orders)
    if "labels" in parts:
        labels(report, plain, options.rounds, cache)
    if "peers" in parts:
        peers(report, plain, options.rounds)


if __name__ == "__main__":
    main()
