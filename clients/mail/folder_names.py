"""One name for a folder, whatever it is read from, and which folders hold a person's choices.

IMAP        `INBOX.Work.Travel` (separator `.`, prefix `INBOX.`), `Work/Travel`      Work/Travel
Maildir++   `.Work.Travel`, `.INBOX.Work.Travel`                                     Work/Travel
Maildirs in directories (LAYOUT=fs), directories of messages: `Work/Travel`          Work/Travel
mbox        `Work/Travel.mbox`, Thunderbird's `Work.sbd/Travel`                      Work/Travel
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

__all__ = ["INBOX", "SUGGESTED", "is_choice", "label_of", "modified_utf7", "special"]

INBOX = "INBOX"
SUGGESTED = "feedrank"
"""Above the labels that suggest a folder: on Gmail every label is a folder, and these are no choices of a person."""

# What such folders are called where the server does not say what they are for (RFC 6154).
_OTHERS = re.compile(
    r"inbox|trash|bin|deleted( items| messages)?|junk( e-?mail)?|spam|bulk mail|sent([ -](items|messages|mail))?"
    r"|drafts?|outbox|unsent messages|templates|papierkorb|gesendet(e objekte|e elemente)?|entwürfe|corbeille"
    r"|envoyés|brouillons|papelera|enviados|borradores",
    re.IGNORECASE,
)
_ARCHIVE = re.compile(r"(?:archives?|archiv)(?:/\d{4}(?:/\d{4}-\d{2})?)?", re.IGNORECASE)
_PROVIDERS = ("[gmail]", "[google mail]")
# Folders that a mail program fills, by what the server says they are for: in upper and lower case alike.
_NEVER = {b"\\trash", b"\\junk", b"\\sent", b"\\drafts", b"\\all", b"\\flagged", b"\\important"}
_CLOSED = {b"\\noselect", b"\\nonexistent"}


def label_of(parts: Iterable[str], prefix: Sequence[str] = ()) -> str:
    """The folder with these names, outermost first, below a namespace's `prefix`; the inbox itself is `INBOX`."""
    names = [unicodedata.normalize("NFC", _text(part)).replace("/", "\\") for part in parts if part]
    if prefix and [name.casefold() for name in names[: len(prefix)]] == [one.casefold() for one in prefix]:
        names = names[len(prefix) :] or [INBOX]
    while len(names) > 1 and names[0].upper() == INBOX:
        names = names[1:]
    if not names or (len(names) == 1 and names[0].upper() == INBOX):
        return INBOX
    return "/".join(names)


def _text(name: str) -> str:
    """A name that can be sent and stored: one that is not UTF-8 on disk, or has half a character, is read as Latin-1."""
    try:
        name.encode()
        return name
    except UnicodeEncodeError:
        pass
    try:
        return name.encode("utf-8", "surrogateescape").decode("latin-1")
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogatepass").decode("latin-1")


def is_choice(label: str, exclude: Sequence[str] = (), archive: bool = False) -> bool:
    """Whether to learn from a folder; `exclude` are patterns such as `Lists/*`, `archive` says to learn from it too."""
    own = label_of(label.split("/"))  # some servers put every folder below the inbox
    names = own.split("/")
    if any(_OTHERS.fullmatch(name) for name in names) or names[0].casefold() in _PROVIDERS:
        return False
    if names[0] == SUGGESTED and len(names) > 1:
        return False
    if not archive and _ARCHIVE.fullmatch(own):
        return False
    return not any(fnmatchcase(label, pattern) or fnmatchcase(own, pattern) for pattern in exclude)


def special(flags: Iterable[bytes], archive: bool = False) -> bool:
    """Whether the server says that no choices are in there: a folder of its own, or one that cannot be opened."""
    own = {flag.lower() for flag in flags}
    return bool(own & (_NEVER | _CLOSED)) or (b"\\archive" in own and not archive)


def modified_utf7(name: str | bytes) -> str:
    """A folder's name out of IMAP's modified UTF-7, which mail servers write on disk too; never fails."""
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
    return re.sub(r"&([A-Za-z0-9+,]*)-", _shift, text)


def _shift(hit: re.Match[str]) -> str:
    if not hit.group(1):
        return "&"
    try:
        return f"+{hit.group(1).replace(',', '/')}-".encode("ascii").decode("utf-7")
    except UnicodeDecodeError:  # a name with an ampersand that is no shift
        return hit.group(0)
