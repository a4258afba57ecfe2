"""Folders for mail, out of the box: the Enron users, each message ranked before it is learned.

    python benchmarks/mail.py --data DATA [--user beck-s ...] [--no-speed] [--leave-one-out] [--beside CHECKOUT]
    python benchmarks/mail.py --data DATA --read 1 --read 0.5 --read 0    # filing, in a closed loop: see mail_loop.py

DATA/enron holds USER.tar.gz (messages as USER/FOLDER/NUMBER; the raw ham mailboxes of the Enron-Spam corpus). Everything is
as `feedrank mail train` has it: the features and the spec of `feedrank.clients.mail`, date order, folders unknown until
their first message, which is always a mistake and in no list: "at most" is the share of the others. Plain words are the
features of benchmarks/enron.py in the same order with the same learner and unit length. Vowpal Wabbit gets the mail
features; its best setting in hindsight counts.
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
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from data import words
from mail_beside import compare
from mail_designs import DESIGNS, Mail, leave_one_out, places, plain_words
from mail_loop import Played, closed_loop
from peers_models import vw_classes
from report import Report, arguments, part, track

from feedrank.clients import Client
from feedrank.clients.mail.bookkeeping import MailState
from feedrank.clients.mail.copies import content_digest, with_copies
from feedrank.clients.mail.extract import features
from feedrank.clients.mail.sources import find, in_order
from feedrank.clients.mail.training import train
from feedrank.embedded import Embedded

USERS = ("beck-s", "kitchen-l", "lokay-m", "williams-w3")
VOWPAL_WABBIT = (
    "--loss_function logistic",
    "--loss_function logistic -l 2",
    "--loss_function logistic --coin",
    "--loss_function hinge",
    "--loss_function hinge -l 2",
    "--loss_function hinge --sgd -l 0.5",
    "--loss_function hinge --sgd -l 2",
)


class Ranked(NamedTuple):
    """What the rounds of a user came to, in percent."""

    mistakes: float
    top3: float
    ceiling: float
    """Messages whose folder has had one before: no list can hold the others'."""
    top3_known: float
    """The right folder in the top 3, of these."""


def ranked(stream: Sequence[Mail]) -> Ranked:
    """Rank, then learn."""
    right, top3 = zip(*places(stream), strict=True)
    n = len(stream)
    known = n - len({mail.folder for mail in stream})
    shares = (1 - sum(right) / n, sum(top3) / n, known / n, sum(top3) / max(1, known))
    return Ranked(*(100 * share for share in shares))


def loops(report: Report, streams: dict[str, list[Mail]], reads: Sequence[float], seeds: int) -> None:
    """The table of `--read`."""
    lines: list[list[object]] = []
    for user, stream in track(list(streams.items()), "users"):
        most = 0.0
        for read in reads:
            runs = [closed_loop(stream, read, seed) for seed in range(seeds)]
            total = Played(*(sum(column) for column in zip(*runs, strict=True)))
            share = 100 * total.filed / total.messages
            most = most or share
            right = f"{100 * total.right / total.filed:.1f}" if total.filed else ""
            checked = f"{100 * total.audits_right / total.audits:.1f}" if total.audits else ""
            cells = [user, total.messages // seeds, f"{100 * read:.0f}", f"{share:.1f}"]
            cells += [f"{share / most:.2f}" if most else "", right, f"{total.audits / seeds:.0f}", checked]
            lines.append([*cells, f"{total.pauses / seeds:.1f}"])
    head = ["user", "messages", "opened %", "filed %", "of that at the first share", "of it right %"]
    report.text(f"Means of {seeds} draws of what is opened and what is an audit; precision 0.95:\n")
    report.table([*head, "audits", "of them right %", "pauses"], lines)


def vowpal_wabbit(stream: Sequence[Mail]) -> tuple[float, str] | None:
    """Percent of mistakes of the best setting of --oaa in hindsight, and the setting."""
    labels = list(dict.fromkeys(mail.folder for mail in stream))
    results = []
    for setting in VOWPAL_WABBIT:
        try:
            play = vw_classes(f"--oaa {len(labels)} {setting}", labels)
        except ModuleNotFoundError:
            return None
        results.append(
            (100 * sum(play(mail.features, mail.folder) for mail in stream) / len(stream), setting)
        )
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


def read(root: Path) -> list[Mail]:
    """The messages of a user in date order, with the copies that came before them."""
    stream = []
    copies: dict[str, list[str]] = {}
    for one in in_order(find(root)):
        raw = one.load()
        names = features(raw)
        before = copies.setdefault(content_digest(names), [])
        plain = words(email.message_from_bytes(raw))
        own = with_copies(names, before)
        stream.append(Mail(own, plain, one.folder, one.date.timestamp(), names, content_digest(names)))
        before.append(one.folder)
    return stream


def row(user: str, stream: Sequence[Mail]) -> tuple[list[object], list[float], float | None]:
    """A user's line of the table, its figures, and the ratio to Vowpal Wabbit."""
    result = ranked(stream)
    plain = 100 * (1 - sum(plain_words(stream)) / len(stream))
    best = vowpal_wabbit(stream)
    ratio = result.mistakes / best[0] if best else None
    cells = [
        f"{result.mistakes:.2f}",
        f"{plain:.2f}",
        f"{best[0]:.2f} (`{best[1]}`)" if best else "not installed",
    ]
    line: list[object] = [user, len(stream), len({mail.folder for mail in stream}), *cells]
    line += [f"{ratio:.2f}" if ratio else "", *(f"{figure:.1f}" for figure in result[1:])]
    return line, [*result, plain], ratio


def left_out(report: Report, streams: dict[str, list[Mail]]) -> None:
    """The table of `--leave-one-out`."""
    lines: list[list[object]] = []
    ratios = []
    for one in leave_one_out(streams, lambda user: print(f"{user} is done", flush=True)):
        best = vowpal_wabbit(streams[one.user])
        ratios.append(one.mistakes / best[0] if best else None)
        ratio = f"{ratios[-1]:.2f}" if ratios[-1] else "not installed"
        lines.append([one.user, one.design, f"{one.mistakes:.2f}", f"{one.plain:.2f}", ratio])
    report.text(f"Designs: {'; '.join(DESIGNS)}.\n")
    head = ["left out", "design chosen by the others", "mistakes %", "plain words %", "of VW's best"]
    report.table(head, lines)
    known = [ratio for ratio in ratios if ratio]
    if known:
        report.text(f"Geometric mean of the ratios: {exp(sum(map(log, known)) / len(known)):.3f}.")


def main() -> None:
    parser = arguments(__doc__, "mail", "enron")
    parser.add_argument("--user", action="append", help="only these users")
    parser.add_argument("--leave-one-out", action="store_true", help="what three users choose for the fourth")
    parser.add_argument(
        "--read", action="append", type=float, metavar="SHARE", help="only filing: the share that is opened"
    )
    parser.add_argument("--seeds", type=int, default=5, help="with --read: draws")
    parser.add_argument("--no-speed", action="store_true", help="leave the second table out")
    parser.add_argument(
        "--beside", type=Path, metavar="CHECKOUT", help="only the cost of training, here and there"
    )
    options = parser.parse_args()
    options.no_speed |= options.quick
    data = part(options.data, "enron")
    if data is None:
        return
    users = [user for user in options.user or USERS if (data / f"{user}.tar.gz").exists()]
    report = Report("Folders for mail, out of the box", options.out)
    with tempfile.TemporaryDirectory() as folder:
        roots = unpacked(data, users, Path(folder))
        if options.beside:
            report.text("Processor time a message of `train`, embedded, in microseconds:\n")
            head = ["user", "service", f"`{options.beside.name}`", "here", "times as fast"]
            report.table(head, list(compare(roots, options.beside.resolve())))
            return
        streams = {root.name: read(root) for root in track(roots, "reading")}
        if options.read:
            loops(report, streams, options.read, 1 if options.quick else options.seeds)
            return
        if options.leave_one_out:
            left_out(report, streams)
            return
        results = [row(user, stream) for user, stream in track(list(streams.items()), "users")]
        lines = [line for line, _, _ in results]
        means = [
            sum(column) / len(results) for column in zip(*(figures for _, figures, _ in results), strict=True)
        ]
        ratios = [ratio for _, _, ratio in results if ratio]
        middle = f"{exp(sum(map(log, ratios)) / len(ratios)):.3f}" if ratios else ""
        last = [f"{mean:.1f}" for mean in means[1:-1]]
        lines.append(["mean", "", "", f"{means[0]:.2f}", f"{means[-1]:.2f}", "", middle, *last])
        head = [
            "user",
            "messages",
            "folders",
            "mistakes %",
            "plain words %",
            "best VW, same features %",
            "ratio",
        ]
        report.table([*head, "top 3 %", "at most %", "top 3 of these %"], lines)
        if not options.no_speed:
            report.text("Messages a second of CPU time, one core:\n")
            head = ["user", "messages", "`email.message_from_bytes` alone", "read and features"]
            report.table([*head, "all of `train`, embedded"], [speed(root) for root in track(roots, "speed")])


if __name__ == "__main__":
    main()
