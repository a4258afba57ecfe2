"""What is kept of a draw beside the item and its probability: all that it can prove later, and of whom.

    draw       {"probabilities": [p of each item, in their order], "exclude": [ids]?, "baseline"?: ...}
    baseline   {"id", "share", "policy": [pi(served), pi(baseline)], "since", "by"}

of slots {"slots": [draw, ...]}, one for each, where `exclude` has what the slots before it had drawn as well.

The item that the caller would have shown is named here, when it is drawn: it is the first of those that were *allowed*.
Only the draw itself is evidence. What was served elsewhere, or instead of it, has none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from ..errors import TruthError
from ..instances import Floats
from ..json_types import Json

FIELD = "draw"


@dataclass(frozen=True, slots=True)
class DrawEvidence:
    """One draw from p = share pi + (1 - share) [baseline]: what the apprentice reads of it."""

    own: float  # pi of the item that was served
    is_baseline: bool
    share: float
    since: int

    @property
    def probability(self) -> float:
        """p of the item that was served."""
        return self.share * self.own + (1.0 - self.share) * self.is_baseline


def fingerprint(spec: Mapping[str, Any]) -> str:
    """Whose draw it was: another learner that reads the same log proves nothing by it."""
    return blake2b(json.dumps(spec, sort_keys=True).encode(), digest_size=8).hexdigest()


def draw_of(
    probabilities: Floats, exclude: Sequence[str], baseline: dict[str, Json] | None
) -> dict[str, Json]:
    """What is kept of a draw."""
    kept: dict[str, Json] = {"probabilities": probabilities.tolist()}
    if exclude:
        kept["exclude"] = list(exclude)
    if baseline is not None:
        kept["baseline"] = baseline
    return kept


def without_draw(served: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """What a caller may say of a served item."""
    if served is None or FIELD not in served:
        return served
    return {name: value for name, value in served.items() if name != FIELD}


def draws_of(served: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What was served, one {"id", "probability", "draw"?} a draw; of slots each with the name of its `slot`."""
    draw = served.get(FIELD)
    if "slots" not in served:
        return [served]
    kept = [None] * len(served["slots"]) if draw is None else draw["slots"]
    return [
        {
            "slot": slot["id"],
            "id": slot["choice"],
            "probability": slot["probability"],
            **({} if own is None else {FIELD: own}),
        }
        for slot, own in zip(served["slots"], kept, strict=True)
    ]


def evidence_of(served: Mapping[str, Any], by: str) -> DrawEvidence | None:
    """The evidence of a served item, if the learner `by` drew it beside a baseline; TruthError if it is none."""
    baseline = served.get(FIELD, {}).get("baseline")
    if baseline is None or baseline["by"] != by:
        return None
    own, share = float(baseline["policy"][0]), float(baseline["share"])
    if not 0.0 <= own <= 1.0 or not 0.0 < share < 1.0:
        raise TruthError("has a share, or a probability, that no learner gives", "/served/draw")
    return DrawEvidence(own, served["id"] == baseline["id"], share, int(baseline["since"]))
