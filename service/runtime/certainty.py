"""How certain a decision is: what a promise is proved from, and what orders the predictions that wait for an answer."""

from __future__ import annotations

from hashlib import blake2b

from feedrank.learners.results import Prediction


def probability(prediction: Prediction) -> float | None:
    """Of the decision; of a set, of what is least sure of each label's being in or out."""
    stated, ranking, decision = prediction.probabilities, prediction.ranking, prediction.decision
    if not stated:
        return None
    if isinstance(decision, list):
        return min([max(p, 1.0 - p) for p in stated])
    if decision is None or decision == ranking[0][0]:
        return stated[0]
    names = [name for name, _ in ranking]  # costs decided otherwise
    return stated[names.index(decision)] if decision in names else None


def certainty(prediction: Prediction) -> float | None:
    """The probability of the decision where it is stated, else its margin; None where nothing could be decided."""
    stated = probability(prediction)
    return prediction.margin if stated is None else stated


def place(prediction: Prediction, id: str) -> tuple[float, tuple[float | None, float | None]]:
    """(rank in the queue, (probability, margin)): the least certain first.

    Equals have an order of their own: no two share a rank, so that a page that begins behind one leaves none out.
    """
    stated, margin = probability(prediction), prediction.margin
    sure = (margin or 0.0) if stated is None else stated
    own = int.from_bytes(blake2b(id.encode(), digest_size=4).digest(), "big")
    return sure + 1e-9 * own / 2**32, (stated, margin)
