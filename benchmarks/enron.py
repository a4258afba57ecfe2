"""Label ranking on the folders of Enron users, in time order: Table 1 of the dual ascent paper, and ours.

    python benchmarks/enron.py --data DATA [--user beck-s ...]

DATA/enron holds USER.tar.gz (messages as USER/FOLDER/NUMBER; the raw ham mailboxes of the Enron-Spam corpus, Metsis et al.
2006); a user without a file is left out. So is Vowpal Wabbit where it is not installed.
"""

from __future__ import annotations

import os
import time
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from data import enron
from peers_models import vw_classes
from report import Report, arguments, part, track

from feedrank.learners import build
from feedrank.learners.algorithms.dual_ascent.interior import interior_point
from feedrank.learners.algorithms.dual_ascent.responses import Additive, Logistic
from feedrank.learners.algorithms.dual_ascent.updates import update_III

Stream = list[tuple[list[str], str]]

UPDATES = ("I", "II", "III")
# Percent of mistakes, Table 1: squared norm I II III, entropy I II III.
PAPER = {
    "beck-s": (58.5, 55.2, 51.9, 54.0, 50.2, 47.1),
    "farmer-d": (29.5, 23.3, 22.7, 27.6, 22.6, 22.0),
    "kaminski-v": (50.2, 44.5, 41.9, 46.7, 42.9, 40.0),
    "kitchen-l": (48.2, 41.9, 40.4, 41.9, 38.3, 36.0),
    "lokay-m": (24.9, 19.1, 18.4, 24.0, 18.7, 18.2),
    "sanders-r": (31.7, 28.3, 27.2, 28.3, 24.2, 23.4),
    "williams-w3": (5.0, 4.5, 4.4, 4.2, 3.4, 3.1),
}
VOWPAL_WABBIT = ("", "-l 2", "--loss_function hinge", "--loss_function hinge -l 2", "--coin")
SCALED = {"weighting": "idf", "normalize": "unit"}
SETTINGS: dict[str, dict[str, Any]] = {
    "squared norm": {},
    "entropy": {"complexity": "entropy"},
    "squared norm, idf, unit": SCALED,
    "entropy, idf, unit": {**SCALED, "complexity": "entropy"},
}


def folders(stream: Stream) -> list[str]:
    return sorted({folder for _, folder in stream})


def run(stream: Stream, spec: dict[str, Any]) -> np.ndarray:
    """Which rounds were mistakes; the labels are known from the start, as in the paper."""
    learner = build({"task": "multiclass", "labels": folders(stream), **spec})
    return np.array(
        [learner.learn({"features": words}, {"label": folder}).mistake for words, folder in stream]
    )


def percent(mistakes: np.ndarray) -> str:
    return f"{100 * mistakes.mean():.1f}"


def ours(stream: Stream, setting: dict[str, Any]) -> dict[str, np.ndarray]:
    """The three updates with the default C and gamma."""
    return {u: run(stream, {"algorithm": "dual-ascent", "update": u, **setting}) for u in UPDATES}


def vowpal_wabbit(stream: Stream) -> str:
    """The best of several settings of --oaa in hindsight, on the same words."""
    labels = folders(stream)
    results = []
    for setting in VOWPAL_WABBIT:
        try:
            play = vw_classes(f"--oaa {len(labels)} {setting}", labels)
        except ModuleNotFoundError:
            return "not installed"
        results.append(sum(play(words, folder) for words, folder in stream))
    return f"{100 * min(results) / len(stream):.1f}"


def iterations(stream: Stream, setting: dict[str, Any]) -> tuple[float, int, float]:
    """Mean and largest number of interior point iterations, and the largest gap, over the rounds of update III.

    The problem of a round is made of what `predict` says: the scores, and x, whose values are 0 and 1.
    """
    labels = folders(stream)
    learner = build(
        {"task": "multiclass", "algorithm": "dual-ascent", "update": "III", "labels": labels, **setting}
    )
    C, gamma = learner.spec["C"], learner.spec["gamma"]
    counts, gaps = [], []
    for words, folder in stream:
        scores = dict(learner.predict({"features": words}).ranking)
        t = np.array([scores[label] for label in labels])
        relevant = np.array([label == folder for label in labels])
        entropic = learner.spec["complexity"] == "entropy"
        response = Logistic(t) if entropic else Additive(t, float(len(words)))
        if update_III(response, relevant, C, gamma) is not None:
            solution = interior_point(response, relevant, C, gamma)
            counts.append(solution.iterations)
            gaps.append(solution.gap)
        learner.learn({"features": words}, {"label": folder})
    return float(np.mean(counts)), max(counts), max(gaps)


def table(report: Report, streams: dict[str, Stream]) -> None:
    head = [
        "user",
        "messages",
        "paper, squared",
        "paper, entropy",
        *SETTINGS,
        "preset",
        "us per round",
        "best VW `--oaa`",
    ]
    rows: list[list[object]] = []
    for user, stream in track(list(streams.items()), "users"):
        paper = [f"{figure:.1f}" for figure in PAPER.get(user, ())]
        results = {name: ours(stream, setting) for name, setting in SETTINGS.items()}
        begin = time.process_time()
        preset = run(stream, {})
        cost = 1e6 * (time.process_time() - begin) / len(stream)
        cells = [" ".join(map(percent, each.values())) for each in results.values()]
        squared, entropy = " ".join(paper[:3]), " ".join(paper[3:])
        rows.append(
            [
                user,
                len(stream),
                squared,
                entropy,
                *cells,
                percent(preset),
                f"{cost:.0f}",
                vowpal_wabbit(stream),
            ]
        )
        at = np.unique(np.linspace(min(50, len(stream)), len(stream), 40).astype(int))
        lines = {
            f"update {u}": (100 * mistakes.cumsum()[at - 1] / at).tolist()
            for u, mistakes in results["squared norm"].items()
        }
        lines["preset"] = (100 * preset.cumsum()[at - 1] / at).tolist()
        report.plot(user, at.tolist(), lines, ("messages", "mistakes so far, %"), dots=False)
    report.text("Mistakes, %: updates I II III.\n")
    report.table(head, rows)


def main() -> None:
    parser = arguments(__doc__, "enron", "enron")
    parser.add_argument("--user", action="append", help="only these users (default: all of the paper's)")
    options = parser.parse_args()
    folder = part(options.data, "enron")
    if folder is None:
        return
    users = [user for user in options.user or PAPER if (folder / f"{user}.tar.gz").exists()]
    report = Report("Dual ascent on Enron users: Table 1", options.out)
    streams = {user: list(enron(folder, user)) for user in track(users, "reading")}
    table(report, streams)
    report.text("Interior point iterations of update III: mean, most, largest gap (relative).\n")
    rows = []
    for user, stream in track(list(streams.items()), "interior point"):
        figures = [iterations(stream, SETTINGS[name]) for name in ("squared norm", "entropy")]
        rows.append([user, *(f"{mean:.1f}, {most}, {gap:.0e}" for mean, most, gap in figures)])
    report.table(["user", "squared norm", "entropy"], rows)


if __name__ == "__main__":
    main()
