"""Label ranking on the folders of Enron users, in time order: Table 1 of the paper, and ours. Prints Markdown.

    python benchmarks/enron.py --data FOLDER [--user beck-s ...]

FOLDER holds USER.tar.gz (messages as USER/FOLDER/NUMBER; the raw ham mailboxes of the Enron-Spam corpus); without it, or
without a user's file, that part is skipped. So is Vowpal Wabbit where it is not installed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from data import enron

from feedrank.learners import build
from feedrank.learners.dual_ascent.interior import interior_point
from feedrank.learners.dual_ascent.surrogate import DualAscent
from feedrank.learners.dual_ascent.updates import update_III

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


def run(stream: Stream, spec: dict[str, Any]) -> tuple[float, float]:
    """Percent of mistakes and microseconds a round; the labels are known from the start, as in the paper."""
    learner = build({"task": "multiclass", "labels": sorted({folder for _, folder in stream}), **spec})
    begin = time.perf_counter()
    mistakes = sum(learner.learn({"features": words}, {"label": folder}).mistake for words, folder in stream)
    return 100 * mistakes / len(stream), 1e6 * (time.perf_counter() - begin) / len(stream)


def ours(stream: Stream, setting: dict[str, Any]) -> list[str]:
    """The three updates with the default C and gamma."""
    return [f"{run(stream, {'algorithm': 'dual-ascent', 'update': u, **setting})[0]:.1f}" for u in UPDATES]


def vowpal_wabbit(stream: Stream) -> str:
    """The best of several settings of --oaa in hindsight, on the same words."""
    try:
        from vowpalwabbit import LabelType, Workspace
    except ImportError:
        return "not installed"
    number = {folder: i for i, folder in enumerate(sorted({folder for _, folder in stream}), start=1)}
    found = []
    for setting in VOWPAL_WABBIT:
        vw, mistakes = Workspace(f"--oaa {len(number)} -b 24 --quiet {setting}"), 0
        for words, folder in stream:
            line = " ".join(word.replace(":", "_").replace("|", "_") for word in words)
            example = vw.parse(f"{number[folder]} | {line}", LabelType.MULTICLASS)
            mistakes += vw.predict(example) != number[folder]
            vw.learn(example)
            vw.finish_example(example)
        vw.finish()
        found.append(mistakes)
    return f"{100 * min(found) / len(stream):.1f}"


def iterations(stream: Stream, setting: dict[str, Any]) -> tuple[float, int, float]:
    """Mean and largest number of interior point iterations, and the largest gap, over the rounds of update III."""
    learner = build({"task": "multiclass", "algorithm": "dual-ascent", "update": "III", **setting})
    counts, gaps = [], []

    def both(response: Any, relevant: Any, C: float, gamma: float) -> Any:
        alpha = update_III(response, relevant, C, gamma)
        if alpha is not None:
            solution = interior_point(response, relevant, C, gamma)
            counts.append(solution.iterations)
            gaps.append(solution.gap)
        return alpha

    surrogate = learner.model.surrogate  # type: ignore[attr-defined]
    assert isinstance(surrogate, DualAscent)
    surrogate.update = both
    for words, folder in stream:
        learner.learn({"features": words}, {"label": folder})
    return float(np.mean(counts)), max(counts), max(gaps)


def main() -> None:
    parser = argparse.ArgumentParser(description="Dual ascent on Enron users.")
    parser.add_argument("--data", type=Path, help="folder of USER.tar.gz")
    parser.add_argument("--user", action="append", help="only these users (default: all of the paper's)")
    given = parser.parse_args()
    users = [user for user in given.user or PAPER if given.data and (given.data / f"{user}.tar.gz").exists()]
    if not users:
        print("skipped: no Enron mailbox; give the folder of USER.tar.gz with --data")
        return
    print("Mistakes, %: updates I II III.\n")
    head = [
        "user",
        "messages",
        "paper, squared",
        "paper, entropy",
        *SETTINGS,
        "preset",
        "us a round",
        "best VW --oaa",
    ]
    print("|", " | ".join(head), "|")
    print("|---" * len(head) + "|")
    streams = {user: list(enron(given.data, user)) for user in users}
    for user, stream in streams.items():
        paper = [f"{figure:.1f}" for figure in PAPER.get(user, ())]
        cells = [user, str(len(stream)), " ".join(paper[:3]), " ".join(paper[3:])]
        cells += [" ".join(ours(stream, setting)) for setting in SETTINGS.values()]
        mistakes, cost = run(stream, {})
        print(
            "|",
            " | ".join([*cells, f"{mistakes:.1f}", f"{cost:.0f}", vowpal_wabbit(stream)]),
            "|",
            flush=True,
        )
    print("\nInterior point iterations of update III: mean, most, largest gap (relative).\n")
    print("| user | squared norm | entropy |\n|---|---|---|")
    for user, stream in streams.items():
        figures = [iterations(stream, SETTINGS[name]) for name in ("squared norm", "entropy")]
        print(
            "|",
            " | ".join([user, *(f"{mean:.1f}, {most}, {gap:.0e}" for mean, most, gap in figures)]),
            "|",
            flush=True,
        )


if __name__ == "__main__":
    main()
