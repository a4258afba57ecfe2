"""Raw text as features, by a rule with a name, so that a learner keeps the rule it was made with.

`words-1`, for one text:

1. Unicode NFKC, then casefold.
2. A word is a longest run of letters and digits (and marks that belong to them); every Chinese or Japanese character is a
   word of its own, because such text has no spaces. All else separates words.
3. The features are the distinct words, and the distinct pairs of neighbouring words joined by one space. Each counts 1.

`words-2` also has the parts of words, so that a word that is new says something by those it resembles:

4. Every four characters in a row of `^word$`, with `~` before them: `hotel` gives `~^hot`, `~hote`, `~otel`, `~tel$`. Of a
   longer word the first `LONGEST` parts; a Chinese or Japanese character has none.

A text of named fields, `{"subject": "...", "body": "..."}`: the features of each field, with its name and a colon before
them: `subject:cheap`, `subject:cheap pills`. Pairs do not cross fields.

Texts come from strangers: all of it takes time in proportion to the text, and in short pieces, because other threads wait
while Unicode is normalized. Marks one upon another would otherwise be sorted in quadratic time: a minute for 300 KB.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from . import kernel
from .errors import InstanceError, pointer
from .kernel.words import LONGEST

__all__ = ["LONGEST", "NEWEST", "RULES", "read", "tokens"]

RULES = ("words-1", "words-2")
NEWEST = RULES[-1]
OF_ITEMS = "words-2"  # lists to rank have no field for it: before this rule, no item had a text
PIECE = 2**14  # characters that are made into words at once


class MarkPatterns(NamedTuple):
    """What is looked for in a text before it is folded."""

    run: re.Pattern[str]
    """Where marks may be: no mark is a letter to Unicode but for two of half width."""
    joining: re.Pattern[str]
    """Vowels and final consonants of Hangul, which join the syllable before them."""


@cache
def patterns() -> MarkPatterns:
    """Compiled at the first text that is not ASCII."""
    return MarkPatterns(re.compile(r"[\W\uff9e\uff9f]{64,}"), re.compile(r"[\u1161-\u1175\u11a8-\u11c2]"))


def tokens(text: str, rule: str = RULES[0]) -> list[str]:
    """The words of a text, then its pairs, then parts of words, each once, in the order in which they first stand there."""
    return list(_features([("", text)], rule).names)


def read(text: object, rule: str) -> kernel.Features:
    """The features of `"text"`: of a text, or of an object of texts by field."""
    if isinstance(text, str):
        return _features([("", text)], rule)
    if not isinstance(text, Mapping):
        raise InstanceError("must be text, or an object of texts", "/text")
    for field, part in text.items():
        if not isinstance(field, str) or not field:
            raise InstanceError("a field's name must be text that is not empty", "/text")
        if not isinstance(part, str):
            raise InstanceError("must be text", pointer("text", field))
    return _features([(f"{field}:", part) for field, part in text.items()], rule)


def _features(texts: list[tuple[str, str]], rule: str) -> kernel.Features:
    return kernel.text_features([(prefix, _pieces(text)) for prefix, text in texts], rule != RULES[0])


def _pieces(text: str) -> Iterator[str]:
    """The folded text, cut anywhere."""
    end = 0
    while end < len(text):
        start, end = end, _cut(text, end + PIECE)
        folded = _folded(text[start:end])
        for place in range(0, len(folded), PIECE):
            yield folded[place : place + PIECE]


def _folded(text: str) -> str:
    """NFKC, then casefold."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", patterns().run.sub(_in_order, text)).casefold()


def _in_order(run: re.Match[str]) -> str:
    """Marks in canonical order, as normalizing would sort them, which then finds nothing left to do."""
    done: list[str] = []
    marks: dict[int, list[str]] = {}
    # A loop, where `sorted` would be shorter: no other thread runs during one call of the latter.
    for char in "".join([unicodedata.normalize("NFKD", char) for char in run[0]]):
        if group := unicodedata.combining(char):
            marks.setdefault(group, []).append(char)
        else:
            done += (*_by_group(marks), char)
            marks = {}
    return "".join((*done, *_by_group(marks)))


def _by_group(marks: dict[int, list[str]]) -> list[str]:
    return ["".join(marks[group]) for group in sorted(marks)]


def _cut(text: str, place: int) -> int:
    """The first place from `place` on where a text can be cut in two that are normalized alone."""
    while place < len(text) and not _begins(text[place]):
        place += 1
    return min(place, len(text))


def _begins(char: str) -> bool:
    """Whether nothing before a character can join it."""
    if char.isascii():
        return True
    first = unicodedata.normalize("NFKD", char)[0]
    return char.isalnum() and not unicodedata.combining(first) and not patterns().joining.match(first)
