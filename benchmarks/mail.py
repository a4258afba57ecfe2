"""Folders for mail, out of the box: the Enron users, each message ranked before it is learned. Prints Markdown.

    python benchmarks/mail.py --data FOLDER [--user beck-s ...] [--no-speed]

FOLDER holds USER.tar.gz (messages as USER/FOLDER/NUMBER). Everything is as `feedrank mail train` has it: the features of
`feedrank.clients.mail`, the preset of `multiclass`, date order, folders unknown until their first message, which is
always a mistake. Vowpal Wabbit gets the same features; its best setting in hindsight counts.
"""

from __future__ import annotations

import argparse
import email
import os
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from feedrank.clients import Client
from feedrank.clients.mail.certainty import Certainty, Round
from feedrank.clients.mail.extract import features
from feedrank.clients.mail.sources import find, in_order
from feedrank.clients.mail.state import State
from feedrank.clients.mail.training import SPEC, train
from feedrank.embedded import Embedded
from feedrank.learners import build

Stream = list[tuple[dict[str, float], str]]
# The best of Table 1 of the label ranking paper: entropy, update III.
PAPER = {"beck-s": 47.1, "kitchen-l": 36.0, "lokay-m": 18.2, "williams-w3": 3.1}
VOWPAL_WABBIT = (
    "--loss_function logistic",
    "--loss_function logistic -l 2",
    "--loss_function logistic --coin",
    "--loss_function hinge",
    "--loss_function hinge -l 2",
    "--loss_function hinge --sgd -l 0.5",
    "--loss_function hinge --sgd -l 2",
)
PRECISION = 0.95


class Ranked(NamedTuple):
    """What the rounds of a user came to, in percent."""

    mistakes: float
    top3: float
    filed: float
    precision: float


def ranked(stream: Stream) -> Ranked:
    """Rank, then learn; file what the record until then makes sure."""
    learner = build(SPEC)
    mistakes = top3 = 0
    rounds: list[Round] = []
    filed: list[bool] = []
    certainty = Certainty([], PRECISION)
    for words, folder in stream:
        prediction = learner.predict({"features": words}, top=3)
        top3 += folder in [name for name, _ in prediction.ranking]
        mistakes += learner.learn({"features": words}, {"label": folder}).mistake
        if prediction.label is None or prediction.margin is None:
            continue
        if len(rounds) % 10 == 0:
            certainty = Certainty(rounds, PRECISION)
        right = prediction.label == folder
        if prediction.margin >= certainty.least(prediction.label):
            filed.append(right)
        rounds.append(Round(prediction.label, prediction.margin, right))
    n = len(stream)
    return Ranked(
        100 * mistakes / n, 100 * top3 / n, 100 * len(filed) / n, 100 * sum(filed) / max(1, len(filed))
    )


def vowpal_wabbit(stream: Stream) -> tuple[float, str] | None:
    """Percent of mistakes of the best setting of --oaa in hindsight, and the setting."""
    try:
        from vowpalwabbit import Workspace
    except ImportError:
        return None
    number: dict[str, int] = {}
    for _, folder in stream:
        number.setdefault(folder, len(number) + 1)
    # Spaces, colons and bars mean something to it.
    table = str.maketrans(" :|\t\n", "_____")
    lines = [
        "| " + " ".join(f"{name.translate(table)}:{value:.5g}" for name, value in words.items())
        for words, _ in stream
    ]
    found = []
    for setting in VOWPAL_WABBIT:
        vw, mistakes = Workspace(f"--oaa {len(number)} -b 22 --quiet {setting}"), 0
        for line, (_, folder) in zip(lines, stream, strict=True):
            mistakes += vw.predict(line) != number[folder]
            vw.learn(f"{number[folder]} {line}")
        vw.finish()
        found.append((100 * mistakes / len(stream), setting))
    return min(found)


def speed(root: Path) -> None:
    """Messages a second of CPU time: parsing alone, with features, and all of `feedrank mail train`, embedded."""
    raws = [one.load() for one in find(root)]

    def rate(work: object, begun: float) -> str:
        del work
        return f"{len(raws) / (time.process_time() - begun):,.0f}"

    begun = time.process_time()
    standard = rate([email.message_from_bytes(raw) for raw in raws], begun)
    begun = time.process_time()
    extracted = rate([features(raw) for raw in raws], begun)
    with tempfile.TemporaryDirectory() as folder:
        client = Client("http://embedded", transport=Embedded(f"sqlite:{folder}/service.db"))
        with client, State(f"{folder}/mail.db") as state:
            begun = time.process_time()
            trained = rate(train(client, state, list(find(root))), begun)
    print(f"| {root.name} | {len(raws)} | {standard} | {extracted} | {trained} |", flush=True)


def unpacked(data: Path, users: Sequence[str], into: Path) -> list[Path]:
    """The users' mailboxes as directories of messages."""
    for user in users:
        with tarfile.open(data / f"{user}.tar.gz") as archive:
            archive.extractall(into, filter="data")
    return [into / user for user in users]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of USER.tar.gz")
    parser.add_argument("--user", action="append", help="only these users")
    parser.add_argument("--no-speed", action="store_true", help="leave the second table out")
    given = parser.parse_args()
    users = [user for user in given.user or PAPER if given.data and (given.data / f"{user}.tar.gz").exists()]
    if not users:
        sys.exit("skipped: no Enron mailbox; give the folder of USER.tar.gz with --data")
    with tempfile.TemporaryDirectory() as folder:
        roots = unpacked(given.data, users, Path(folder))
        print(
            "| user | messages | folders | mistakes % | paper's best % | best VW % | top 3 % | filed % | of it right % |"
        )
        print("|---" * 9 + "|")
        results = []
        for root in roots:
            stream: Stream = [(features(one.load()), one.folder) for one in in_order(find(root))]
            result = ranked(stream)
            results.append(result)
            vw = vowpal_wabbit(stream)
            print(
                f"| {root.name} | {len(stream)} | {len({folder for _, folder in stream})} | {result.mistakes:.2f}"
                f" | {PAPER.get(root.name, float('nan'))} | {f'{vw[0]:.1f} (`{vw[1]}`)' if vw else 'not installed'}"
                f" | {result.top3:.1f} | {result.filed:.1f} | {result.precision:.1f} |",
                flush=True,
            )
        means = [sum(column) / len(results) for column in zip(*results, strict=True)]
        print(f"| mean | | | {means[0]:.1f} | | | {means[1]:.1f} | {means[2]:.1f} | {means[3]:.1f} |")
        if not given.no_speed:
            print("\nMessages a second of CPU time, one core:\n")
            print(
                "| user | messages | `email.message_from_bytes` alone | read and features | all of `train`, embedded |"
            )
            print("|---" * 5 + "|")
            for root in roots:
                speed(root)


if __name__ == "__main__":
    main()
