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
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from ..letor import queries
from ..payloads import JSON
from .encoding import encoding_of, lines
from .log_rows import (
    INSTANCES,
    LOG,
    OLDER_LOG,
    OLDER_TRAINING,
    TRAINING,
    TRUTHS,
    from_cell,
    is_event,
    lesson,
)
from .parquet import arrow
from .tables import Columns, FormatError, Line

GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class Source:
    """A file being read; `bytes_read` moves as lines come, for a progress bar. `notes` say what was recognized."""

    path: Path
    columns: Columns = field(default_factory=Columns)
    bytes_read: int = 0
    notes: list[str] = field(default_factory=list)

    def text(self) -> Iterator[tuple[int, str]]:
        """The lines with their numbers, unpacked if need be; lines that are empty are passed over."""
        with _unpacked(self.path) as (_, file):
            encoding = encoding_of(file)
        if encoding.note:
            self.notes.append(encoding.note)
        with _unpacked(self.path) as (packed, file):
            for number, line in enumerate(lines(file, encoding), 1):
                if number % 64 == 1:
                    self.bytes_read = packed.tell()
                text = line.rstrip("\r")
                if text.strip():
                    yield number, text
            self.bytes_read = packed.tell()


@contextmanager
def _unpacked(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The file as it is, and as it is read."""
    with path.open("rb") as file:
        zipped = file.read(2) == GZIP
        file.seek(0)
        try:
            yield file, cast(BinaryIO, gzip.GzipFile(fileobj=file)) if zipped else file
        except (EOFError, gzip.BadGzipFile) as error:
            raise FormatError(f"the file is damaged: {error}") from error


SEPARATORS = ",;\t|"


def read_csv(source: Source) -> Iterator[Line]:
    """A cell may hold line breaks in quotes, so rows are numbered by the line on which they end."""
    rows = csv_rows(source)
    _, names = next(rows, (0, []))
    source.columns.check(names)
    for number, cells in rows:
        if len(cells) != len(names):
            yield Line(number, problem=f"has {len(cells)} cells where the header has {len(names)}")
        else:
            yield source.columns.line(number, dict(zip(names, cells, strict=True)))


def csv_rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """The header, then the rows. Excel's own first line `sep=;` names the separator; else the header shows it."""
    texts = source.text()
    number, header = next(texts, (0, ""))
    if header.lower().startswith("sep=") and len(header) == 5:
        separator = header[4]
        number, header = next(texts, (0, ""))
    else:
        separator = max(SEPARATORS, key=header.count)
    place = [number]

    def counted() -> Iterator[str]:
        yield header + "\n"
        for number, text in texts:
            place[0] = number
            yield text + "\n"

    for row, cells in enumerate(csv.reader(counted(), delimiter=separator)):
        yield place[0], [source.columns.bare(cell, "columns") for cell in cells] if row == 0 else cells


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
        if value["kind"] == "rename":
            yield Line(number, rename=value["rename"])
        elif body is not None:
            yield Line(number, body, id=str(value.get("feedback_id") or f"version {value['version']}"))
    elif any(name in value for name in INSTANCES) and any(name in value for name in TRUTHS):
        id = value.pop(columns.id, None) if columns.id not in (None, "feedback_id") else None
        own = value.pop("feedback_id", None)
        yield Line(number, value, id=own if id is None else str(id))
    else:
        yield columns.line(number, value)


def read_parquet(source: Source) -> Iterator[Line]:
    """Row groups in batches of 1,024: memory does not grow with the file."""
    parquet = arrow().parquet
    try:
        file = parquet.ParquetFile(source.path)
    except (OSError, ValueError) as error:
        raise FormatError(f"is not a Parquet file: {error}") from error
    names = file.schema_arrow.names
    exported = set(names) in (set(LOG), set(OLDER_LOG), set(TRAINING), set(OLDER_TRAINING))
    if not exported:
        source.columns.check(names)
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
    texts = source.text()
    first = next(texts, None)
    if first is None:
        return

    def again() -> Iterator[tuple[int, str]]:
        yield first
        yield from texts

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


def reader_of(path: Path, form: str | None = None) -> Reader:
    """The reader of a format, by default that which the file's name tells, or FormatError."""
    name = form or format_of(path)
    if name not in READERS:
        raise FormatError(f"there is no format {name!r}; there are {', '.join(READERS)}")
    return READERS[name]


def format_of(path: Path) -> str:
    """The format that the file's name tells, or FormatError."""
    ending = [suffix for suffix in path.suffixes if suffix != ".gz"][-1:]
    if not ending or ending[0].lower() not in ENDINGS:
        raise FormatError(f"{path.name} does not tell its format; use --format {', '.join(READERS)}")
    return ENDINGS[ending[0].lower()]
