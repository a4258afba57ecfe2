"""Ours and the peers on the same streams, each round predicted before it is learned: quality, and rounds per second.

    python benchmarks/peers.py --data DATA [--only mail|sets|lists] [--rounds 2000] [--seconds 30]

DATA holds enron/ (the raw ham mailboxes of the Enron-Spam corpus), multilabel/ (MULAN's ARFF and XML files) and letor/
(LETOR 4.0, from Microsoft Research). Peers that are not installed are left out with a line: pip install feedrank[bench].
Slow peers see the first rounds only; the table says how many, and ours beside them are counted on the same rounds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import peers_models as models
from data import enron, letor, multilabel
from report import Report, arguments, part, track

Play = Callable[[Any, Any], float]


def run(
    name: str, play: Play, rounds: Sequence[tuple[Any, Any]], seconds: float
) -> tuple[list[float], float]:
    """The losses of as many rounds as fit into `seconds`, and rounds per second of processor time."""
    losses: list[float] = []
    begin, spent = time.perf_counter(), time.process_time()
    for x, y in track(rounds, name):
        losses.append(play(x, y))
        if time.perf_counter() - begin > seconds:
            break
    return losses, len(losses) / (time.process_time() - spent)


def compare(
    report: Report,
    file: str,
    title: str,
    contenders: dict[str, Callable[[], Play]],
    rounds: Sequence[Any],
    seconds: float,
) -> None:
    """A table: the loss of each on the rounds it saw, ours (the first) on the same, and the ratio of the speeds.

    Beside it a plot of the losses so far.
    """
    rows: list[list[object]] = []
    at = np.unique(np.geomspace(min(20, len(rounds)), len(rounds), 40).astype(int))
    lines: dict[str, list[float]] = {}
    first: tuple[list[float], float] | None = None
    for name, make in contenders.items():
        try:
            play = make()
        except ModuleNotFoundError as missing:
            report.text(f"(left out: {name}; pip install {missing.name}, or feedrank[bench])\n")
            continue
        losses, speed = run(name, play, rounds, seconds)
        first = first or (losses, speed)
        seen = len(losses)
        lines[name] = [float(np.mean(losses[:n])) if n <= seen else np.nan for n in at]
        rows.append(
            [
                name,
                seen,
                float(np.mean(losses)),
                float(np.mean(first[0][:seen])),
                f"{speed:.0f}",
                first[1] / speed,
            ]
        )
    report.text(f"## {title}\n")
    head = [
        "contender",
        "rounds",
        "mean loss",
        "first row, same rounds",
        "rounds/s",
        "first row's speed over it",
    ]
    report.table(head, rows)
    report.plot(file, at.tolist(), lines, ("rounds", "mean loss so far"), dots=False)


def mail(report: Report, folder: Path, count: int, seconds: float) -> None:
    for user in ("williams-w3", "lokay-m", "beck-s", "kitchen-l"):
        if (folder / f"{user}.tar.gz").exists():
            stream = list(enron(folder, user))[:count]
            folders = sorted({name for _, name in stream})
            compare(
                report,
                user,
                f"Mail of {user}: {len(folders)} folders, 0-1 loss",
                models.classes(folders),
                stream,
                seconds,
            )


def sets(report: Report, folder: Path, count: int, seconds: float) -> None:
    for name in ("yeast", "scene-train", "enron", "bibtex"):
        if (folder / f"{name}.arff.gz").exists():
            rows = list(multilabel(folder, name, "scene" if name == "scene-train" else None))
            order = np.random.default_rng(0).permutation(len(rows))[:count]
            stream = [rows[i] for i in order]
            labels = sorted({label for _, relevant in stream for label in relevant})
            compare(
                report,
                f"sets-{name}",
                f"Label sets, {name}: {len(labels)} labels, Hamming loss (mean)",
                models.sets(labels),
                stream,
                seconds,
            )


def queries(folder: Path, name: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for number in range(1, 6):
        for query in letor(folder, f"{name}-S{number}"):
            if len(set(query.grades)) > 1:
                yield np.array(query.features), np.array(query.grades)


def lists(report: Report, folder: Path, count: int, seconds: float) -> None:
    for name in ("mq2008", "ohsumed"):
        if (folder / f"{name}-S1.txt.gz").exists():
            stream = list(queries(folder, name))[:count]
            title = f"Lists, {name}: {len(stream)} queries of more than one grade, 1 - NDCG at 10"
            compare(report, f"lists-{name}", title, models.lists(), stream, seconds)


def main() -> None:
    parser = arguments(__doc__, "peers", "enron", "multilabel", "letor")
    parser.add_argument("--only", choices=("mail", "sets", "lists"))
    parser.add_argument("--rounds", type=int, default=2000, help="of each stream")
    parser.add_argument("--seconds", type=float, default=30, help="at most, for one contender on one stream")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 10, 1.0
    report = Report("Ours and the peers on the same streams", options.out)
    for run_part, name in ((mail, "enron"), (sets, "multilabel"), (lists, "letor")):
        if options.only in (None, run_part.__name__):
            folder = part(options.data, name)
            if folder is not None:
                run_part(report, folder, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
