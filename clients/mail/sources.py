"""Mailboxes to train from: Maildir, mbox, a directory of messages. A source is listed first, then read in date order.

Listing reads headers only, because all dates must be known before the first message is learned.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from .folder_names import INBOX, label_of, modified_utf7
from .message import Headers, Report, date_of, is_whole, key, read_headers

__all__ = ["MessageRef", "SourceError", "find", "in_order", "stayed"]

HEAD = 1 << 14
"""Bytes read at first for the headers, which is all that is needed to put messages in order; more if they are longer."""
MAX_BYTES = 1 << 20
"""Bytes read of one message: more only holds attachments."""
MAX_KEPT = 1 << 26
"""Bytes of short messages that are kept from the listing, which has read them whole, until they are learned."""
KEPT = timedelta(days=3)
"""After which what was read in the inbox belongs there."""
_MAILDIR = ("cur", "new")
_TRASHED = re.compile(r"[:;!]2,[A-Z]*T")
_READ = re.compile(r"[:;!]2,[A-Z]*S")
_START = re.compile(rb"(?:\A|\n\r?\n)(From [^\r\n]+\r?\n)(?=[!-9;-~]+:)")
_HEADERS = {"from", "date", "subject", "message-id", "received"}
_OLDEST = datetime(1970, 1, 1, tzinfo=UTC)


class SourceError(Exception):
    """There is no mailbox in that place."""


@dataclass(frozen=True, slots=True)
class MessageRef:
    """A message of a source that has not been read yet."""

    folder: str
    key: str
    date: datetime
    load: Callable[[], bytes]
    is_read: bool = False
    """Whether the mailbox says that the person has read it."""


def in_order(messages: Iterable[MessageRef]) -> list[MessageRef]:
    """By date, then by id: the same order from every source."""
    return sorted(messages, key=lambda one: (one.date, one.key, one.folder))


def find(path: str | Path, report: Report = lambda line: None) -> Iterator[MessageRef]:
    """The messages below `path`, whatever kind of mailbox it is; what cannot be read costs a line and is left out."""
    root = Path(path)
    if root.is_file():
        yield from _mbox(root, label_of([root.name.removesuffix(".mbox")]))
    elif not root.is_dir():
        raise SourceError(f"{root} is neither a directory nor a file")
    elif _is_maildir(root) or any(map(_is_maildir, _directories(root))):
        yield from _maildirs(root, report, _Kept())
    else:
        yield from _tree(root, report, _Kept())


def _left_out(report: Report, error: OSError) -> None:
    report(f"{error.filename}: {error.strerror}; left out")


class _Kept:
    """Short messages, as long as there is room for them."""

    def __init__(self) -> None:
        self._room = MAX_KEPT

    def loader(self, path: str, head: bytes) -> Callable[[], bytes]:
        """How to load the file that begins with `head`; a file that is gone is empty, kept or not."""
        if len(head) >= HEAD or len(head) > self._room:
            return partial(_read, path)
        self._room -= len(head)
        return lambda: head if os.path.exists(path) else b""


def _is_maildir(path: Path) -> bool:
    # `Path.is_dir` raises where a directory above may not be read.
    return all(os.path.isdir(path / part) for part in _MAILDIR)


def _directories(root: Path) -> list[Path]:
    return sorted(entry for entry in root.iterdir() if entry.is_dir())


def _maildirs(root: Path, report: Report, kept: _Kept) -> Iterator[MessageRef]:
    """Maildir++ (`.Work.Travel` beside `cur`) and Maildirs in plain directories (LAYOUT=fs)."""
    for place, directories, _ in os.walk(root, onerror=partial(_left_out, report)):
        directories.sort()
        here = Path(place)
        if not _is_maildir(here):
            continue
        directories[:] = [name for name in directories if name not in (*_MAILDIR, "tmp")]
        below = here.relative_to(root).parts
        names = below[0][1:].split(".") if len(below) == 1 and below[0].startswith(".") else below
        folder = label_of(map(modified_utf7, names))
        for part in _MAILDIR:
            try:
                with os.scandir(here / part) as entries:
                    paths = [
                        one.path
                        for one in entries
                        if one.is_file() and not one.name.startswith(".") and not _TRASHED.search(one.name)
                    ]
            except OSError as error:
                _left_out(report, error)
                continue
            for path in paths:
                try:
                    head = _head(path)
                    is_read = _READ.search(os.path.basename(path)) is not None
                    yield _reference(folder, read_headers(head), kept.loader(path, head), is_read)
                except OSError as error:
                    _left_out(report, error)


def _tree(root: Path, report: Report, kept: _Kept) -> Iterator[MessageRef]:
    """One message a file, or one mbox a file; the directory is the folder, `Work.sbd` that of what is below Work."""
    for place, directories, files in os.walk(root, onerror=partial(_left_out, report)):
        directories.sort()
        parents = [name.removesuffix(".sbd") for name in Path(place).relative_to(root).parts]
        folder = label_of(parents)
        for name in sorted(files):
            path = os.path.join(place, name)
            if name.startswith(".") or not os.path.isfile(path):
                continue
            try:
                head = _head(path)
            except OSError as error:
                _left_out(report, error)
                continue
            if head.startswith(b"From "):
                yield from _mbox(Path(path), label_of([*parents, name.removesuffix(".mbox")]))
            elif not _HEADERS.isdisjoint(headers := read_headers(head)):
                yield _reference(folder, headers, kept.loader(path, head))


def _head(path: str) -> bytes:
    """The beginning of a file, up to the end of its headers or more."""
    with open(path, "rb", buffering=0) as file:
        head = file.read(HEAD)
        if not is_whole(head):
            head += file.read(MAX_BYTES - HEAD)
    return head


def _read(path: str, start: int = 0, size: int = MAX_BYTES) -> bytes:
    """The message; empty if it is no longer there: mail programs move files while we read, and the next run finds it."""
    try:
        with open(path, "rb", buffering=0) as file:
            if start:
                file.seek(start)
            return file.read(min(size, MAX_BYTES)) or b""
    except OSError:
        return b""


def _mbox(path: Path, folder: str) -> Iterator[MessageRef]:
    if not path.stat().st_size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        starts = [match.start(1) for match in _START.finditer(data)]
        for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
            head = data[start : min(end, start + HEAD)]
            if not is_whole(head):
                head = data[start : min(end, start + MAX_BYTES)]
            headers = read_headers(head)
            if not _is_deleted(headers):
                load = partial(_of_mbox, str(path), start, end - start, key(headers))
                yield _reference(folder, headers, load, _is_read(headers))


def _of_mbox(path: str, start: int, size: int, identity: str) -> bytes:
    """The message; empty if another one is there by now: mail programs compact an mbox while we read."""
    raw = _read(path, start, size)
    return raw if raw.startswith(b"From ") and key(read_headers(raw)) == identity else b""


def _is_deleted(headers: Headers) -> bool:
    """Whether a program marked it in its mbox, as when it is moved; it stays there until the mbox is compacted."""
    return bool(_mozilla(headers) & 8) or "D" in headers.text("x-status")


def _is_read(headers: Headers) -> bool:
    return bool(_mozilla(headers) & 1) or "R" in headers.text("status")


def _mozilla(headers: Headers) -> int:
    """What Thunderbird notes of a message."""
    try:
        return int(headers.text("x-mozilla-status")[:4], 16)
    except ValueError:
        return 0


def _reference(folder: str, headers: Headers, load: Callable[[], bytes], is_read: bool = False) -> MessageRef:
    return MessageRef(folder, key(headers), date_of(headers) or _OLDEST, load, is_read)


def stayed(one: MessageRef, now: datetime) -> bool:
    """Whether the message was read and left in the inbox for days: the person keeps it there."""
    return one.folder == INBOX and one.is_read and one.date <= now - KEPT
