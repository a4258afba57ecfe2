"""Readers of the public data sets that the benchmarks use; nothing here is needed by the package or its tests.

Each takes the folder that holds the files and yields plain Python values, so that any learner can be fed with them.
"""

from __future__ import annotations

import csv
import gzip
import re
import tarfile
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

WORD = re.compile(r"[a-z0-9]+")


def enron(path: Path, user: str) -> Iterator[tuple[list[str], str]]:
    """(words, folder) of each message of `path/user.tar.gz`, in the order of the Date headers.

    Words are those of subject and body, once more behind `subject:` where they stand there, and the addresses and names
    of the sender and the recipients behind `from:` and `to:`. Each counts once.
    """
    dated = []
    with tarfile.open(path / f"{user}.tar.gz") as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                message = message_from_bytes(file.read())
                time = parsedate_to_datetime(str(message["Date"])).timestamp()
                dated.append((time, member.name, words(message)))
    for _, name, features in sorted(dated, key=lambda row: row[:2]):
        yield features, name.split("/")[-2]


def words(message: Message) -> list[str]:
    """The binary features of one message, sorted."""
    subject = WORD.findall(str(message["Subject"] or "").lower())
    vocabulary = {*subject, *("subject:" + word for word in subject)}
    for part in message.walk():
        if part.get_content_maintype() == "text":
            body = part.get_payload(decode=True)
            if isinstance(body, bytes):
                vocabulary.update(WORD.findall(body.decode("latin-1").lower()))
    for prefix, addresses, names in (
        ("from:", ("From",), ("X-From",)),
        ("to:", ("To", "Cc"), ("X-To", "X-cc")),
    ):
        vocabulary.update(
            prefix + address.lower() for _, address in getaddresses(_lines(message, addresses)) if address
        )
        vocabulary.update(prefix + word for word in WORD.findall(" ".join(_lines(message, names)).lower()))
    return sorted(vocabulary)


def _lines(message: Message, headers: tuple[str, ...]) -> list[str]:
    return [str(line) for header in headers for line in message.get_all(header, [])]


class Query(NamedTuple):
    """One LETOR query: a row of `features` per document and its grade."""

    qid: str
    features: list[list[float]]
    grades: list[float]


def letor(path: Path, name: str) -> Iterator[Query]:
    """The queries of `path/name.txt.gz` (lines `grade qid:Q 1:v 2:v ... # comment`), in the order of the file."""
    query: Query | None = None
    with gzip.open(path / f"{name}.txt.gz", "rt") as lines:
        for line in lines:
            grade, qid, *pairs = line.partition("#")[0].split()
            if query is None or qid != query.qid:
                if query is not None:
                    yield query
                query = Query(qid, [], [])
            query.features.append([float(pair.partition(":")[2]) for pair in pairs])
            query.grades.append(float(grade))
    if query is not None:
        yield query


def multilabel(
    path: Path, name: str, labels: str | None = None
) -> Iterator[tuple[dict[str, float], list[str]]]:
    """(features, relevant labels) of each row of `path/name.arff.gz`; zeros are left out.

    The labels are those named in `path/labels.xml` (`labels` is `name` unless given: scene-train has scene.xml).
    """
    tree = ElementTree.parse(path / f"{labels or name}.xml")
    label_names = {node.attrib["name"] for node in tree.iter() if node.tag.endswith("label")}
    attributes: list[str] = []
    with gzip.open(path / f"{name}.arff.gz", "rt") as lines:
        for line in lines:
            head = line.strip().lower()
            if head.startswith("@data"):
                break
            if head.startswith("@attribute"):
                attributes.append(
                    next(csv.reader([line.split(None, 1)[1]], delimiter=" ", quotechar="'")).pop(0)
                )
        for line in lines:
            row = line.strip()
            if not row or row.startswith("%"):
                continue
            if row.startswith("{"):
                cells = [cell.split() for cell in row.strip("{} ").split(",") if cell]
                values = {attributes[int(index)]: float(value) for index, value in cells}
            else:
                values = dict(zip(attributes, map(float, row.split(",")), strict=True))
            features = {key: value for key, value in values.items() if value and key not in label_names}
            yield features, [key for key, value in values.items() if value and key in label_names]
