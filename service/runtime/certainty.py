"""How certain a decision is: what a promise is proved from, and what orders the predictions that wait for an answer."""

from __future__ import annotations

from hashlib import blake2b

from feedrank.learners.results import Prediction


def probability(prediction: Prediction) -> float | None:
    """Of the decision; of a set, of what is least sure of each label's being in or out."""
    stated = prediction.probabilities
    if not stated:
        return None
    if prediction.labels is not None:
        return min([max(p, 1.0 - p) for p in stated])
    if (
        prediction.label is not None and prediction.ranking[0][0] != prediction.label
    ):  # costs decided otherwise
        names = [name for name, _ in prediction.ranking]
        return stated[names.index(prediction.label)] if prediction.label in names else None
    return stated[0]


def certainty(prediction: Prediction) -> float | None:
    """The probability of the decision where it is stated, else its margin; None where nothing could be decided."""
    stated = probability(prediction)
    return prediction.margin if stated is None else stated


def rank(prediction: Prediction, id: str) -> float:
    """The least certain first, equals in an order of their own: no two share a place, so that none is skipped."""
    sure = certainty(prediction)
    return (0.0 if sure is None else sure) + 1e-9 * hash_of(id) / 2**32


def hash_of(id: str) -> int:
    """Four bytes of an id's own."""
    return int.from_bytes(blake2b(id.encode(), digest_size=4).digest(), "big")
