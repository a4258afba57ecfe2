"""Vowpal Wabbit on the streams of `streams.py`: every setting of a list, and the best of them in hindsight.

What is compared against is the best setting of each stream, chosen after the fact: no user could have done better.
Figures are kept in a file (`--cache`), because a hundred runs of a peer that does not change need not be repeated.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from stream_data import Features, Stream

MEANS = str.maketrans(" :|\t\n", "_____")  # what means something in Vowpal Wabbit's text

COMMON = (
    "",
    "-l 0.1",
    "-l 2",
    "--loss_function logistic",
    "--loss_function logistic -l 2",
    "--loss_function hinge",
    "--coin",
    "--coin --loss_function logistic",
    "--ftrl",
    "--ftrl --loss_function logistic",
)
# {K} is the number of labels; "grades" is regression on the number of the grade, rounded.
REDUCTIONS = {
    "binary": ("",),
    "multiclass": ("--oaa {K}",),
    "multilabel": ("--multilabel_oaa {K}",),
    "ordinal": ("grades", "--oaa {K}"),
}
MORE = {"multiclass": ("--ect {K}", "--ect {K} --loss_function logistic")}


def settings(task: str) -> list[str]:
    """Every setting that is tried on a task."""
    chosen = []
    for reduction in REDUCTIONS[task]:
        for setting in COMMON:
            # Regression on grades knows squared loss only.
            if reduction != "grades" or "loss" not in setting:
                chosen.append(f"{reduction} {setting}".strip())
    return chosen + list(MORE.get(task, ()))


class Cache:
    """Losses by stream, order and setting, in one JSON file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.losses: dict[str, float] = json.loads(path.read_text()) if path and path.exists() else {}

    def loss(self, stream: Stream, order: int, setting: str) -> float:
        key = f"{stream.name} {order} {setting}"
        if key not in self.losses:
            self.losses[key] = play(stream.order(order), setting)
            if self.path:
                self.path.write_text(json.dumps(self.losses, indent=0, sort_keys=True))
        return self.losses[key]

    def best(self, stream: Stream, orders: int) -> tuple[float, str, float]:
        """The least mean loss over the orders, its setting, and the loss of the default setting; NaN without the peer."""
        count = orders if stream.shuffled else 1
        try:
            means = {
                setting: float(np.mean([self.loss(stream, k, setting) for k in range(count)]))
                for setting in settings(stream.task)
            }
        except ModuleNotFoundError:
            return math.nan, "Vowpal Wabbit is not installed", math.nan
        chosen = min(means, key=lambda setting: means[setting])
        return means[chosen], chosen, next(iter(means.values()))


def play(stream: Stream, setting: str) -> float:
    """The mean loss of one pass, each example predicted before it is learned from."""
    from vowpalwabbit import Workspace

    grades = setting.startswith("grades")
    if grades:
        setting = setting.removeprefix("grades").strip()
    number = {label: i for i, label in enumerate(stream.labels)}
    options = setting.replace("{K}", str(len(stream.labels)))
    with tempfile.TemporaryDirectory() as folder:
        data, answers = Path(folder) / "data", Path(folder) / "answers"
        with data.open("w") as out:
            for x, y in stream.rounds:
                out.write(f"{_target(stream.task, y, number, grades)} | {_features(x)}\n")
        Workspace(f"-d {data} -p {answers} --no_stdin -b 24 --quiet {options}").finish()
        lines = answers.read_text().splitlines()
    if len(lines) != len(stream.rounds):
        raise RuntimeError(f"{stream.name}, {setting}: {len(lines)} predictions of {len(stream.rounds)}")
    return float(
        np.mean(
            [
                _loss(stream, line, y, number, grades)
                for line, (_, y) in zip(lines, stream.rounds, strict=True)
            ]
        )
    )


def _target(task: str, y: str | Sequence[str], number: dict[str, int], grades: bool) -> str:
    if not isinstance(y, str):
        return ",".join(str(number[label]) for label in y)
    if grades:
        return str(number[y])
    return str(2 * number[y] - 1) if task == "binary" else str(number[y] + 1)


def _features(x: Features) -> str:
    if isinstance(x, dict):
        return " ".join(f"{name.translate(MEANS)}:{value:.8g}" for name, value in x.items())
    return " ".join(word.translate(MEANS) for word in x)


def _loss(stream: Stream, line: str, y: str | Sequence[str], number: dict[str, int], grades: bool) -> float:
    if not isinstance(y, str):
        said = {int(word) for word in line.split(maxsplit=1)[0].split(",")} if line.strip() else set()
        return len(said ^ {number[label] for label in y}) / len(number)
    answer = float(line.split(maxsplit=1)[0]) if line.strip() else 0.0
    if stream.task == "binary":
        return float((answer > 0) != (number[y] == 1))
    if grades:
        return abs(min(max(round(answer), 0), len(number) - 1) - number[y])
    guess = int(answer) - 1
    return float(abs(guess - number[y])) if stream.task == "ordinal" else float(guess != number[y])
