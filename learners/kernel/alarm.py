"""The evidence for a change after one more loss: the specification. What it is for is in algorithms/auto/drift.py."""

THRESHOLD = 100_000.0
TOLERANCE = 0.05
WARM_UP = 50
HIGHEST = 0.95
ODDS = (2.0, 4.0, 16.0)
Evidence = tuple[float, float, float]


def evidence_after(evidence: Evidence, count: int, total: float, loss: float) -> Evidence:
    """M <- (M + 1) e of each of the three odds; `count` losses before it add up to `total`."""
    if count < WARM_UP:
        return evidence
    b = min(total / count + TOLERANCE, HIGHEST)
    least, spread, off = 1.0 - b, b * (1.0 - b), loss - b
    first, second, third = [
        (M + 1.0) * (1.0 + (c * b / (c * b + least) - b) / spread * off)
        for c, M in zip(ODDS, evidence, strict=True)
    ]
    return first, second, third


def value(evidence: Evidence) -> float:
    """M, their mean; the alarm is raised at 100,000."""
    return (evidence[0] + evidence[1] + evidence[2]) / 3.0
