"""Losses of one predicted class: L(sigma, y) of two indices. REJECT is the decision to abstain."""

from __future__ import annotations

__all__ = ["REJECT", "absolute", "reject", "weighted"]

REJECT = -1


def weighted(sigma: int, y: int, cost: float) -> float:
    """L(sigma, y) = alpha_y if sigma != y, else 0; `cost` is alpha_y."""
    return 0.0 if sigma == y else cost


def reject(sigma: int, y: int, cost: float) -> float:
    """L(REJECT, y) = beta_y, elsewhere zero-one; `cost` is beta_y."""
    if sigma == REJECT:
        return cost
    return 0.0 if sigma == y else 1.0


def absolute(sigma: int, y: int) -> float:
    """L(sigma, y) = |sigma - y|, the number of grades between them."""
    return float(abs(sigma - y))
