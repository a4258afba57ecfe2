"""Text to words: HTML without its markup, what is new apart from what is quoted, words in any script."""

from __future__ import annotations

import re
from html import unescape

MAX_WORD = 40

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# ASCII letters in lower case, digits and apostrophes as they are, all else a blank.
_LETTERS = (
    bytes(ord(chr(byte).lower()) if chr(byte).isalnum() or byte == 39 else 32 for byte in range(128)) * 2
)
# Apostrophes that are not between two letters; the pattern begins with one, so that they are searched for at once.
_AT_EDGE = re.compile(rb"'(?:(?![a-z0-9])|(?<![a-z0-9]'))")
# Scripts without spaces between words: Chinese, Japanese, Thai and their neighbours.
_RUN = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
_HIDDEN = re.compile(r"<(script|style|head)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)", re.IGNORECASE | re.DOTALL)
_BREAK = re.compile(r"<(?:br|p|div|tr|li|h\d|/p|/div|/tr|/li|/h\d)\b[^<>]*>", re.IGNORECASE)
_BLOCKQUOTE = re.compile(r"<blockquote\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_NO_CHARACTER = re.compile(r"&#[0-9]{8,};?")
# Lines that say that what follows was written before: `> text`, `-----Original Message-----`; `Anna wrote:`.
_QUOTE = re.compile(r"^(?:>|[ \t]*--+[ \t]*(?:original message|forwarded))", re.IGNORECASE | re.MULTILINE)
_COLON = re.compile(r":[ \t]*\r?$", re.MULTILINE)
_WROTE = ("wrote", "writes", "schrieb", "écrit", "escribió", "scrisse")


def words(text: str) -> dict[str, None]:
    """The different words of a text in order, in lower case; pairs of characters where a script has no spaces."""
    if not text.isascii():
        return dict.fromkeys(part for word in _WORD.findall(text.lower()) for part in _split(word))
    # What `_WORD` finds, at a fifth of its cost: of ASCII, only an apostrophe may stand within a word.
    letters = text.encode().translate(_LETTERS)
    if b"'" in letters:
        letters = _AT_EDGE.sub(b" ", letters)
    different = dict.fromkeys(letters.decode().split())
    if max(map(len, different), default=0) > MAX_WORD:
        different = {word: None for word in different if len(word) <= MAX_WORD}
    return different


def _split(word: str) -> list[str]:
    if not _RUN.search(word):
        return [word] if len(word) <= MAX_WORD else []
    parts = [part for part in _RUN.sub(" ", word).split() if len(part) <= MAX_WORD]
    for run in _RUN.findall(word):
        parts.extend(run[place : place + 2] for place in range(max(1, len(run) - 1)))
    return parts


def plain(html: str) -> str:
    """The text that a reader of the HTML sees; a quotation starts with a line of `>`."""
    text = _HIDDEN.sub(" ", html)
    text = _BLOCKQUOTE.sub("\n> ", _BREAK.sub("\n", text))
    # Python refuses to read a number of thousands of digits; none of them is a character.
    return unescape(_NO_CHARACTER.sub(" ", _TAG.sub(" ", text)))


def parts(text: str) -> tuple[str, str]:
    """What is new in a text, and what it quotes: everything from the first sign of a quotation on."""
    starts = [len(text)]
    if sign := _QUOTE.search(text):
        starts.append(sign.start())
    for colon in _COLON.finditer(text, 0, min(starts)):
        end = colon.start()
        if text[max(0, end - 12) : end].rstrip().lower().endswith(_WROTE):
            starts.append(text.rfind("\n", 0, end) + 1)
            break
    return text[: min(starts)], text[min(starts) :]
