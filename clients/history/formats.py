"""Readers of past events, one per file format; all read a stream, plain or gzip, and yield the same `Line`.

csv      a header, then rows: one column is the truth, the others are features or text
jsonl    the contract's own feedback bodies, what `feedrank export` writes, or rows by column
parquet  what `feedrank export` writes, or rows by column (needs pyarrow)
libsvm   `label[,label...] name:value ...`; with `qid:Q` it is LETOR, and the lines of a query are one list
vw       Vowpal Wabbit's text: `label [weight] [tag]|namespace feature[:value] ... |...`
"""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ..letor import queries
from ..payloads import JSON, Payload
from .log_rows import INSTANCES, LOG, TRAINING, TRUTHS, from_cell, is_event, lesson

GZIP = b"\x1f\x8b"


class FormatError(ValueError):
    """A file or an option that cannot be used at all; a single bad line is a `Line` with its `problem`."""


@dataclass(slots=True)
class Line:
    """One event: `body` is what `/feedback` takes, or None where `problem` says why there is none."""

    number: int
    body: JSON | None = None
    problem: str = ""
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of a table mean. Without `features`, all that is neither truth, text nor id is one."""

    truth: str = "label"
    features: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    id: str | None = None
    several: str = ""  # what separates the labels of a set; without it the truth is one label

    def line(self, number: int, row: Payload) -> Line:
        """The event of a row."""
        missing = [name for name in (self.truth, *self.features, *self.text) if name not in row]
        if missing:
            option = "--truth" if missing[0] == self.truth else "--features" if self.features else "--text"
            return Line(number, problem=f"there is no column {missing[0]!r}: name another with {option}")
        truth = row[self.truth]
        if truth is None or truth == "":
            return Line(number, problem=f"the column {self.truth!r} is empty")
        id = None if self.id is None else str(row.get(self.id, "")) or None
        try:
            return Line(number, {**self._instance(row), **self._truth(truth)}, id=id)
        except ValueError as error:
            return Line(number, problem=str(error))

    def _instance(self, row: Payload) -> JSON:
        if self.text:
            return {"text": {name: str(row[name]) for name in self.text if row[name] is not None}}
        names = self.features or [name for name in row if name not in (self.truth, self.id)]
        features: dict[str, float] = {}
        for name in names:
            features.update(feature(name, row[name]))
        return {"features": features}

    def _truth(self, value: Any) -> JSON:
        if isinstance(value, list | tuple):
            return {"labels": [str(label) for label in value]}
        if isinstance(value, dict):
            return {"relevance": value}
        if self.several:
            return {"labels": [part.strip() for part in str(value).split(self.several) if part.strip()]}
        return {"label": str(value)}


def feature(name: str, value: Any) -> dict[str, float]:
    """A cell as a feature: a number by the column's name, anything else as `column=value`, nothing if it is empty."""
    if value is None or value == "":
        return {}
    if isinstance(value, bool):
        return {name: float(value)}
    try:
        number = float(value)
    except (TypeError, ValueError):
        return {f"{name}={value}": 1.0}
    if math.isnan(number):
        return {}
    if math.isinf(number):
        raise ValueError(f"the column {name!r} holds {value}, which is not a finite number")
    return {name: number}


@dataclass(slots=True)
class Source:
    """A file being read; `bytes_read` moves as lines come, for a progress bar."""

    path: Path
    columns: Columns = field(default_factory=Columns)
    bytes_read: int = 0

    def text(self) -> Iterator[tuple[int, str]]:
        """The lines with their numbers, unpacked if need be; lines that are empty are passed over."""
        with self.path.open("rb") as file:
            for number, line in enumerate(_unpacked(file), 1):
                if number % 64 == 1:
                    self.bytes_read = file.tell()
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                if text.strip():
                    yield number, text
            self.bytes_read = file.tell()


def _unpacked(file: BinaryIO) -> Iterator[bytes]:
    zipped = file.read(2) == GZIP
    file.seek(0)
    try:
        yield from gzip.GzipFile(fileobj=file) if zipped else file
    except (EOFError, gzip.BadGzipFile) as error:
        raise FormatError(f"the file is damaged: {error}") from error


def read_csv(source: Source) -> Iterator[Line]:
    """A cell may hold line breaks in quotes, so rows are numbered by the line on which they end."""
    lines = source.text()
    _, header = next(lines, (0, ""))
    dialect: Any = csv.excel
    if header.count("\t") > header.count(","):
        dialect = csv.excel_tab
    elif header.count(";") > header.count(","):
        dialect = type("semicolons", (csv.excel,), {"delimiter": ";"})
    names = next(csv.reader([header], dialect), [])
    if source.columns.truth not in names:
        raise FormatError(
            f"the file has no column {source.columns.truth!r}; it has {', '.join(names) or 'none'}: name it with --truth"
        )
    place = [1]

    def counted() -> Iterator[str]:
        for number, text in lines:
            place[0] = number
            yield text + "\n"

    for row in csv.reader(counted(), dialect):
        if len(row) != len(names):
            yield Line(place[0], problem=f"has {len(row)} cells where the header has {len(names)}")
        else:
            yield source.columns.line(place[0], dict(zip(names, row, strict=True)))


def read_jsonl(source: Source) -> Iterator[Line]:
    """One object a line."""
    for number, text in source.text():
        try:
            value = json.loads(text)
        except ValueError as error:
            yield Line(number, problem=f"is not JSON: {error}")
            continue
        if isinstance(value, dict):
            yield from _object(number, value, source.columns)
        else:
            yield Line(number, problem="must be an object")


def _object(number: int, value: JSON, columns: Columns) -> Iterator[Line]:
    """A feedback body goes as it is, an event of a log as what it taught; any other object is a row by column."""
    if is_event(value):
        body = lesson(value)
        if body is not None:
            yield Line(number, body, id=str(value.get("feedback_id") or f"version {value['version']}"))
    elif any(name in value for name in INSTANCES) and any(name in value for name in TRUTHS):
        id = value.pop(columns.id, None) if columns.id not in (None, "feedback_id") else None
        own = value.pop("feedback_id", None)
        yield Line(number, value, id=own if id is None else str(id))
    else:
        yield columns.line(number, value)


def read_parquet(source: Source) -> Iterator[Line]:
    """Row groups in batches of 1,024: memory does not grow with the file."""
    try:
        from pyarrow import parquet  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError:
        raise FormatError("Parquet needs pyarrow; run: pip install 'feedrank[parquet]'") from None
    try:
        file = parquet.ParquetFile(source.path)
    except (OSError, ValueError) as error:
        raise FormatError(f"is not a Parquet file: {error}") from error
    names = file.schema_arrow.names
    exported = set(names) in (set(LOG), set(TRAINING))
    if not exported and source.columns.truth not in names:
        raise FormatError(
            f"the file has no column {source.columns.truth!r}; it has {', '.join(names)}: name it with --truth"
        )
    number = 0
    size = source.path.stat().st_size
    for batch in file.iter_batches(1024):
        for row in batch.to_pylist():
            number += 1
            source.bytes_read = size * number // max(file.metadata.num_rows, 1)
            if exported:
                cells = {name: from_cell(name, cell) for name, cell in row.items() if cell is not None}
                yield from _object(number, cells, source.columns)
            else:
                yield source.columns.line(number, row)


def read_libsvm(source: Source) -> Iterator[Line]:
    """LETOR if the first line has a qid."""
    lines = source.text()
    first = next(lines, None)
    if first is None:
        return

    def again() -> Iterator[tuple[int, str]]:
        yield first
        yield from lines

    if " qid:" in first[1]:
        for number, query in enumerate(queries(text for _, text in again()), 1):
            yield Line(number, {**query.instance, "relevance": query.relevance})
        return
    for number, text in again():
        words = text.partition("#")[0].split()
        try:
            features = dict(_pair(word) for word in words[1:])
        except ValueError as error:
            yield Line(number, problem=str(error))
            continue
        labels = words[0].split(",")
        several = len(labels) > 1 or bool(source.columns.several)
        yield Line(
            number, {"features": features, **({"labels": labels} if several else {"label": labels[0]})}
        )


def _pair(word: str) -> tuple[str, float]:
    name, colon, value = word.rpartition(":")
    if not colon or not name:
        raise ValueError(f"{word!r} is not `name:value`")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{word!r} is not a finite number")
    return name, number


def read_vw(source: Source) -> Iterator[Line]:
    """Simple and multiclass labels; a feature is named `namespace^feature`, as Vowpal Wabbit prints it."""
    for number, text in source.text():
        head, bar, tail = text.partition("|")
        words = head.split()
        if not bar or not words or not tail.strip():
            yield Line(
                number, problem="must be `label |namespace feature ...`: a line without a label cannot teach"
            )
            continue
        body: JSON = {"label": words[0]}
        try:
            if len(words) > 1 and not words[1].startswith("'"):
                body["weight"] = float(words[1])
            body["features"] = _namespaces(tail)
        except ValueError as error:
            yield Line(number, problem=str(error))
            continue
        yield Line(number, body)


def _namespaces(text: str) -> dict[str, float]:
    features: dict[str, float] = {}
    for part in text.split("|"):
        words = part.split()
        scale, prefix = 1.0, ""
        if words and not part.startswith((" ", "\t")):
            prefix, colon, value = words.pop(0).partition(":")
            scale = float(value) if colon else 1.0
        for word in words:
            name, colon, value = word.rpartition(":")
            full, number = (name, float(value)) if colon else (word, 1.0)
            key = f"{prefix}^{full}" if prefix else full
            features[key] = features.get(key, 0.0) + scale * number
    return features


Reader = Callable[[Source], Iterator[Line]]
READERS: dict[str, Reader] = {
    "csv": read_csv,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "libsvm": read_libsvm,
    "vw": read_vw,
}
ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".letor": "libsvm",
    ".vw": "vw",
}


def format_of(path: Path) -> str:
    """The format that the file's name tells, or FormatError."""
    ending = [suffix for suffix in path.suffixes if suffix != ".gz"][-1:]
    if not ending or ending[0].lower() not in ENDINGS:
        raise FormatError(f"{path.name} does not tell its format; use --format {', '.join(READERS)}")
    return ENDINGS[ending[0].lower()]
