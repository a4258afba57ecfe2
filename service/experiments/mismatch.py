"""Sample-ratio mismatch: do the arms get the shares of units that the weights set?

A Dirichlet mixture against the multinomial of the weights is a martingale under the weights (Lindon and Malek,
2022), so that by Ville's inequality P(it ever reaches 1 / level) <= level: it may be looked at after every unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, log

from .assignment import shares

LEVEL = 0.01
# The mixture's weight in units: small finds gross mismatches soon, large finds slight ones; a mismatch worth
# knowing is some percent, that is, some hundreds of units.
CONCENTRATION = 200.0


def log_evidence(counts: Sequence[int], weights: Sequence[float]) -> float:
    """log B(kappa w + counts) / B(kappa w) - sum counts log w: the evidence against the weights."""
    expected = shares(weights)
    prior = [CONCENTRATION * share for share in expected]
    evidence = lgamma(CONCENTRATION) - lgamma(CONCENTRATION + sum(counts))
    for n, share, a in zip(counts, expected, prior, strict=True):
        evidence += lgamma(a + n) - lgamma(a) - n * log(share)
    return evidence


def report(counts: Sequence[int], weights: Sequence[float]) -> dict[str, object]:
    """What GET says of it: `p` is a p-value that holds at every look."""
    evidence = log_evidence(counts, weights)
    return {
        "mismatch": evidence >= log(1 / LEVEL),
        "p": exp(-max(evidence, 0.0)),
        "expected": shares(weights),
        "level": LEVEL,
    }
