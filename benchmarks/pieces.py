"""The part of `service.py` about the work that no single call can do without, each piece alone in one thread."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import orjson
from report import Report
from served import SPEC, asked, taught

from feedrank.learners import build, kernel
from feedrank.service.contract.prediction_ids import new_prediction_id
from feedrank.service.store import Draft, Record
from feedrank.service.store.shared import checksum, link, seal
from feedrank.service.store.sql import row_records, rows, sqlite_file

COUNT, TURNS = 384, 15
GROUPS = (1, 16, 32)
LOG = "0" * 24


def best(work: Callable[[], object], count: int = COUNT) -> float:
    """Microseconds of processor time for one of `count`, in the best of the turns."""
    least = float("inf")
    for _ in range(TURNS):
        begun = time.thread_time()
        work()
        least = min(least, time.thread_time() - begun)
    return 1e6 * least / count


def transactions(folder: Path, name: str, bodies: list[bytes]) -> list[list[object]]:
    """Writing events or records, by how many share a transaction: their rows, and the commit with its sync."""
    table: list[list[object]] = []
    for group in GROUPS:
        db, _ = sqlite_file.prepare(folder / f"{name}-{group}.db", 0)
        writing = committing = float("inf")
        for _ in range(TURNS):
            spent = [0.0, 0.0]
            for start in range(0, COUNT, group):
                chosen, now = bodies[start : start + group], time.time()
                records = {new_prediction_id(LOG, now): Record(body) for body in chosen}
                begun = time.thread_time()
                db.execute("BEGIN IMMEDIATE")
                if name == "events":
                    rows.append(db, LOG, [Draft(body) for body in chosen], None, now)
                else:
                    row_records.write_records(db, row_records.NEW, LOG, records, now + 3600)
                written = time.thread_time()
                db.execute("COMMIT")
                spent[0] += written - begun
                spent[1] += time.thread_time() - written
            writing, committing = min(writing, spent[0]), min(committing, spent[1])
        db.close()
        table.append([f"{name}, {group} in a transaction: rows", f"{1e6 * writing / COUNT:.1f}"])
        table.append([f"{name}, {group} in a transaction: commit", f"{1e6 * committing / COUNT:.1f}"])
    return table


def measure(report: Report, folder: Path, chance: random.Random) -> None:
    core = build(SPEC)
    lessons = [json.dumps(taught(chance)).encode() for _ in range(COUNT)]
    questions = [json.dumps(asked(chance)).encode() for _ in range(COUNT)]
    taught_rounds = [kernel.loads(line) for line in lessons]
    asked_rounds = [kernel.loads(line) for line in questions]

    def learn() -> None:
        for one in taught_rounds:
            core.learn(one["features"], {"label": one["label"]})

    learn()  # meets all words and folders
    digest = checksum(lessons[0])
    rows: list[list[object]] = [
        [name, f"{best(work):.1f}"]
        for name, work in (
            ("read the body", lambda: [kernel.loads(line) for line in lessons]),
            ("learn", learn),
            (
                "predict and write the reply",
                lambda: [
                    orjson.dumps(core.predict(one["features"], top=10).to_json()) for one in asked_rounds
                ],
            ),
            ("checksum of an event", lambda: [checksum(line) for line in lessons]),
            ("its link of the chain", lambda: [link(digest, 1, 0.5, digest, None, 0) for _ in lessons]),
            ("seal a record", lambda: [seal(line) for line in questions]),
        )
    ]
    rows += transactions(folder, "events", lessons) + transactions(folder, "records", questions)
    report.table(["piece", "us of processor, each"], rows)
