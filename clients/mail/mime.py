"""Header values: parameters, encoded words, addresses, ids, subject prefixes. Every reader is linear in its input.

No pattern here can match one stretch in two ways, and no search that failed is begun again behind its start: a message is
written by strangers, and 16 KB of the wrong letters must cost what 16 KB of any others do.
"""

from __future__ import annotations

import binascii
import codecs
import quopri
import re
from collections.abc import Iterator

__all__ = ["charset_text", "content", "encoded_words", "ids", "people", "without_prefixes"]

MAX_ADDRESSES = 200
_TOKEN = re.compile(r"[A-Za-z0-9_.*-]+")
_BETWEEN = str.maketrans(dict.fromkeys('<>,;:"()[]', " "))
_ID = re.compile(r"<([^<>\s]+)>")
_HEX = re.compile(rb"%([0-9A-Fa-f]{2})")
_PREFIX = re.compile(r"(?:re|fwd?|aw|wg|sv|vs|antw|tr|rv|ref)(?:\[\d{1,9}\])?:", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
# These write other letters in ASCII.
_STATEFUL = re.compile(r"\W*(?:utf-?7|iso-?2022|hz)", re.IGNORECASE)
# Python knows these as something else than the charset of a text.
_NOT_CHARSETS = {"unicode-escape", "raw-unicode-escape", "unicode_escape", "raw_unicode_escape"}
_NOT_CHARSETS |= {"idna", "punycode"}
MAX_CHARSET = 40


def content(value: str) -> tuple[str, dict[str, str]]:
    """`text/plain; name=value` as its value in lower case and its parameters (RFC 2231 pieces joined)."""
    kind, separator, rest = value.partition(";")
    parameters: dict[str, str] = {}
    for name, text in _pairs(rest) if separator else ():
        base, star, _ = name.partition("*")
        plain = _percent(text) if star and name.endswith("*") else text
        parameters[base] = parameters.get(base, "") + plain
    return kind.strip().lower() or "text/plain", parameters


def _pairs(rest: str) -> Iterator[tuple[str, str]]:
    """Each `name=value` or `name="value"` between semicolons."""
    at = 0
    while at < len(rest):
        equal = rest.find("=", at)
        if equal < 0:
            return
        name = rest[at:equal].rpartition(";")[2].strip().lower()
        at = equal + 1
        while at < len(rest) and rest[at] in " \t":
            at += 1
        if rest[at : at + 1] == '"':
            text, at = _quoted(rest, at + 1)
        else:
            end = rest.find(";", at)
            end = len(rest) if end < 0 else end
            text, at = rest[at:end].strip(), end
        following = rest.find(";", at)
        at = len(rest) if following < 0 else following + 1
        if _TOKEN.fullmatch(name):
            yield name, text


def _quoted(text: str, at: int) -> tuple[str, int]:
    """What a quoted string says, and where it ends; an open one ends with the text."""
    pieces = []
    while at < len(text):
        end, escape = text.find('"', at), text.find("\\", at)
        if escape >= 0 and (end < 0 or escape < end):
            pieces += [text[at:escape], text[escape + 1 : escape + 2]]
            at = escape + 2
        elif end >= 0:
            return "".join((*pieces, text[at:end])), end + 1
        else:
            break
    return "".join((*pieces, text[at:])), len(text)


def _percent(text: str) -> str:
    charset, _, rest = text.partition("'")
    encoded = rest.partition("'")[2] if rest else text
    raw = _HEX.sub(lambda hit: bytes([int(hit.group(1), 16)]), encoded.encode("utf-8", "replace"))
    return charset_text(raw, charset or "utf-8")


def charset_text(raw: bytes, charset: str) -> str:
    """`raw` in its charset as far as it is so, else in UTF-8 as far as it is that."""
    charset = charset[:MAX_CHARSET].strip("\"' ")
    if raw.isascii() and not raw.count(0) and not _STATEFUL.match(charset):
        return raw.decode("ascii")
    try:
        name = codecs.lookup(charset or "utf-8").name
        text = raw.decode("utf-8" if name == "ascii" or name in _NOT_CHARSETS else name, "replace")
    except (LookupError, ValueError):  # an unknown name, or what is no charset of texts
        text = raw.decode("utf-8", "replace")
    return text.encode("utf-8", "replace").decode()  # some charsets give lone surrogates, which JSON has not


def encoded_words(value: str) -> str:
    """A header's text out of its RFC 2047 words; blanks between two of them are no part of the text."""
    if "=?" not in value:
        return value
    pieces: list[str] = []
    at, after_word = 0, False
    while (start := value.find("=?", at)) >= 0:
        first = value.find("?", start + 2)
        last = value.find("?", first + 3)
        if first < 0 or last < 0:
            break  # no question marks are left: no word can follow
        word = None
        if value[first + 2] == "?" and value[last + 1 : last + 2] == "=":
            word = _word(value[start + 2 : first], value[first + 1], value[first + 3 : last])
        between = value[at:start]
        if word is None:
            pieces.append(value[at : start + 2])
            at, after_word = start + 2, False
        else:
            pieces += [word] if after_word and not between.strip() else [between, word]
            at, after_word = last + 2, True
    return "".join((*pieces, value[at:]))


def _word(charset: str, encoding: str, text: str) -> str | None:
    raw = text.encode("ascii", "replace")
    if encoding in "qQ":
        return charset_text(quopri.decodestring(raw.replace(b"_", b" ")), charset.partition("*")[0])
    if encoding not in "bB":
        return None
    letters = raw.rstrip(b"=")
    try:
        return charset_text(
            binascii.a2b_base64(letters + b"=" * (-len(letters) % 4)), charset.partition("*")[0]
        )
    except binascii.Error:
        return None


def people(value: str) -> tuple[list[str], str]:
    """Whom a header names: the addresses in lower case, each once, and what it says beside them."""
    different: dict[str, None] = {}
    names = []
    for piece in value.translate(_BETWEEN).split():
        if "@" in piece and _is_address(piece):
            different[piece.lower()] = None
        else:
            names.append(piece)
    return list(different)[:MAX_ADDRESSES], " ".join(names).strip("' ")


def _is_address(piece: str) -> bool:
    user, at, host = piece.partition("@")
    return bool(user and at and host and "@" not in host)


def ids(value: str) -> list[str]:
    """The `<...>` of a header."""
    return _ID.findall(value)


def without_prefixes(subject: str) -> str:
    """A subject without `Re:`, `Fwd:` and their sisters in other languages, however many."""
    text = _SPACE.sub(" ", subject).strip()
    # `RE : a` and `re [2]: a` are written too: blanks before the colon do not count.
    head = text[:2000].replace(" :", ":").replace(" [", "[")
    at = 0
    while hit := _PREFIX.match(head, at):
        at = hit.end()
        while head[at : at + 1] == " ":
            at += 1
    return head[at:] + text[2000:] if at else text
