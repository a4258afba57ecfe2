"""Folders for mail, out of the box: the Enron users, each message ranked before it is learned.

    python benchmarks/mail.py --data DATA [--user beck-s ...] [--no-speed]

DATA/enron holds USER.tar.gz (messages as USER/FOLDER/NUMBER; the raw ham mailboxes of the Enron-Spam corpus). Everything is
as `feedrank mail train` has it: the features and the spec of `feedrank.clients.mail`, date order, folders unknown until
their first message, which is always a mistake. Plain words are the features of benchmarks/enron.py with the same learner
and unit length. Vowpal Wabbit gets the mail features; its best setting in hindsight counts. Filing follows the promise from
the first message on.
"""

from __future__ import annotations

import email
import os
import tarfile
import tempfile
import time
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from data import enron
from peers_models import vw_classes
from report import Report, arguments, part, track

from feedrank.clients import Client
from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.extract import SPEC, features
from feedrank.clients.mail.promise import (
    SENDER,
    WINDOW,
    Credit,
    Judgement,
    certainty,
    earned,
    judged,
    may_file,
    risk,
)
from feedrank.clients.mail.sources import find, in_order
from feedrank.clients.mail.training import sender_of, train
from feedrank.embedded import Embedded
from feedrank.learners import build

Stream = list[tuple[dict[str, float], str]]
USERS = ("beck-s", "kitchen-l", "lokay-m", "williams-w3")
PLAIN = {**SPEC, "normalize": "unit"}
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
    """Rank, file by the promise, then learn."""
    learner = build(SPEC)
    mistakes = top3 = 0
    record: list[Judgement] = []
    senders: dict[str, list[str]] = {}
    filed: list[bool] = []
    credit = Credit()
    for words, folder in stream:
        prediction = learner.predict({"features": words}, top=3)
        top3 += folder in [name for name, _ in prediction.ranking]
        mistakes += learner.learn({"features": words}, {"label": folder}).mistake
        recent = senders.setdefault(sender_of(words), [])
        if prediction.label is not None and prediction.margin is not None:
            right = prediction.label == folder
            sureness = certainty(prediction.margin, prediction.label, recent[-SENDER:])
            chance = risk(record[-WINDOW:], prediction.label, sureness)
            if may_file(chance, credit, 0.0, PRECISION):
                filed.append(right)
                credit = judged(credit, right, PRECISION)
            else:
                credit = earned(credit, chance, right, PRECISION)
            record.append(Judgement(prediction.label, sureness, right))
        recent.append(folder)
    n = len(stream)
    shares = (mistakes / n, top3 / n, len(filed) / n, sum(filed) / max(1, len(filed)))
    return Ranked(*(100 * share for share in shares))


def mistakes_of(spec: dict[str, Any], stream: Sequence[tuple[Any, str]]) -> float:
    """Percent of mistakes of a learner."""
    learner = build(spec)
    return 100 * sum(learner.learn({"features": x}, {"label": y}).mistake for x, y in stream) / len(stream)


def vowpal_wabbit(stream: Stream) -> tuple[float, str] | None:
    """Percent of mistakes of the best setting of --oaa in hindsight, and the setting."""
    labels = list(dict.fromkeys(folder for _, folder in stream))
    results = []
    for setting in VOWPAL_WABBIT:
        try:
            play = vw_classes(f"--oaa {len(labels)} {setting}", labels)
        except ModuleNotFoundError:
            return None
        results.append((100 * sum(play(words, folder) for words, folder in stream) / len(stream), setting))
    return min(results)


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
        with client, MailState(f"{folder}/mail.db") as state:
            begun = time.process_time()
            trained = rate(train(client, state, list(find(root))), begun)
    return [root.name, len(raws), standard, extracted, trained]


def unpacked(data: Path, users: Sequence[str], into: Path) -> list[Path]:
    """The users' mailboxes as directories of messages."""
    for user in users:
        with tarfile.open(data / f"{user}.tar.gz") as archive:
            archive.extractall(into, filter="data")
    return [into / user for user in users]


def row(data: Path, root: Path) -> tuple[list[object], list[float], float | None]:
    """A user's line of the table, its figures, and the ratio to Vowpal Wabbit."""
    stream: Stream = [(features(one.load()), one.folder) for one in in_order(find(root))]
    result = ranked(stream)
    plain = mistakes_of(PLAIN, list(enron(data, root.name)))
    best = vowpal_wabbit(stream)
    ratio = result.mistakes / best[0] if best else None
    cells = [
        f"{result.mistakes:.2f}",
        f"{plain:.2f}",
        f"{best[0]:.2f} (`{best[1]}`)" if best else "not installed",
    ]
    line: list[object] = [root.name, len(stream), len({name for _, name in stream}), *cells]
    line += [f"{ratio:.2f}" if ratio else "", *(f"{figure:.1f}" for figure in result[1:])]
    return line, [*result, plain], ratio


def main() -> None:
    parser = arguments(__doc__, "mail", "enron")
    parser.add_argument("--user", action="append", help="only these users")
    parser.add_argument("--no-speed", action="store_true", help="leave the second table out")
    options = parser.parse_args()
    data = part(options.data, "enron")
    if data is None:
        return
    users = [user for user in options.user or USERS if (data / f"{user}.tar.gz").exists()]
    report = Report("Folders for mail, out of the box", options.out)
    with tempfile.TemporaryDirectory() as folder:
        roots = unpacked(data, users, Path(folder))
        results = [row(data, root) for root in track(roots, "users")]
        lines = [line for line, _, _ in results]
        means = [
            sum(column) / len(results) for column in zip(*(figures for _, figures, _ in results), strict=True)
        ]
        ratios = [ratio for _, _, ratio in results if ratio]
        middle = f"{exp(sum(map(log, ratios)) / len(ratios)):.3f}" if ratios else ""
        last = [f"{mean:.1f}" for mean in means[1:4]]
        lines.append(["mean", "", "", f"{means[0]:.2f}", f"{means[4]:.2f}", "", middle, *last])
        head = [
            "user",
            "messages",
            "folders",
            "mistakes %",
            "plain words %",
            "best VW, same features %",
            "ratio",
        ]
        report.table([*head, "top 3 %", "filed %", "of it right %"], lines)
        if not options.no_speed:
            report.text("Messages a second of CPU time, one core:\n")
            head = ["user", "messages", "`email.message_from_bytes` alone", "read and features"]
            report.table([*head, "all of `train`, embedded"], [speed(root) for root in track(roots, "speed")])


if __name__ == "__main__":
    main()
