"""Features of search results: the engine's score, how the query matches each field, freshness, popularity and more.

    engine          the score; engine:unit scaled to [0, 1] in the list, engine:share as a share of the best
    rank            1 / place in the engine's order
    FIELD:bm25      sum over the query's terms of idf * tf * 2.2 / (tf + 1.2 (0.25 + 0.75 length / mean length))
    FIELD:exact     1 if the field is the query            FIELD:prefix    1 if it starts with it
    FIELD:phrase    1 if the query stands in it in one piece
    FIELD:coverage  share of the query's terms that it has FIELD:length    1 / (1 + ln(1 + words))
    freshness       2^(-age / half-life)                   popularity      ln(1 + value)

Words are compared without case, accents and compatibility forms (NFKD), and by their stems where `language` is one of
Snowball's; `exact`, `prefix` and `phrase` compare the words as they are. Document frequencies and mean lengths are those of
the list: re-ranking compares its results with each other, and needs no access to the index.

A field is named by its key, or by the path to it with dots (`product.title`), through lists as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from math import isfinite, log1p
from typing import Any
from unicodedata import normalize

from snowballstemmer import stemmer

from ..payloads import JSON, Payload
from .hits import Result

__all__ = ["Features", "words"]

_WORD = re.compile(r"\w+")
_ACCENTS = re.compile("[\u0300-\u036f]")
_SPACED = {code: " " for code in range(128) if not _WORD.match(chr(code))}
_BETWEEN = "\0"  # texts that are read as one
_SPACED_BUT_BETWEEN = {code: space for code, space in _SPACED.items() if chr(code) != _BETWEEN}
_K1, _B = 1.2, 0.75
_DAY, _LATEST = 86_400.0, 253_402_300_800.0  # the year 10000
_MOST = 1e12
# Languages in which only the ends of words are cut: in others (Dutch, Irish, Indonesian, ...) their beginnings are as well.
_SUFFIXED = frozenset({
    "danish", "english", "finnish", "french", "german", "italian", "norwegian", "porter", "portuguese", "romanian",
    "russian", "spanish", "swedish",
})  # fmt: skip


def words(text: str) -> list[str]:
    """The words of a text, without case, accents and compatibility forms."""
    plain = text.casefold()
    if plain.isascii():
        return plain.translate(_SPACED).split()  # half the time
    return _WORD.findall(_ACCENTS.sub("", normalize("NFKD", plain)).casefold())


def words_of_each(texts: Sequence[str]) -> list[list[str]]:
    """`words` of every text; those in ASCII are read as one text, in half the time."""
    plain = [text for text in texts if text.isascii()]
    rows = _BETWEEN.join(plain).casefold().translate(_SPACED_BUT_BETWEEN).split(_BETWEEN)
    if len(rows) != max(1, len(plain)):  # one of them has the character in between
        return [words(text) for text in texts]
    ready = iter(rows)
    return [next(ready).split() if text.isascii() else words(text) for text in texts]


@lru_cache(maxsize=100_000)
def _stem(language: str, word: str) -> str:
    return str(stemmer(language).stemWord(word))


def forms(language: str | None, terms: Sequence[str], vocabulary: Iterable[str]) -> list[list[str]]:
    """For each distinct stem of the query's terms, the words of the vocabulary that have it."""
    if language is None:
        return [[term] for term in dict.fromkeys(terms)]
    wanted: dict[str, list[str]] = {_stem(language, term): [] for term in terms}
    first = {stem[:1] for stem in wanted} if language in _SUFFIXED else None
    for word in vocabulary:
        # Where a stem begins as its word does, most words need not be stemmed.
        if (first is None or word[:1] in first) and (stem := _stem(language, word)) in wanted:
            wanted[stem].append(word)
    return list(wanted.values())


@dataclass(frozen=True, slots=True)
class Features:
    """Which fields of a result are text, and which hold its date and its popularity.

    `half_life` is in days. Only the first `most_words` of a field are read, which bounds the work on long documents.
    `extra` are fields that hold numbers to be taken as they are. `language` is one of Snowball's, or None for no stemming.
    """

    text: Sequence[str] = ()
    freshness: str | None = None
    popularity: str | None = None
    extra: Sequence[str] = ()
    half_life: float = 30.0
    most_words: int = 200
    language: str | None = "english"

    def __post_init__(self) -> None:
        if self.language is not None:
            stemmer(self.language)  # an unknown one is refused here, not on the first page

    def table(self, query: str, results: Sequence[Result], now: datetime | None = None) -> JSON:
        """The results as the items of an instance in columns and rows, in the engine's order."""
        moment = (now or datetime.now(UTC)).timestamp()
        columns: dict[str, list[float]] = self._engine(results)
        terms = words(query)
        if terms and results:
            for name in self.text:
                self._field(name, terms, results, columns)
        if self.freshness is not None:
            path = self.freshness
            columns["freshness"] = [self._fresh(_first(field(one.fields, path)), moment) for one in results]
        if self.popularity is not None:
            path = self.popularity
            columns["popularity"] = [
                log1p(max(0.0, _number(_first(field(one.fields, path))))) for one in results
            ]
        for name in self.extra:
            columns[name] = [_number(_first(field(one.fields, name))) for one in results]
        return {
            "ids": [result.id for result in results],
            "columns": list(columns),
            "rows": [list(row) for row in zip(*columns.values(), strict=True)],
        }

    def _engine(self, results: Sequence[Result]) -> dict[str, list[float]]:
        scores = [_number(result.score) for result in results]
        low, high = min(scores, default=0.0), max(scores, default=0.0)
        span, best = high - low or 1.0, max(map(abs, scores), default=0.0) or 1.0
        return {
            "engine": scores,
            "engine:unit": [(score - low) / span for score in scores],
            "engine:share": [score / best for score in scores],
            "rank": [1.0 / place for place in range(1, len(scores) + 1)],
        }

    def _field(
        self, name: str, terms: Sequence[str], results: Sequence[Result], columns: dict[str, list[float]]
    ) -> None:
        whole = " ".join(terms)
        values = [field(result.fields, name) for result in results]
        longest, most = 16 * self.most_words, self.most_words
        tokens = words_of_each([(one if isinstance(one, str) else _text(one))[:longest] for one in values])
        lengths = [len(row) for row in tokens]
        if max(lengths) > most:
            tokens = [row[:most] for row in tokens]
            lengths = [min(length, most) for length in lengths]
        distinct = forms(self.language, terms, set().union(*tokens))
        wanted = set().union(*distinct)
        counts = {
            place: [sum(map(row.count, alike)) for alike in distinct]
            for place, row in enumerate(tokens)
            if not wanted.isdisjoint(row)
        }
        mean = sum(lengths) / len(lengths) or 1.0
        idf = [
            log1p((len(tokens) - having + 0.5) / (having + 0.5))
            for having in (sum(1 for row in counts.values() if row[i]) for i in range(len(distinct)))
        ]
        bm25, coverage, exact, prefix, phrase = (
            columns.setdefault(f"{name}:{kind}", [0.0] * len(tokens))
            for kind in ("bm25", "coverage", "exact", "prefix", "phrase")
        )
        columns[f"{name}:length"] = [1.0 / (1.0 + log1p(length)) if length else 0.0 for length in lengths]
        for place, tf in counts.items():
            have = sum(1 for count in tf if count)
            damp = _K1 * (1.0 - _B + _B * lengths[place] / mean)
            bm25[place] = sum(
                weight * count * (_K1 + 1.0) / (count + damp)
                for weight, count in zip(idf, tf, strict=True)
                if count
            )
            coverage[place] = have / len(distinct)
            if have == len(distinct):
                text = " ".join(tokens[place])
                exact[place] = float(text == whole)
                prefix[place] = float(text.startswith(whole))
                phrase[place] = float(f" {whole} " in f" {text} ")

    def _fresh(self, value: Any, now: float) -> float:
        moment = _moment(value)
        return 0.0 if moment is None else float(2.0 ** (-max(0.0, now - moment) / _DAY / self.half_life))


def field(fields: Payload, name: str) -> Any:
    """The field of this name, or at this path; through lists, the values of all their entries. None if there is none."""
    if name in fields:
        return fields[name]
    head, dot, rest = name.partition(".")
    inner = fields.get(head) if dot else None
    if isinstance(inner, Mapping):
        return field(inner, rest)
    if isinstance(inner, list | tuple):
        values = [field(one, rest) for one in inner if isinstance(one, Mapping)]
        return [value for value in values if value is not None]
    return None


def _first(value: Any) -> Any:
    """Numbers and dates that engines wrap in a list of one."""
    return value[0] if isinstance(value, list | tuple) and value else value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, list | tuple):
        return " ".join(map(_text, value))
    return str(value)


def _number(value: Any) -> float:
    """A number within +-_MOST; what is none counts as 0, since one odd document must not cost the whole page."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return max(-_MOST, min(_MOST, number)) if isfinite(number) else 0.0


def _moment(value: Any) -> float | None:
    """Seconds since 1970 of a date, ISO text, or a number of them (milliseconds above 10^11); UTC unless said."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        elif isinstance(value, int | float):
            seconds = value / 1000 if abs(value) > 1e11 else value
            return seconds if abs(seconds) < _LATEST else None
    except (ValueError, OverflowError):
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        return None
    return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()
