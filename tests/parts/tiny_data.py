"""The folders that `benchmarks/` reads with --data, made up: a few dozen rows each, of which something can be learned."""

import gzip
import io
import json
import tarfile
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path

import numpy as np

USERS = ("beck-s", "kitchen-l", "lokay-m", "williams-w3")
FOLDERS = ("deals", "family", "legal")
STREAMS = {
    "elec": "binary",
    "segment": "multiclass",
    "winered": "ordinal",
    "nlupp-banking": "multilabel",
    "trec6": "multiclass",
}
SETS = ("yeast", "scene", "scene-train", "scene-test", "enron", "bibtex", "corel5k", "cal500")


def write_data(folder: Path) -> Path:
    """All of it below `folder`."""
    rng = np.random.default_rng(7)
    for part in ("enron", "letor", "streams", "multilabel", "tables"):
        (folder / part).mkdir(parents=True)
    for user in USERS:
        _mailbox(folder / "enron" / f"{user}.tar.gz", user, rng)
    for name in ("mq2008", "ohsumed"):
        for number in range(1, 6):
            _queries(folder / "letor" / f"{name}-S{number}.txt.gz", number, rng)
    for name, task in STREAMS.items():
        _stream(folder / "streams" / f"{name}.jsonl.gz", name, task, rng)
    for name in SETS:
        _set(folder / "multilabel", name, rng)
    _texts(folder / "tables" / "text-greetings.jsonl.gz", rng)
    return folder


def _words(rng: np.random.Generator, label: int) -> list[str]:
    own = [f"own{label}x{i}" for i in rng.integers(0, 4, 2)]
    return [*own, *(f"word{i}" for i in rng.integers(0, 30, 8))]


def _mailbox(path: Path, user: str, rng: np.random.Generator) -> None:
    start = datetime(2001, 3, 1, tzinfo=UTC)
    with tarfile.open(path, "w:gz") as archive:
        for number in range(40):
            label = int(rng.integers(len(FOLDERS)))
            message = EmailMessage()
            message["Subject"], message["From"] = (
                " ".join(_words(rng, label)[:3]),
                f"someone{label}@example.org",
            )
            message["To"], message["Date"] = (
                f"{user}@example.org",
                format_datetime(start + timedelta(hours=number)),
            )
            message["Message-ID"] = f"<{user}.{number}@example.org>"
            message.set_content(" ".join(_words(rng, label)))
            entry, body = tarfile.TarInfo(f"{user}/{FOLDERS[label]}/{number}."), message.as_bytes()
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))


def _queries(path: Path, number: int, rng: np.random.Generator) -> None:
    lines = []
    for query in range(5):
        for _ in range(12):
            x = rng.random(6)
            grade = int(min(2, 3 * x[0]))
            lines.append(
                f"{grade} qid:{10 * number + query} " + " ".join(f"{j}:{v:.3f}" for j, v in enumerate(x, 1))
            )
    _lines(path, lines)


def _lines(path: Path, lines: list[str]) -> None:
    with gzip.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")


def _stream(path: Path, name: str, task: str, rng: np.random.Generator) -> None:
    labels = ["0", "1"] if task == "binary" else ["3", "4", "5"] if task == "ordinal" else ["a", "b", "c"]
    closed = labels if task in ("binary", "ordinal") else None
    lines = [
        json.dumps(
            {
                "name": name,
                "task": task,
                "order": "random" if task == "multiclass" else "file",
                "labels": closed,
            }
        )
    ]
    for _ in range(40):
        k = int(rng.integers(len(labels)))
        x = (
            _words(rng, k)
            if name in ("trec6", "nlupp-banking")
            else {f"f{j}": float(v) for j, v in enumerate(rng.normal(k, 1.0, 4))}
        )
        lines.append(json.dumps([[labels[k]] if task == "multilabel" else labels[k], x]))
    _lines(path, lines)


def _set(folder: Path, name: str, rng: np.random.Generator) -> None:
    labels, features = [f"label{i}" for i in range(4)], [f"feature{j}" for j in range(5)]
    names = "".join(f'<label name="{label}"></label>' for label in labels)
    (folder / f"{name}.xml").write_text(
        f'<labels xmlns="http://mulan.sourceforge.net/labels">{names}</labels>'
    )
    head = [
        f"@relation {name}",
        *(f"@attribute {f} numeric" for f in features),
        *(f"@attribute {y} {{0,1}}" for y in labels),
        "@data",
    ]
    rows = []
    for _ in range(45):
        x = rng.normal(size=5)
        y = (x[:4] > 0.3).astype(int)
        rows.append(",".join([*(f"{v:.3f}" for v in x), *map(str, y)]))
    _lines(folder / f"{name}.arff.gz", head + rows)


def _texts(path: Path, rng: np.random.Generator) -> None:
    lines = [json.dumps({"name": "text-greetings", "task": "multiclass", "order": "file", "labels": None})]
    for _ in range(40):
        label = int(rng.integers(2))
        lines.append(json.dumps([f"l{label}", " ".join(_words(rng, label))]))
    _lines(path, lines)
