"""The streams of `streams.py`, all in one shape: a task, its labels, and rounds of (features, truth)."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from email import message_from_bytes
from email.utils import parsedate_to_datetime
from pathlib import Path

import numpy as np
from data import letor, multilabel

WORD = re.compile(r"[a-z0-9']+")
Features = Sequence[str] | Mapping[str, float]
Answer = str | list[str]
MAIL = ("beck-s", "kitchen-l", "lokay-m", "williams-w3")
SETS = ("yeast", "scene", "enron", "bibtex")
LISTS = ("mq2008", "ohsumed")


@dataclass(frozen=True)
class Stream:
    """`labels` are those of the task's contract (all of them, in order, for binary and ordinal)."""

    name: str
    group: str
    task: str
    labels: tuple[str, ...]
    rounds: tuple[tuple[Features, Answer], ...]
    shuffled: bool

    def order(self, k: int) -> Stream:
        """The k-th order in which it is played; a stream with an order of its own has just that."""
        if not self.shuffled:
            return self
        chosen = np.random.default_rng(k).permutation(len(self.rounds))
        return replace(self, rounds=tuple(self.rounds[i] for i in chosen))

    def first(self, count: int) -> Stream:
        """Its first rounds, in this order."""
        return replace(self, rounds=self.rounds[:count], shuffled=False)

    def named(self, name: str) -> Stream:
        """The same under another name."""
        return replace(self, name=name)

    def with_rounds(self, rounds: Iterable[tuple[Features, Answer]]) -> Stream:
        """Other rounds."""
        return replace(self, rounds=tuple(rounds))

    def changed(self, change: Callable[[Features], Features]) -> Stream:
        """The same stream with other features."""
        return replace(self, rounds=tuple((change(x), y) for x, y in self.rounds))

    @property
    def dense(self) -> bool:
        """Features are numbers by name."""
        return isinstance(self.rounds[0][0], Mapping)


def read(folder: Path) -> Iterator[Stream]:
    """Every stream below `folder`: streams/, enron/ and multilabel/, those that are there."""
    for path in sorted((folder / "streams").glob("*.jsonl.gz")):
        yield _jsonl(path)
    for user in MAIL:
        if (folder / "enron" / f"{user}.tar.gz").exists():
            yield _mail(folder / "enron", user)
    for name in SETS:
        if (folder / "multilabel" / f"{name}.xml").exists():
            yield _sets(folder / "multilabel", name)


def tables(folder: Path) -> Iterator[Stream]:
    """The tables and drifts below `folder`/tables, without the raw texts."""
    for path in sorted((folder / "tables").glob("*.jsonl.gz")):
        if not path.name.startswith("text-"):
            yield _jsonl(path)


def _jsonl(path: Path) -> Stream:
    with gzip.open(path, "rt") as lines:
        head = json.loads(next(lines))
        rounds = tuple((features, truth) for truth, features in map(json.loads, lines))
    labels = head["labels"] or _met(rounds)
    return Stream(head["name"], "streams", head["task"], tuple(labels), rounds, head["order"] == "random")


def _met(rounds: Sequence[tuple[Features, Answer]]) -> list[str]:
    return sorted({label for _, truth in rounds for label in ([truth] if isinstance(truth, str) else truth)})


def _mail(folder: Path, user: str) -> Stream:
    """Plain words of subject and body, each once, in the order of the Date headers."""
    dated = []
    with tarfile.open(folder / f"{user}.tar.gz") as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is None:
                continue
            message = message_from_bytes(file.read())
            words = set(WORD.findall(str(message["Subject"] or "").lower()))
            for section in message.walk():
                body = section.get_payload(decode=True)
                if section.get_content_maintype() == "text" and isinstance(body, bytes):
                    words.update(WORD.findall(body.decode("latin-1").lower()))
            time = parsedate_to_datetime(str(message["Date"])).timestamp()
            dated.append((time, member.name, sorted(words)))
    rounds = tuple((words, name.split("/")[-2]) for _, name, words in sorted(dated, key=lambda row: row[:2]))
    return Stream(user, "mail", "multiclass", tuple(_met(rounds)), rounds, False)


def _sets(folder: Path, name: str) -> Stream:
    files = ("scene-train", "scene-test") if name == "scene" else (name,)
    rounds = tuple(row for file in files for row in multilabel(folder, file, name))
    # MULAN stores its sets in no order of time.
    return Stream(name, "sets", "multilabel", tuple(_met(rounds)), rounds, True)


def lists(folder: Path, name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """(rows, grades) of every query of more than one grade, the five parts one after the other."""
    return [
        (np.array(query.features), np.array(query.grades))
        for number in range(1, 6)
        for query in letor(folder, f"{name}-S{number}")
        if len(set(query.grades)) > 1
    ]
