"""What may be said now: differences with confidence sequences, and the verdict.

All pairs share the error: each gets alpha / pairs, so that with probability `confidence` every interval holds its running
difference at every look, and an arm is named once its interval to every other arm leaves 0 out. No correction for looking
is left to do.
"""

from __future__ import annotations

from typing import Any

from feedrank.service.experiments import mismatch
from feedrank.service.experiments.confidence import Sums, interval, needed
from feedrank.service.experiments.plan import Plan
from feedrank.service.experiments.state import State, Tally

UNDECIDED = "undecided"


def report(plan: Plan, state: State) -> dict[str, Any]:
    """The reply of GET, without the experiment's name and definition."""
    alpha = (1 - plan.confidence) / len(state.pairs)
    up = -1 if plan.measure.is_loss else 1
    differences, better, lead = [], {}, {}
    for i, j, sums in state.each_pair():
        low, high = interval(sums, alpha, bound(plan, i, j))
        sign = up if low > 0 else -up if high < 0 else 0
        better[i, j], better[j, i] = sign > 0, sign < 0
        mean = sums.total / sums.n if sums.n else 0.0
        lead[i, j], lead[j, i] = up * mean, -up * mean
        differences.append(
            {
                "arms": [plan.arms[i], plan.arms[j]],
                "difference": mean if sums.n else None,
                "lower": low,
                "upper": high,
                "rounds": sums.n,
                "better": plan.arms[i if sign > 0 else j] if sign else None,
            }
        )
    arms = range(len(plan.arms))
    winner = next((i for i in arms if all(better[i, j] for j in arms if j != i)), None)
    ratio = mismatch.report([tally.units for tally in state.arms], plan.weights) if plan.split else None
    spoiled = bool(ratio and ratio["mismatch"])
    decided = winner is not None and not spoiled
    return {
        "status": state.status,
        "promoted": state.promoted,
        "version": state.events,
        "arms": {name: _arm(tally) for name, tally in zip(plan.arms, state.arms, strict=True)},
        "shadow": {name: _arm(tally) for name, tally in zip(plan.shadow, state.shadow, strict=True)},
        "better": "lower" if plan.measure.is_loss else "higher",
        "differences": differences,
        "sample_ratio": ratio,
        "verdict": plan.arms[winner] if winner is not None and decided else UNDECIDED,
        "more_rounds": 0 if decided else _more(plan, state, lead, alpha),
        "reason": _reason(decided, spoiled),
    }


def bound(plan: Plan, i: int, j: int) -> float:
    """c of the pair: how far X can fall below its guess."""
    if not plan.split:
        return 1.0
    p = plan.assignment.propensity(i, j)
    return 1 / min(p, 1 - p)


def _arm(tally: Tally) -> dict[str, Any]:
    mean = tally.total / tally.rounds if tally.rounds else None
    return {"units": tally.units, "rounds": tally.rounds, "mean": mean}


def _more(plan: Plan, state: State, lead: dict[tuple[int, int], float], alpha: float) -> int | None:
    """Rounds until the arm that leads now has left the last of its rivals behind; None if none leads."""
    arms = range(len(plan.arms))
    best = max(arms, key=lambda i: min(lead[i, j] for j in arms if j != i))
    if min(lead[best, j] for j in arms if j != best) <= 0:
        return None
    rounds = [_traffic(plan, i, j, sums, alpha) for i, j, sums in state.each_pair() if best in (i, j)]
    return None if None in rounds else max(each for each in rounds if each is not None)


def _traffic(plan: Plan, i: int, j: int, sums: Sums, alpha: float) -> int | None:
    """`needed` in rounds of the whole experiment, of which a pair sees only its own in a split."""
    rounds = needed(sums, alpha, bound(plan, i, j))
    if rounds is None or not plan.split:
        return rounds
    return round(rounds * sum(plan.weights) / (plan.weights[i] + plan.weights[j]))


def _reason(decided: bool, spoiled: bool) -> str:
    if spoiled:
        return "units are not shared out as the weights say: feedback is lost for some arm, and no verdict can be trusted"
    if decided:
        return "its interval to every other arm leaves 0 out"
    return "no arm's interval to every other arm leaves 0 out yet"
