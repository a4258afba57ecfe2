"""One item of a list, drawn, and its reward; or one for each slot, and theirs."""

from collections.abc import Mapping, Sequence
from typing import Any

from .. import forms
from ..errors import TruthError
from ..json_types import Json
from ..names import Names
from ..truths import Truth

DRAWN = ("id", "probability")
SLOT = ("id", "choice", "probability")


class Chosen(forms.DecisionKind[int, float]):
    """The decision is an id and the probability with which it was drawn, or a list of (slot, id, probability)."""

    field = "choice"
    abstains = False
    draws = True

    def encode(self, truth: Truth, index: Mapping[str, int]) -> float:
        assert truth.reward is not None
        return truth.reward

    def sigma(self, served: Mapping[str, Any], index: Mapping[str, int], rejects: bool) -> int:
        return index.get(served["id"], forms.GONE)

    def name(self, sigma: int, names: Names) -> str:
        return names[int(sigma)]

    def reply(self, named: Json) -> dict[str, Json]:
        if isinstance(named, list):
            return {"slots": [dict(zip(SLOT, drawn, strict=True)) for drawn in named]}
        assert isinstance(named, tuple)
        return {"choice": named[0], "probability": named[1]}

    def shown(self, named: Json, ranking: Sequence[tuple[str, float]]) -> dict[str, Json]:
        if isinstance(named, list):
            return self.reply(named)
        assert isinstance(named, tuple)
        return dict(zip(DRAWN, named, strict=True))

    def check(self, served: object) -> None:
        if isinstance(served, Mapping) and set(served) == {"slots"}:
            slots = served["slots"]
            if not isinstance(slots, list) or not slots:
                raise TruthError("must be a list of what was shown in each slot", "/served/slots")
            for i, slot in enumerate(slots):
                _check_drawn(slot, SLOT, f"/served/slots/{i}")
            for name in ("id", "choice"):
                if len({slot[name] for slot in slots}) < len(slots):
                    raise TruthError(f"the same {name} in two slots", "/served/slots")
            return
        _check_drawn(served, DRAWN, "/served")


def _check_drawn(drawn: object, fields: Sequence[str], place: str) -> None:
    if not isinstance(drawn, Mapping) or set(drawn) != set(fields):
        raise TruthError(f"must be an object with {' and '.join(map(repr, fields))}", place)
    for name in fields[:-1]:
        if not isinstance(drawn[name], str):
            raise TruthError("must be text", f"{place}/{name}")
    p = drawn["probability"]
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0.0 < p <= 1.0:
        raise TruthError("must be a number above 0 and at most 1", f"{place}/probability")


forms.add(
    forms.Form(
        "choice",
        "one item of a list, drawn with a known probability, and a reward for it",
        Chosen(),
        ("reward",),
        "reward",
        instance="items",
    )
)
