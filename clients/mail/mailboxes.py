"""What a server says about folders and messages, read so that an odd server costs one folder or one message, never more.

RFC 3501 promises much that servers do not keep: STATUS without UIDVALIDITY, NIL for headers, names that are no modified
UTF-7. A message without readable headers is left alone and `report` gets a line; an unreadable folder raises one of ODD.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientAbortError, IMAPClientError
from imapclient.imap_utf7 import decode, encode
from imapclient.response_parser import parse_response

from .folder_names import is_choice, label_of, special
from .message import Headers, Report, own_id, read_headers
from .namespaces import Namespaces
from .sources import MAX_BYTES

__all__ = [
    "ODD", "Box", "OddFolderError", "OneLine", "Status", "boxes", "headers", "message", "messages_of",
    "remain", "status"
]  # fmt: skip

FETCH = 200
MOST = 10_000_000
_RANGES = re.compile(rb"\bALL ([0-9:,]+)")
_FIELDS = "MESSAGE-ID DATE"  # by which a message is known, and put in order
_STATUS = ("UIDVALIDITY", "UIDNEXT", "MESSAGES")
_BODY = b"BODY[]"
ODD = (IMAPClientError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading an answer raises that no server should give; a cut connection (IMAPClientAbortError) is not among them."""


class OddFolderError(IMAPClientError):  # type: ignore[misc]
    """This folder cannot be read; the others can."""


class OneLine:
    """A context in which an odd answer costs one line; a cut connection goes on to the caller."""

    def __init__(self, name: str, report: Report) -> None:
        self._name, self._report = name, report

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if error is None or isinstance(error, IMAPClientAbortError) or not isinstance(error, ODD):
            return False
        self._report(f"{self._name}: {error or type(error).__name__}")
        return True


@dataclass(frozen=True, slots=True)
class Box:
    """A folder as the server lists it, and what it would be called in the learner."""

    name: str
    label: str
    foreign: bool = False
    """Not the person's own, but named: what others put there is not the person's choice."""


@dataclass(frozen=True, slots=True)
class Status:
    """What tells whether a folder changed."""

    uidvalidity: int
    uidnext: int
    messages: int


def boxes(
    imap: IMAPClient,
    inbox: str,
    exclude: Sequence[str] = (),
    archive: bool = False,
    report: Report = lambda line: None,
    shared: Sequence[str] = (),
    statuses: dict[str, Status] | None = None,
) -> list[Box]:
    """The folders to learn from: the person's own that hold choices (`folder_names`), but not the inbox.

    Of those in namespaces of others only what a pattern of `shared` names. `statuses` gets what the server tells of
    the folders in the same answer (LIST-STATUS), which is all of them or none.
    """
    namespaces = Namespaces.of(imap)
    listed = []
    for flags, delimiter, name in _listed(imap, report, statuses):
        separator = (delimiter or b"/").decode("ascii", "replace")
        foreign = namespaces.is_foreign(name)
        label = label_of(name.split(separator), [] if foreign else namespaces.prefix(name))
        if foreign and not any(fnmatchcase(one, pattern) for pattern in shared for one in (name, label)):
            continue
        if special(flags, archive) or name.upper() == inbox.upper() or label == label_of([inbox]):
            continue
        if is_choice(label, exclude, archive) and is_choice(name, exclude, archive):
            listed.append(Box(name, label, foreign))
    return listed


def _listed(
    imap: IMAPClient, report: Report, statuses: dict[str, Status] | None
) -> Iterator[tuple[Sequence[bytes], bytes | None, str]]:
    """Flags, separator and name of every folder that can be named."""
    protocol = imap._imap
    together = statuses is not None and imap.has_capability("LIST-STATUS")
    state, data = protocol._simple_command("LIST", b'""', b'"*"', *(_with_status(imap) if together else ()))
    imap._checkok("LIST", state, data)
    if statuses is not None and together:
        _, told = protocol._untagged_response(state, [None], "STATUS")
        statuses.update(_statuses(told))
    _, data = protocol._untagged_response(state, [None], "LIST")
    lines = [line for line in data if line]
    try:
        entries = [parse_response(lines)] if lines else []
    except ODD:  # one of them cannot be read: take the others
        entries = []
        for line in lines:
            try:
                entries.append(parse_response([line]))
            except ODD:
                report(f"{str(line)[:80]}: a folder that cannot be read is left out")
    for entry in entries:
        for flags, delimiter, raw in zip(entry[::3], entry[1::3], entry[2::3], strict=False):
            name = _name(raw)
            if name is None:
                report(f"{str(raw)[:80]}: a folder with an unreadable name is left out")
            elif not isinstance(delimiter, bytes | None) or not _are_flags(flags):
                report(f"{name}: a folder that cannot be read is left out")
            else:
                yield flags, delimiter, name


def _with_status(imap: IMAPClient) -> tuple[bytes, bytes]:
    """What makes LIST tell the status of every folder; what folders are for is told only if it is asked too."""
    special_use = b"SPECIAL-USE " if imap.has_capability("SPECIAL-USE") else b""
    return b"RETURN", b"(" + special_use + b"STATUS (" + " ".join(_STATUS).encode() + b"))"


def _statuses(lines: Sequence[Any]) -> Iterator[tuple[str, Status]]:
    """(folder, status) of each line that can be read; the others are asked for one at a time."""
    for line in _with_literals(lines):
        try:
            raw, items = parse_response(line)
            values = dict(zip(items[::2], items[1::2], strict=True))
            numbers = [values[item.encode()] for item in _STATUS]
        except ODD:
            continue
        name = _name(raw)
        if name is not None and all(isinstance(number, int) for number in numbers):
            yield name, Status(*numbers)


def _with_literals(lines: Sequence[Any]) -> Iterator[list[Any]]:
    """The parts of each line together: a name that came as a literal has the rest of its line behind it."""
    rest = iter(line for line in lines if line)
    for line in rest:
        yield [line, next(rest, b"")] if isinstance(line, tuple) else [line]


def _are_flags(flags: Any) -> bool:
    return isinstance(flags, tuple) and all(isinstance(flag, bytes) for flag in flags)


def _name(raw: Any) -> str | None:
    if not isinstance(raw, int | bytes):
        return None
    try:
        name = str(raw) if isinstance(raw, int) else decode(raw)
        return name if name and (isinstance(raw, int) or encode(name) == raw) else None
    except ValueError:
        return None


def status(imap: IMAPClient, name: str) -> Status:
    """By STATUS, or by EXAMINE where that does not tell."""
    try:
        return _status(imap, name)
    except IMAPClientError:
        raise
    except ODD as error:
        raise OddFolderError(f"the server's answer cannot be read: {error}") from error


def _status(imap: IMAPClient, name: str) -> Status:
    reply: dict[bytes, Any] = imap.folder_status(name, _STATUS)
    if not all(isinstance(reply.get(item.encode()), int) for item in _STATUS):
        selected = imap.select_folder(name, readonly=True)
        reply = {b"MESSAGES": selected.get(b"EXISTS"), **selected, **reply}
        reply.setdefault(b"UIDNEXT", 0)  # then a change shows in UIDVALIDITY and the number of messages only
    values = [reply.get(item.encode()) for item in _STATUS]
    if not all(isinstance(value, int) for value in values):
        raise OddFolderError("the server does not tell its UIDVALIDITY")
    return Status(*values)  # type: ignore[arg-type]


def messages_of(imap: IMAPClient, *criteria: str) -> list[int]:
    """The UIDs of the selected folder; not of what is marked as deleted, which programs without MOVE leave behind."""
    if not imap.has_capability("ESEARCH"):
        return [int(uid) for uid in imap.search(["UNDELETED", *criteria])]
    # Ranges: 20,000 messages in some bytes.
    protocol = imap._imap
    words = (b"SEARCH", b"RETURN", b"(ALL)", b"UNDELETED", *(one.encode() for one in criteria))
    state, data = protocol._simple_command("UID", *words)
    imap._checkok("SEARCH", state, data)
    _, data = protocol._untagged_response(state, [None], "ESEARCH")
    told = [part for line in data if line for part in _RANGES.findall(line)]
    return [uid for part in told for uid in _range(part)]


def _range(part: bytes) -> Iterator[int]:
    """The UIDs of `ALL 1:4,7`."""
    for one in part.split(b","):
        first, _, last = one.partition(b":")
        low, high = sorted((int(first), int(last or first)))
        if high - low >= MOST:
            raise OddFolderError(f"the server tells of more than {MOST} messages")
        yield from range(low, high + 1)


def remain(imap: IMAPClient, folder: str, uids: Sequence[int], uidvalidity: int | None = None) -> bool:
    """Whether one of these messages is in the folder, if its UIDs mean what they did; the folder is selected then."""
    selected = imap.select_folder(folder, readonly=True)
    if uidvalidity is not None and selected.get(b"UIDVALIDITY") != uidvalidity:
        return False
    return bool(imap.search(["UID", ",".join(map(str, uids)), "UNDELETED"]))


def headers(
    imap: IMAPClient, uids: Sequence[int], report: Report = lambda line: None
) -> Iterator[tuple[int, Headers]]:
    """The headers by which these messages of the selected folder are known, as far as they are there and can be read.

    Of one without a Message-ID all headers: it is known by them.
    """
    for start in range(0, len(uids), FETCH):
        chunk = uids[start : start + FETCH]
        known = dict(_fetched(imap, chunk, f"HEADER.FIELDS ({_FIELDS})", report))
        unnamed = [uid for uid, raw in known.items() if not own_id(read_headers(raw))]
        known.update((uid, raw) for uid, raw in _fetched(imap, unnamed, "HEADER", report))
        for uid, raw in sorted(known.items()):
            if raw:
                yield uid, read_headers(raw)
            else:
                report(f"message {uid} has no headers that can be read; it is left alone")


def _fetched(
    imap: IMAPClient, uids: Sequence[int], section: str, report: Report
) -> Iterator[tuple[int, bytes]]:
    """(UID, section) of each message that is there; an empty section of one that has none."""
    if not uids:
        return
    try:
        replies = imap.fetch(uids, [f"BODY.PEEK[{section}]"])
    except IMAPClientAbortError:
        raise
    except ODD:  # one of them cannot be read: ask for one at a time
        replies = dict(_one_by_one(imap, uids, section, report))
    for uid, reply in replies.items():
        told = [value for item, value in reply.items() if item.upper().startswith(b"BODY[HEADER")]
        if told:  # else it went away meanwhile
            yield uid, told[0] or b""


def _one_by_one(
    imap: IMAPClient, uids: Sequence[int], section: str, report: Report
) -> Iterator[tuple[int, dict[bytes, Any]]]:
    for uid in uids:
        try:
            yield uid, imap.fetch([uid], [f"BODY.PEEK[{section}]"]).get(uid, {})
        except IMAPClientAbortError:
            raise
        except ODD as error:
            report(f"message {uid} cannot be read and is left alone: {error or type(error).__name__}")


def message(imap: IMAPClient, uid: int, report: Report = lambda line: None) -> bytes | None:
    """The beginning of a message of the selected folder; None if it is not there, or cannot be read."""
    try:
        reply: dict[bytes, Any] = imap.fetch([uid], [f"BODY.PEEK[]<0.{MAX_BYTES}>"]).get(uid, {})
    except IMAPClientAbortError:
        raise
    except ODD as error:
        report(f"message {uid} cannot be read and is left alone: {error or type(error).__name__}")
        return None
    raw = reply.get(b"BODY[]<0>", reply.get(_BODY))
    return raw[:MAX_BYTES] if raw else None
