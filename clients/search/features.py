"""Features of search results: what the engine says, how the query meets each field, and what else is known of a result.

    engine          the score; engine:unit scaled to [0, 1] in the list, engine:share as a share of the best
    rank            1 / place in the engine's order
    FIELD:bm25      sum over the query's terms of idf * tf * 2.2 / (tf + 1.2 (0.25 + 0.75 length / mean length))
    FIELD:exact     1 if the field is the query            FIELD:prefix    1 if it starts with it
    FIELD:phrase    1 if the query stands in it in one piece
    FIELD:coverage  share of the query's terms that it has FIELD:length    1 / (1 + ln(1 + words))
    freshness       2^(-age / half-life)                   popularity      ln(1 + value)

Document frequencies and mean lengths are those of the list: re-ranking compares its results with each other, and needs no
access to the index. What is 0 is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import isfinite, log1p
from typing import Any

from .results import Result

__all__ = ["Features", "words"]

_WORD = re.compile(r"\w+")
_SPACED = {code: " " for code in range(128) if not _WORD.match(chr(code))}
_K1, _B = 1.2, 0.75
_DAY = timedelta(days=1)
_MOST = 1e12


def words(text: str) -> list[str]:
    """The words of a text, compared without case."""
    plain = text.casefold()
    return plain.translate(_SPACED).split() if plain.isascii() else _WORD.findall(plain)  # half the time


@dataclass(frozen=True, slots=True)
class Features:
    """Which fields of a result are text, and which hold its date and its popularity.

    `half_life` is in days. Only the first `most_words` of a field are read, which bounds the work on long documents.
    `extra` are fields that hold numbers to be taken as they are.
    """

    text: Sequence[str] = ()
    freshness: str | None = None
    popularity: str | None = None
    extra: Sequence[str] = ()
    half_life: float = 30.0
    most_words: int = 200

    def items(
        self, query: str, results: Sequence[Result], now: datetime | None = None
    ) -> list[dict[str, Any]]:
        """The results as the items of an instance, in the engine's order."""
        now = now or datetime.now(UTC)
        found: list[dict[str, float]] = self._engine(results)
        terms = words(query)
        if terms and results:
            for name in self.text:
                self._field(name, terms, results, found)
        for features, result in zip(found, results, strict=True):
            if self.freshness is not None:
                features["freshness"] = self._fresh(result.fields.get(self.freshness), now)
            if self.popularity is not None:
                features["popularity"] = log1p(max(0.0, _number(result.fields.get(self.popularity))))
            for name in self.extra:
                features[name] = _number(result.fields.get(name))
        return [
            {"id": result.id, "features": {name: value for name, value in features.items() if value}}
            for features, result in zip(found, results, strict=True)
        ]

    def _engine(self, results: Sequence[Result]) -> list[dict[str, float]]:
        scores = [_number(result.score) for result in results]
        low, high = min(scores, default=0.0), max(scores, default=0.0)
        span, best = high - low or 1.0, max(map(abs, scores), default=0.0) or 1.0
        return [
            {
                "engine": score,
                "engine:unit": (score - low) / span,
                "engine:share": score / best,
                "rank": 1.0 / place,
            }
            for place, score in enumerate(scores, 1)
        ]

    def _field(
        self, name: str, terms: Sequence[str], results: Sequence[Result], found: Sequence[dict[str, float]]
    ) -> None:
        distinct = list(dict.fromkeys(terms))
        whole = " ".join(terms)
        texts = [_text(result.fields.get(name))[: 16 * self.most_words] for result in results]
        tokens = [words(text)[: self.most_words] for text in texts]
        counts = [[row.count(term) for term in distinct] for row in tokens]
        lengths = [len(row) for row in tokens]
        mean = sum(lengths) / len(lengths) or 1.0
        idf = [
            log1p((len(tokens) - having + 0.5) / (having + 0.5))
            for having in (sum(1 for row in counts if row[i]) for i in range(len(distinct)))
        ]
        bm25, exact, prefix = f"{name}:bm25", f"{name}:exact", f"{name}:prefix"
        phrase, coverage, size = f"{name}:phrase", f"{name}:coverage", f"{name}:length"
        for features, row, tf, length in zip(found, tokens, counts, lengths, strict=True):
            features[size] = 1.0 / (1.0 + log1p(length)) if length else 0.0
            have = sum(1 for count in tf if count)
            if have:
                damp = _K1 * (1.0 - _B + _B * length / mean)
                features[bm25] = sum(
                    weight * count * (_K1 + 1.0) / (count + damp)
                    for weight, count in zip(idf, tf, strict=True)
                    if count
                )
                features[coverage] = have / len(distinct)
            if have == len(distinct):
                text = " ".join(row)
                features[exact] = float(text == whole)
                features[prefix] = float(text.startswith(whole))
                features[phrase] = float(f" {whole} " in f" {text} ")

    def _fresh(self, value: Any, now: datetime) -> float:
        moment = _moment(value)
        if moment is None:
            return 0.0
        days = max(0.0, (now - moment) / _DAY)
        return float(2.0 ** (-days / self.half_life))


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


def _moment(value: Any) -> datetime | None:
    """A date, ISO text, or seconds since 1970 (milliseconds above 10^11), in UTC unless it says otherwise."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        elif isinstance(value, int | float):
            value = datetime.fromtimestamp(value / 1000 if abs(value) > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
