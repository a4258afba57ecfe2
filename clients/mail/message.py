"""A message as its bytes stand, read without ever failing: what cannot be read is left out.

The walk is our own, not `email.parser`: it touches only the headers that carry features and the text parts, so a large
attachment costs one search for its boundary, and no byte sequence raises.
"""

from __future__ import annotations

import binascii
import codecs
import hashlib
import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.header import decode_header
from email.utils import parsedate_to_datetime

MAX_DEPTH = 8
MAX_PARTS = 64
MAX_TEXT = 1 << 17
"""Characters of text that are read; a longer message is known by its beginning."""
MAX_HEADER = 1 << 14
MAX_ID = 200
MAX_RECIPIENTS = 200

_FIELD = re.compile(rb"^([!-9;-~]+)[ \t]*:[ \t]*((?:.*)(?:\r?\n[ \t].*)*)", re.MULTILINE)
_FOLD = re.compile(r"\r?\n[ \t]+")
_BLANK = re.compile(rb"\r?\n\r?\n|\r\r")
_PARAMETER = re.compile(r""";\s*([\w-]+)(\*?\d*\*?)\s*=\s*("(?:[^"\\]|\\.)*"|[^;]*)""")
_ADDRESS = re.compile(r"""[^\s<>,;:"()\[\]@]+@[^\s<>,;:"()@]+""")
_ID = re.compile(r"<([^<>\s]+)>")

# These write other letters in ASCII.
_STATEFUL = re.compile(r"\W*(?:utf-?7|iso-?2022|hz)", re.IGNORECASE)
_NOT_CHARSETS = {
    "unicode-escape",
    "raw-unicode-escape",
    "unicode_escape",
    "raw_unicode_escape",
    "idna",
    "punycode",
}

# What a mailbox, not the sender, writes: it changes when a message is moved.
_ADDED = {"status", "x-status", "x-keywords", "x-uid", "x-mozilla-status", "x-mozilla-status2", "received"}

Headers = dict[str, str]


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
    copied: list[str]
    list_id: str
    references: list[str]
    plain: str
    html: str
    attachments: list[str]


def read(raw: bytes) -> Message:
    """The message in `raw`, whatever `raw` is."""
    headers, body = _split(raw)
    sender = _decoded(headers.get("from") or headers.get("sender", ""))
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
    return Message(
        id=key(headers),
        date=date_of(headers),
        subject=_decoded(headers.get("subject", "")),
        sender=_addresses(sender),
        sender_name=_ADDRESS.sub(" ", sender).strip(" <>\"'"),
        recipients=_addresses(headers.get("to", "")),
        copied=_addresses(headers.get("cc", "")),
        list_id=_list_id(headers),
        references=list(
            dict.fromkeys(_ID.findall(headers.get("references", "") + " " + headers.get("in-reply-to", "")))
        ),
        plain="\n".join(plain)[:MAX_TEXT],
        html="\n".join(html)[:MAX_TEXT],
        attachments=attachments,
    )


def key(headers: Headers) -> str:
    """What a message is known by wherever it is moved: its Message-ID, or a digest of its headers."""
    text = headers.get("message-id", "")
    found = _ID.search(text)
    own = found.group(1) if found else text.strip()
    if own and len(own) <= MAX_ID:
        return own
    whole = "\n".join(f"{name}: {value}" for name, value in sorted(headers.items()) if name not in _ADDED)
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def read_headers(raw: bytes) -> Headers:
    """The first value of every header field, unfolded, by its name in lower case."""
    return _split(raw)[0]


def _split(raw: bytes) -> tuple[Headers, bytes]:
    start = 0
    if raw[:5] == b"From ":  # an mbox separator line
        start = raw.find(b"\n") + 1
    blank = _BLANK.search(raw, start)
    head, body = (raw[start : blank.start()], raw[blank.end() :]) if blank else (raw[start:], b"")
    headers: Headers = {}
    for field in _FIELD.finditer(head[: 1 << 18]):
        name = field.group(1).decode("ascii").lower()
        if name not in headers:
            headers[name] = _FOLD.sub(" ", _text(field.group(2)[:MAX_HEADER], "utf-8")).strip()
    return headers, body


def _parts(headers: Headers, body: bytes) -> Iterator[tuple[str, str, str]]:
    """Each leaf as (content type, name if it is an attachment, else its text)."""
    pending: list[tuple[Headers, bytes, int]] = [(headers, body, 0)]
    seen = 0
    while pending and seen < MAX_PARTS:
        headers, body, depth = pending.pop()
        seen += 1
        content_type, parameters = _content(headers.get("content-type", ""))
        disposition, named = _content(headers.get("content-disposition", ""))
        name = named.get("filename") or parameters.get("name", "")
        if content_type.startswith("multipart/") and parameters.get("boundary") and depth < MAX_DEPTH:
            parts = _multipart(body, parameters["boundary"])
            pending.extend((*_split(part), depth + 1) for part in reversed(parts))
        elif content_type == "message/rfc822" and depth < MAX_DEPTH:
            pending.append((*_split(body), depth + 1))
        elif disposition == "attachment" or name or not content_type.startswith("text/"):
            if seen > 1 or name:
                yield content_type, _decoded(name) or "unnamed", ""
        else:
            yield (
                content_type,
                "",
                _text(_decode(headers, body), parameters.get("charset", "utf-8"))[:MAX_TEXT],
            )


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


def _content(value: str) -> tuple[str, dict[str, str]]:
    """`text/plain; name=value` as its value in lower case and its parameters (RFC 2231 pieces joined)."""
    kind, separator, _ = value.partition(";")
    if not separator:
        return kind.strip().lower() or "text/plain", {}
    parameters: dict[str, str] = {}
    for name, extended, quoted in _PARAMETER.findall(value):
        text = quoted[1:-1].replace('\\"', '"') if quoted[:1] == '"' else quoted.strip()
        if extended.endswith("*"):
            text = _percent(text)
        parameters[name.lower()] = parameters.get(name.lower(), "") + text
    return kind.strip().lower() or "text/plain", parameters


def _percent(text: str) -> str:
    charset, _, rest = text.partition("'")
    encoded = rest.partition("'")[2] if rest else text
    raw = re.sub(
        rb"%([0-9A-Fa-f]{2})", lambda hit: bytes([int(hit.group(1), 16)]), encoded.encode("utf-8", "replace")
    )
    return _text(raw, charset or "utf-8")


def _decode(headers: Headers, body: bytes) -> bytes:
    """The body out of its transfer encoding; only as much as will be read."""
    encoding = headers.get("content-transfer-encoding", "").strip().lower()
    body = body[: 4 * MAX_TEXT]
    if encoding == "quoted-printable":
        return quopri.decodestring(body)
    if encoding == "base64":
        letters = re.sub(rb"[^A-Za-z0-9+/]", b"", body)
        return binascii.a2b_base64(letters[: len(letters) // 4 * 4])
    return body


def _text(raw: bytes, charset: str) -> str:
    """`raw` in its charset as far as it is so, else in UTF-8 as far as it is that."""
    if raw.isascii() and not raw.count(0) and not _STATEFUL.match(charset):
        return raw.decode("ascii")
    try:
        name = codecs.lookup(charset.strip("\"' ") or "utf-8").name
        text = raw.decode("utf-8" if name == "ascii" or name in _NOT_CHARSETS else name, "replace")
    except (
        LookupError,
        ValueError,
    ):  # an unknown name, or one that Python knows as something else than a charset
        text = raw.decode("utf-8", "replace")
    return text.encode("utf-8", "replace").decode()  # some charsets give lone surrogates, which JSON has not


def _decoded(value: str) -> str:
    """A header's text out of its RFC 2047 words."""
    if "=?" not in value:
        return value
    try:
        pieces = decode_header(value)
    except (HeaderParseError, ValueError):  # binascii.Error is a ValueError
        return value
    return "".join(
        piece if isinstance(piece, str) else _text(piece, charset or "utf-8") for piece, charset in pieces
    )


def _addresses(value: str) -> list[str]:
    return list(dict.fromkeys(_ADDRESS.findall(value.lower())))[:MAX_RECIPIENTS]


def _list_id(headers: Headers) -> str:
    value = headers.get("list-id", "")
    found = _ID.search(value)
    return (found.group(1) if found else value.strip() or headers.get("x-mailing-list", "").strip()).lower()[
        :200
    ]


def date_of(headers: Headers) -> datetime | None:
    """The Date header in UTC, if it is one."""
    value = headers.get("date", "")
    if not value:
        return None
    try:
        date = parsedate_to_datetime(value)
        return (date.replace(tzinfo=UTC) if date.tzinfo is None else date).astimezone(UTC)
    except (ValueError, OverflowError, TypeError, IndexError):  # a date is whatever somebody wrote
        return None
