"""Folders for mail, out of the box: the Enron users, each message ranked before it is learned.

    python benchmarks/mail.py --data DATA [--user beck-s ...] [--no-speed]

DATA/enron holds USER.tar.gz (messages as USER/FOLDER/NUMBER; the raw ham mailboxes of the Enron-Spam corpus). Everything is
as `feedrank mail train` has it: the features of `feedrank.clients.mail`, the preset of `multiclass`, date order, folders
unknown until their first message, which is always a mistake. Vowpal Wabbit gets the same features; its best setting in
hindsight counts.
"""

from __future__ import annotations

import email
import os
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from peers_models import vw_classes
from report import Report, arguments, part, track

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


def vowpal_wabbit(stream: Stream) -> str:
    """Percent of mistakes of the best setting of --oaa in hindsight, and the setting."""
    labels = list(dict.fromkeys(folder for _, folder in stream))
    found = []
    for setting in VOWPAL_WABBIT:
        try:
            play = vw_classes(f"--oaa {len(labels)} {setting}", labels)
        except ModuleNotFoundError:
            return "not installed"
        found.append((100 * sum(play(words, folder) for words, folder in stream) / len(stream), setting))
    mistakes, setting = min(found)
    return f"{mistakes:.1f} (`{setting}`)"


def speed(root: Path) -> list[object]:
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
    return [root.name, len(raws), standard, extracted, trained]


def unpacked(data: Path, users: Sequence[str], into: Path) -> list[Path]:
    """The users' mailboxes as directories of messages."""
    for user in users:
        with tarfile.open(data / f"{user}.tar.gz") as archive:
            archive.extractall(into, filter="data")
    return [into / user for user in users]


def main() -> None:
    parser = arguments(__doc__, "mail", "enron")
    parser.add_argument("--user", action="append", help="only these users")
    parser.add_argument("--no-speed", action="store_true", help="leave the second table out")
    options = parser.parse_args()
    data = part(options.data, "enron")
    if data is None:
        return
    users = [user for user in options.user or PAPER if (data / f"{user}.tar.gz").exists()]
    report = Report("Folders for mail, out of the box", options.out)
    with tempfile.TemporaryDirectory() as folder:
        roots = unpacked(data, users, Path(folder))
        rows: list[list[object]] = []
        results = []
        for root in track(roots, "users"):
            stream: Stream = [(features(one.load()), one.folder) for one in in_order(find(root))]
            result = ranked(stream)
            results.append(result)
            folders = len({name for _, name in stream})
            others = [f"{figure:.1f}" for figure in result[1:]]
            cells = [f"{result.mistakes:.2f}", PAPER.get(root.name, ""), vowpal_wabbit(stream), *others]
            rows.append([root.name, len(stream), folders, *cells])
        mistakes, *others = (f"{sum(column) / len(results):.1f}" for column in zip(*results, strict=True))
        rows.append(["mean", "", "", mistakes, "", "", *others])
        head = ["user", "messages", "folders", "mistakes %", "paper's best %", "best VW %"]
        report.table([*head, "top 3 %", "filed %", "of it right %"], rows)
        if not options.no_speed:
            report.text("Messages a second of CPU time, one core:\n")
            head = ["user", "messages", "`email.message_from_bytes` alone", "read and features"]
            report.table([*head, "all of `train`, embedded"], [speed(root) for root in track(roots, "speed")])


if __name__ == "__main__":
    main()
