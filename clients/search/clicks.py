"""What clicks say, as pure functions of the page that was shown and the ids that were clicked.

Users look from the top, and less and less far down: a click tells of the place as well as of the result. Three readings
take the place out; `naive` does not, and is here to be compared with.

    skip_above            clicked 1, passed over above the last click 0, the rest unknown
    last_click            only the last click is satisfied: it against everything above it
    inverse_propensities  clicked 1 / p(place), p the chance that the place was looked at: right on average
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["EXAMINATION", "examination", "inverse_propensities", "last_click", "naive", "skip_above", "value"]


def examination(length: int = 10, steepness: float = 1.0, least: float = 0.1) -> list[float]:
    """p(k) = max(least, k^-steepness) for the places k = 1 .. length; beyond, the last one holds.

    Steepness 1 is what eye tracking and the literature on clicks take. Measure your own if you can: show a few lists
    with two results swapped and compare their clicks. `least` bounds the weight of one click, hence the noise.
    """
    if length < 1 or steepness < 0 or not 0 < least <= 1:
        raise ValueError("a curve has a length of at least 1, a steepness of at least 0, and 0 < least <= 1")
    return [max(least, float(place) ** -steepness) for place in range(1, length + 1)]


EXAMINATION = examination()
"""The curve that is taken when none is given."""


def _hits(shown: Sequence[str], clicked: Iterable[str]) -> list[int]:
    """The places, from 0, that were clicked."""
    wanted = set(clicked)
    strange = wanted.difference(shown)
    if strange:
        raise ValueError(f"{min(strange)!r} was clicked but not shown")
    return [place for place, id in enumerate(shown) if id in wanted]


def naive(shown: Sequence[str], clicked: Iterable[str]) -> dict[str, float]:
    """Every clicked result is relevant and no other: learns the order that was shown."""
    hits = set(_hits(shown, clicked))
    return {id: float(place in hits) for place, id in enumerate(shown)}


def skip_above(shown: Sequence[str], clicked: Iterable[str]) -> dict[str, float]:
    """Grades of the results down to the last click; what is missing says nothing (Joachims 2002)."""
    hits = _hits(shown, clicked)
    wanted = set(hits)
    return {id: float(place in wanted) for place, id in enumerate(shown[: hits[-1] + 1] if hits else ())}


def last_click(shown: Sequence[str], clicked: Iterable[str]) -> dict[str, float]:
    """Grades of the results down to the last click of which only that one satisfied; earlier clicks count as passed over.

    `clicked` is in any order: the last click is the lowest on the page.
    """
    hits = _hits(shown, clicked)
    return {id: float(place == hits[-1]) for place, id in enumerate(shown[: hits[-1] + 1] if hits else ())}


def _chance(curve: Sequence[float], place: int) -> float:
    return curve[min(place, len(curve) - 1)]


def inverse_propensities(
    shown: Sequence[str], clicked: Iterable[str], curve: Sequence[float] = EXAMINATION
) -> dict[str, float]:
    """1 / p(place) for every clicked result: if a click is (looked at) and (relevant), its mean is the relevance."""
    return {shown[place]: 1.0 / _chance(curve, place) for place in _hits(shown, clicked)}


def value(order: Sequence[str], weights: dict[str, float]) -> float:
    """sum of weight / place in `order`; with inverse propensities, the relevance that the order puts high up.

    An unbiased estimate for every order, shown or not, from clicks on one that was shown (Joachims, Swaminathan,
    Schnabel 2017).
    """
    return sum(weights[id] / place for place, id in enumerate(order, 1) if id in weights)
