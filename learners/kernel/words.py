"""Features of folded text: its words, the pairs of neighbours, and the parts of words, as `learners/text.py` states them.

    word    a Han or kana character; elsewhere a letter or digit, and all letters, digits and marks right behind it
    pair    two words, one space between them
    part    PART characters in a row of ^word$, behind a ~; of a word the first LONGEST

A text comes in pieces, cut anywhere, so that a long one never takes the interpreter for long.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from .elementary import Floats
from .reference import Features, ones

PART, LONGEST = 4, 64
# Han, Hiragana, Katakana: one character, one word. Elsewhere runs of word characters without the underscore.
_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
_LETTER = rf"(?![{_IDEOGRAPHS}])[^\W_]"
_MORE = rf"(?:{_LETTER}|[\u0300-\u036f])*"


class WordPatterns(NamedTuple):
    """What is looked for in folded text."""

    more: re.Pattern[str]
    word: re.Pattern[str]
    ideograph: re.Pattern[str]


@cache
def word_patterns() -> WordPatterns:
    """Compiled at the first text: it would take a hundredth of a start."""
    return WordPatterns(
        re.compile(_MORE),
        re.compile(rf"[{_IDEOGRAPHS}]|{_LETTER}{_MORE}"),
        re.compile(rf"[{_IDEOGRAPHS}]"),
    )


def text_features(fields: Sequence[tuple[str, Iterable[str]]], parts: bool) -> Features:
    """The features of fields (what is before each name, the pieces of its text): words, pairs, parts where asked for.

    Each once, in the order of their first places in the field.
    """
    names: list[str] = []
    for prefix, pieces in fields:
        distinct: dict[str, None] = {}
        pairs: dict[str, None] = {}
        last: list[str] = []
        for words in _words(pieces):
            distinct.update(dict.fromkeys(words))
            pairs.update(dict.fromkeys(map(" ".join, pairwise((*last, *words)))))
            last = words[-1:] or last
        more = dict.fromkeys(chain.from_iterable(map(_parts, distinct))) if parts else ()
        names += [prefix + name for name in chain(distinct, pairs, more)]
    return Features(names, None)


def together(features: Features, words: Features) -> Features:
    """Features and words in one vector; a word that is named as a feature adds 1 to it."""
    numbers = ones(len(features.names)) if features.values is None else features.values
    values = dict(zip(features.names, numbers.tolist(), strict=True))
    for word in words.names:
        values[word] = values.get(word, 0.0) + 1.0
    return Features(list(values), np.fromiter(values.values(), np.float64, len(values)))


def vector_of(value: object) -> Features | None:
    """A vector alone; None leaves it to `vectors.read`."""
    return None


def beside(features: Features, vector: Floats) -> Features:
    """A copy of features with a vector."""
    return Features(features.names, features.values, vector)


def _parts(word: str) -> list[str]:
    """The parts of a word; one of a single character has none."""
    marked = f"^{word}$"
    return [f"~{marked[i : i + PART]}" for i in range(min(len(marked) - PART + 1, LONGEST))]


def _words(pieces: Iterable[str]) -> Iterator[list[str]]:
    """All words, some at a time; a word that goes on in the next piece waits for its end."""
    parts: list[str] = []
    for piece in pieces:
        words, start = [], 0
        if parts:
            more = word_patterns().more.match(piece)
            start = more.end() if more else 0
            parts.append(piece[:start])
            if start == len(piece):
                continue
            words, parts = ["".join(parts)], []
        words += word_patterns().word.findall(piece, start)
        if words and piece.endswith(words[-1]) and not word_patterns().ideograph.match(words[-1]):
            parts = [words.pop()]
        yield words
    if parts:
        yield ["".join(parts)]
