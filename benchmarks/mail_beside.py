"""What a message costs `feedrank mail train` here and in another checkout: processor time, one process after the other.

    python benchmarks/mail_beside.py MAILBOX [--quiet SECONDS]     one training, microseconds a message

`mail.py --beside CHECKOUT` runs this file in turn on the code here and on that of the checkout, which may be as old as
release 0.1: this file uses only what both have. The median of some turns counts, not the least: a second after its start a
service checks that it learns the same bits as the one before, and a turn that is over by then has not paid for it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from feedrank.clients import Client
from feedrank.clients.mail.sources import find
from feedrank.clients.mail.training import train
from feedrank.embedded import Embedded

HERE = Path(__file__).resolve().parent.parent
TURNS = 5
QUIET = 4.0
"""Seconds in which a service does what it does once, after its first reply."""


def train_cost(mailbox: Path, quiet: float) -> float:
    """Microseconds of processor time a message: listing, reading, features, and an embedded service that learns."""
    with tempfile.TemporaryDirectory() as folder:
        client = Client("http://embedded", transport=Embedded(f"sqlite:{folder}/service.db"))
        with client, _state()(f"{folder}/mail.db") as state:
            if quiet:
                client.learners()
                time.sleep(quiet)
            begun = time.process_time()
            messages = list(find(mailbox))
            train(client, state, messages)
            return 1e6 * (time.process_time() - begun) / len(messages)


def _state() -> Any:
    """What the mail commands remember; release 0.1 has it in another place."""
    try:
        return import_module("feedrank.clients.mail.bookkeeping").MailState
    except ModuleNotFoundError:
        return import_module("feedrank.clients.mail.state").State


def cost_in(checkout: Path, mailbox: Path, quiet: float) -> float:
    """`train_cost` of a checkout, in a process of its own: with its environment if it has one, else with ours."""
    own = checkout / ".venv" / "bin" / "python"
    command = [str(own) if own.exists() else sys.executable, __file__, str(mailbox), "--quiet", str(quiet)]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OPENBLAS_NUM_THREADS": "1"}
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def compare(mailboxes: Sequence[Path], other: Path) -> Iterator[list[object]]:
    """A line of the table for every mailbox, from the start of the service and once it was quiet."""
    for mailbox in mailboxes:
        for quiet, when in ((0.0, "from its start"), (QUIET, f"quiet for {QUIET:.0f} s")):
            theirs, ours = [], []
            for _ in range(TURNS):
                theirs.append(cost_in(other, mailbox, quiet))
                ours.append(cost_in(HERE, mailbox, quiet))
            middle = median(theirs), median(ours)
            yield [mailbox.name, when, *(f"{cost:,.0f}" for cost in middle), f"{middle[0] / middle[1]:.2f}"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mailbox", type=Path)
    parser.add_argument("--quiet", type=float, default=0.0, help="seconds to leave the service alone first")
    options = parser.parse_args()
    print(train_cost(options.mailbox, options.quiet))
