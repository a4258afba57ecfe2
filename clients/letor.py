"""LETOR files: lines `grade qid:Q 1:v 2:v ... # comment`, the lists of one query together. Plain or gzip, read as a stream.

Only one list is in memory at a time, so a file may be larger than memory.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO

from .payloads import JSON

__all__ = ["LetorError", "Query", "queries", "read"]

_GZIP = b"\x1f\x8b"


class LetorError(ValueError):
    """A line that cannot be read; the message names its number."""


@dataclass(slots=True)
class Query:
    """One list: items `1`, `2`, ... in the order of the file, the features of each, and the grade of each."""

    qid: str
    features: list[dict[str, float]] = field(default_factory=list)
    grades: list[float] = field(default_factory=list)

    @property
    def instance(self) -> JSON:
        """As the contract takes a list to rank."""
        return {
            "items": [{"id": str(i), "features": values} for i, values in enumerate(self.features, 1)],
        }

    @property
    def relevance(self) -> dict[str, float]:
        """The truth; what is missing is 0."""
        return {str(i): grade for i, grade in enumerate(self.grades, 1) if grade}

    def ranked(self, ids: Iterable[str]) -> list[float]:
        """The grades in the order of a ranking."""
        return [self.grades[int(id) - 1] for id in ids]


def read(path: Path, progress: Callable[[int], object] = lambda _: None) -> Iterator[Query]:
    """The queries of a file; `progress` gets the bytes of the file read so far."""
    with path.open("rb") as file:
        zipped = file.read(2) == _GZIP
        file.seek(0)
        stream: Any = gzip.GzipFile(fileobj=file) if zipped else file
        yield from queries(_decoded(stream, file, progress))


def _decoded(stream: Any, file: BinaryIO, progress: Callable[[int], object]) -> Iterator[str]:
    try:
        for number, line in enumerate(stream):
            if number % 256 == 0:
                progress(file.tell())
            yield line.decode("utf-8", "replace")
    except (EOFError, gzip.BadGzipFile) as error:
        raise LetorError(f"damaged: {error}") from error
    progress(file.tell())


def queries(lines: Iterable[str]) -> Iterator[Query]:
    """The lists of the lines; a qid that comes again after another is a new list."""
    for qid, rows in groupby(_rows(lines), key=lambda row: row[0]):
        query = Query(qid)
        for _, grade, features in rows:
            query.grades.append(grade)
            query.features.append(features)
        yield query


def _rows(lines: Iterable[str]) -> Iterator[tuple[str, float, dict[str, float]]]:
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if words:
            try:
                yield _row(words)
            except ValueError as error:
                raise LetorError(f"line {number}: {error}") from None


def _row(words: list[str]) -> tuple[str, float, dict[str, float]]:
    if len(words) < 2 or not words[1].startswith("qid:"):
        raise ValueError("must start with a grade and `qid:Q`")
    grade = _number(words[0])
    if grade < 0:
        raise ValueError(f"the grade {words[0]} is below 0")
    features: dict[str, float] = {}
    for word in words[2:]:
        name, colon, value = word.partition(":")
        if not colon or not name:
            raise ValueError(f"{word!r} is not `feature:value`")
        features[name] = _number(value)
    return words[1][4:], grade, features


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not finite")
    return value
