"""What a learner's callers notice of the callers of another learner: rates are held, times run from the intended start.

    python benchmarks/neighbours.py [--quick]

The neighbour is a learner of words (120 of 20,000, 101 folders), asked 100 times a second over 8 connections: alone, and
while two callers send another learner lists of 100 items with 136 features, predict and feedback by turns, 9 a second each
(18 together): as objects, as columns and rows, and as the base64 of float32; to the preset and to listnet. Also beside
text of 100 KB and a batch of 1,000 instances. Each row alternates with the quiet one; the medians of the turns are printed.
"""

from __future__ import annotations

import base64
import contextlib
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import numpy as np
from report import Report, arguments, track
from served import HERE, SPEC, asked, serving, taught

RATE, CONNECTIONS = 100.0, 8  # of the neighbour
BESIDE, CALLERS = 18.0, 2
ITEMS, FEATURES = 100, 136
WORST = 2.0  # ms that the 99th percentile may rise


def lists(shape: str, learner: str, count: int = 12) -> list[str]:
    """Lines of predict and feedback by turns."""
    rng, lines = np.random.default_rng(3), []
    ids, names = [f"d{i}" for i in range(ITEMS)], [f"f{j}" for j in range(FEATURES)]
    w = rng.normal(size=FEATURES)
    for _ in range(count):
        X = rng.random((ITEMS, FEATURES)).astype("<f4")
        grades = dict(zip(ids, ((X @ w).argsort().argsort() * 5 // ITEMS).tolist(), strict=True))
        if shape == "objects":
            items: Any = [
                {"id": id, "features": dict(zip(names, row, strict=True))}
                for id, row in zip(ids, X.round(4).tolist(), strict=True)
            ]
        else:
            rows = base64.b64encode(X.tobytes()).decode() if shape == "base64" else X.round(4).tolist()
            items = {"ids": ids, "columns": names, "rows": rows}
        place = f"/v1/learners/{learner}"
        lines.append(f"{place}/predict " + json.dumps({"items": items, "top": 10}))
        lines.append(f"{place}/feedback " + json.dumps({"items": items, "relevance": grades}))
    return lines


def long_calls(chance: random.Random) -> dict[str, list[str]]:
    """What others may send of words."""
    text = " ".join(f"word{chance.randrange(20_000)}" for _ in range(12_000))
    batch = {"instances": [asked(chance) for _ in range(1_000)]}
    for one in batch["instances"]:
        del one["remember"]
    return {
        "text of 100 KB": [
            "/v1/learners/other/predict " + json.dumps({"text": text}),
            "/v1/learners/other/feedback " + json.dumps({"text": text, "label": "a"}),
        ],
        "a batch of 1,000, once a second": ["/v1/learners/other/predict " + json.dumps(batch)],
    }


def paced(url: str, file: Path, seconds: float, connections: int, rate: float) -> subprocess.Popen[bytes]:
    """The generator, in a process of its own."""
    command = [sys.executable, HERE / "http_paced.py", url, file, seconds, connections, rate]
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE)


def figures(process: subprocess.Popen[bytes]) -> dict[str, float]:
    out, _ = process.communicate()
    if process.returncode:
        raise RuntimeError("the generator failed")
    read: dict[str, float] = json.loads(out)
    return read


@contextlib.contextmanager
def places(folder: Path) -> Iterator[str]:
    """A service with a learner of words that has met them, one of the same for others, and learners of lists."""
    chance = random.Random(7)
    with (
        serving(f"sqlite:{folder / 'neighbours.db'}") as served,
        httpx.Client(base_url=served.url, timeout=60, trust_env=False) as client,
    ):
        for name, spec in (
            ("mail", SPEC),
            ("other", SPEC),
            ("preset", {"task": "subset-ranking"}),
            ("listnet", {"task": "subset-ranking", "algorithm": "listnet"}),
        ):
            client.put(f"/v1/learners/{name}", json=spec).raise_for_status()
        for name in ("mail", "other"):
            for _ in range(10):
                events = [taught(chance) for _ in range(100)]
                client.post(f"/v1/learners/{name}/feedback", json={"events": events}).raise_for_status()
        yield served.url


def main() -> None:
    options = arguments(__doc__, "neighbours").parse_args()
    seconds, turns = (1.0, 1) if options.quick else (4.0, 3)
    report, chance = Report("Neighbours", options.out), random.Random(11)
    others = {
        f"lists to {learner}, {shape}": lists(shape, learner)
        for learner in ("preset", "listnet")
        for shape in ("objects", "columns", "base64")
    } | long_calls(chance)
    if options.quick:
        others = dict(list(others.items())[::3])
    with tempfile.TemporaryDirectory() as name, places(Path(name)) as url:
        words = Path(name) / "words"
        words.write_text(
            "\n".join("/v1/learners/mail/predict " + json.dumps(asked(chance)) for _ in range(200))
        )
        figures(paced(url, words, 1.0, CONNECTIONS, RATE))
        rows: list[list[object]] = []
        for title, lines in track(list(others.items()), "neighbours"):
            file = Path(name) / "beside"
            file.write_text("\n".join(lines))
            rate = 1.0 if "once" in title else BESIDE
            quiet, loud, sent = [], [], []
            for _ in range(turns):
                quiet.append(figures(paced(url, words, seconds, CONNECTIONS, RATE)))
                beside = paced(url, file, seconds, CALLERS, rate)
                loud.append(figures(paced(url, words, seconds, CONNECTIONS, RATE)))
                sent.append(figures(beside))
            middle = {
                (kind, part): 1e3 * median(one[part] for one in each)
                for kind, each in (("quiet", quiet), ("loud", loud), ("sent", sent))
                for part in ("p50", "p99")
            }
            rows.append(
                [
                    title,
                    *(f"{middle[kind, part]:.1f}" for kind in ("quiet", "loud") for part in ("p50", "p99")),
                    f"{middle['loud', 'p99'] - middle['quiet', 'p99']:+.1f}",
                    f"{WORST:+.1f}",
                    *(f"{middle['sent', part]:.1f}" for part in ("p50", "p99")),
                ]
            )
    report.table(
        [
            "beside",
            "quiet p50, ms",
            "quiet p99",
            "beside it p50",
            "beside it p99",
            "rise of p99",
            "at most",
            "its own p50",
            "its own p99",
        ],
        rows,
    )


if __name__ == "__main__":
    main()
