"""A message as its bytes stand, read without ever failing: what cannot be read is left out.

The walk is our own, not `email.parser`: it touches only the headers that carry features and the text parts, so a large
attachment costs one search for its boundary, and no byte sequence raises.
"""

from __future__ import annotations

import binascii
import hashlib
import quopri
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache

from .mime import charset_text, content, encoded_words, ids, people

Report = Callable[[str], None]  # where a line about mail goes

MAX_DEPTH = 8
MAX_PARTS = 64
MAX_TEXT = 1 << 17
"""Characters of text that are read; a longer message is known by its beginning."""
MAX_HEADER = 1 << 14
"""Characters of one header that are read; how long all of them together are does not matter."""
MAX_FIELDS = 1000
MAX_ID = 200

_NAME = re.compile(rb"[!-9;-~]+")

# What a mailbox, not the sender, writes: it changes when a message is moved.
_ADDED = {"status", "x-status", "x-keywords", "x-uid", "x-mozilla-status", "x-mozilla-status2", "received"}


class Headers(Mapping[str, str]):
    """The first value of every header field by its name in lower case, unfolded; decoded when it is asked for."""

    __slots__ = ("_lines",)

    def __init__(self, lines: dict[str, list[bytes]]) -> None:
        self._lines = lines

    def __getitem__(self, name: str) -> str:
        lines = self._lines[name]
        whole = lines[0] if len(lines) == 1 else b"\n".join(lines)
        if whole.isascii() and 0 not in whole:  # nearly all, at a third of the cost
            text = whole.decode("ascii").strip()
            return text if len(lines) == 1 else " ".join(map(str.strip, text.split("\n")))
        return " ".join(charset_text(line, "utf-8").strip() for line in lines).strip()

    def text(self, name: str) -> str:
        """The value of a field; empty without it."""
        return self[name] if name in self._lines else ""

    def __contains__(self, name: object) -> bool:
        return name in self._lines

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


@dataclass(frozen=True, slots=True)
class Message:
    """What a message says about itself, decoded."""

    id: str
    """Its Message-ID, or a digest of its headers."""
    date: datetime | None
    subject: str
    sender: list[str]
    """Addresses, in lower case; almost always one."""
    sender_name: str
    recipients: list[str]
    """Addresses of To and Cc."""
    recipient_names: str
    list_id: str
    references: list[str]
    plain: str
    html: str
    attachments: list[str]


def read(raw: bytes) -> Message:
    """The message in `raw`, whatever `raw` is."""
    headers, body = _split(raw)
    sender, sender_name = people(encoded_words(headers.text("from") or headers.text("sender")))
    recipients, recipient_names = people(
        " , ".join(encoded_words(headers[name]) for name in ("to", "cc") if name in headers)
    )
    # Gateways that put addresses of their own into To keep the names that people wrote in these.
    for name in ("x-to", "x-cc"):
        if name in headers:
            recipient_names += " " + people(encoded_words(headers[name]))[1]
    if "x-from" in headers:
        sender_name += " " + people(encoded_words(headers["x-from"]))[1]
    plain: list[str] = []
    html: list[str] = []
    attachments: list[str] = []
    for content_type, name, text in _parts(headers, body):
        if name:
            attachments.append(name)
        elif content_type == "text/html":
            html.append(text)
        else:
            plain.append(text)
    references = headers.text("references") + " " + headers.text("in-reply-to")
    return Message(
        id=key(headers),
        date=date_of(headers),
        subject=encoded_words(headers.text("subject")),
        sender=sender,
        sender_name=sender_name.strip(),
        recipients=recipients,
        recipient_names=recipient_names.strip(),
        list_id=_list_id(headers),
        references=list(dict.fromkeys(one for one in ids(references) if len(one) <= MAX_ID)),
        plain="\n".join(plain)[:MAX_TEXT],
        html="\n".join(html)[:MAX_TEXT],
        attachments=attachments,
    )


def key(headers: Headers) -> str:
    """What a message is known by wherever it is moved: its Message-ID, or a digest of its headers."""
    own = own_id(headers)
    if own:
        return own
    whole = "\n".join(f"{name}: {value}" for name, value in sorted(headers.items()) if name not in _ADDED)
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def own_id(headers: Headers) -> str:
    """Its Message-ID; empty if it has none that can be used."""
    text = headers.text("message-id")
    own = next(iter(ids(text)), text.strip())
    return own if len(own) <= MAX_ID else ""


def read_headers(raw: bytes) -> Headers:
    """The headers of `raw`, whatever follows them."""
    return _split(raw)[0]


def is_whole(raw: bytes) -> bool:
    """Whether the headers end within `raw`."""
    return _blank_line(raw, 0)[0] < len(raw)


def _blank_line(raw: bytes, start: int) -> tuple[int, int]:
    """Where the headers end and the body begins: at the first \\r?\\n\\r?\\n or \\r\\r, else at the end."""
    # Three plain searches, each no farther than the one before: a tenth of what one pattern costs.
    end = begin = len(raw)
    for mark in (b"\n\r\n", b"\n\n", b"\r\r"):
        at = raw.find(mark, start, end + 1)
        if at >= 0:
            end, begin = at, at + len(mark)
    if end > start and raw[end - 1 : end + 1] == b"\r\n":
        end -= 1
    return end, begin


def _split(raw: bytes) -> tuple[Headers, bytes]:
    start = 0
    if raw[:5] == b"From ":  # an mbox separator line
        start = raw.find(b"\n") + 1
    end, begin = _blank_line(raw, start)
    head, body = raw[start:end], raw[begin:]
    fields: dict[str, list[bytes]] = {}
    lines: list[bytes] = []  # of the field that was begun last, whether it is kept or not
    size = 0
    for line in head.splitlines():
        if line[:1] in (b" ", b"\t"):
            if size < MAX_HEADER:
                lines.append(line[: MAX_HEADER - size])
                size += len(line)
        elif (colon := line.find(b":", 0, MAX_ID)) >= 0 and (name := _field(line[:colon])):
            if len(fields) >= MAX_FIELDS:
                break
            lines, size = [line[colon + 1 : colon + 1 + MAX_HEADER]], len(line)
            fields.setdefault(name, lines)
        else:
            lines, size = [], MAX_HEADER
    return Headers(fields), body


@lru_cache(maxsize=1024)
def _field(before: bytes) -> str:
    """The name of a field, of what stands before the colon; empty if it is none. Nearly all messages have the same ones."""
    name = before.rstrip(b" \t")
    return name.decode("ascii").lower() if _NAME.fullmatch(name) else ""


def _parts(headers: Headers, body: bytes) -> Iterator[tuple[str, str, str]]:
    """Each leaf as (content type, name if it is an attachment, else its text)."""
    pending: list[tuple[Headers, bytes, int]] = [(headers, body, 0)]
    seen = 0
    while pending and seen < MAX_PARTS:
        headers, body, depth = pending.pop()
        seen += 1
        content_type, parameters = content(headers.text("content-type"))
        disposition, named = content(headers.text("content-disposition"))
        name = named.get("filename") or parameters.get("name", "")
        if content_type.startswith("multipart/") and parameters.get("boundary") and depth < MAX_DEPTH:
            parts = _multipart(body, parameters["boundary"])
            pending.extend((*_split(part), depth + 1) for part in reversed(parts))
        elif content_type == "message/rfc822" and depth < MAX_DEPTH:
            pending.append((*_split(body), depth + 1))
        elif disposition == "attachment" or name or not content_type.startswith("text/"):
            if seen > 1 or name:
                yield content_type, encoded_words(name) or "unnamed", ""
        else:
            text = charset_text(_decode(headers, body), parameters.get("charset", "utf-8"))
            yield content_type, "", text[:MAX_TEXT]


def _multipart(body: bytes, boundary: str) -> list[bytes]:
    """The parts between the lines `--boundary`; what a cut message leaves open counts as a part."""
    mark = b"\n--" + boundary.encode("utf-8", "replace")
    parts = (b"\n" + body).split(mark, MAX_PARTS)[1:]
    kept = []
    for part in parts:
        if part[:2] == b"--":
            break
        end_of_line = part.find(b"\n")
        # a part without headers starts with a blank line, which the split at the blank line has to see
        kept.append(
            part[end_of_line + 1 :] if part[end_of_line + 1 : end_of_line + 2] not in b"\r\n" else part
        )
    return kept


def _decode(headers: Headers, body: bytes) -> bytes:
    """The body out of its transfer encoding; only as much as will be read."""
    encoding = headers.text("content-transfer-encoding").strip().lower()
    body = body[: 4 * MAX_TEXT]
    if encoding == "quoted-printable":
        return quopri.decodestring(body)
    if encoding == "base64":
        letters = re.sub(rb"[^A-Za-z0-9+/]", b"", body)
        return binascii.a2b_base64(letters[: len(letters) // 4 * 4])
    return body


def _list_id(headers: Headers) -> str:
    value = headers.text("list-id")
    own = next(iter(ids(value)), value.strip()) or headers.text("x-mailing-list").strip()
    return own.lower()[:MAX_ID]


def date_of(headers: Headers) -> datetime | None:
    """The Date header in UTC, if it is one."""
    value = headers.text("date")
    if not value:
        return None
    try:
        date = parsedate_to_datetime(value)
        return (date.replace(tzinfo=UTC) if date.tzinfo is None else date).astimezone(UTC)
    except (ValueError, OverflowError, TypeError, IndexError):  # a date is whatever somebody wrote
        return None
