"""What the definition of an experiment may say; what it may not is refused with its place."""

from typing import Any

import pytest

from feedrank.service.contract.faults import Unprocessable
from feedrank.service.experiments import plan as plans

LISTS: dict[str, Any] = {"task": "subset-ranking", "algorithm": "listnet"}
CLASSES: dict[str, Any] = {"task": "multiclass", "algorithm": "predtron", "loss": "zero-one"}


@pytest.mark.parametrize(
    ("definition", "place"),
    [
        ({"arms": ["a"]}, "/arms"),
        ({"arms": ["a", "a"]}, "/arms"),
        ({"arms": ["a", "undecided"]}, "/arms"),
        ({"arms": "ab"}, "/arms"),
        ({"arms": ["a", "b"], "what": 1}, "/what"),
        ({"arms": ["a", "b"], "method": "coin"}, "/method"),
        ({"arms": ["a", "b"], "method": "interleave"}, "/method"),
        ({"arms": ["a", "b"], "measure": "ndcg"}, "/measure"),
        ({"arms": ["a", "b"], "measure": "clicks@0"}, "/measure"),
        ({"arms": ["a", "b"], "confidence": 1}, "/confidence"),
        ({"arms": ["a", "b"], "confidence": True}, "/confidence"),
        ({"arms": ["a", "b"], "share": 0}, "/share"),
        ({"arms": ["a", "b"], "weights": {"a": 1}}, "/weights"),
        ({"arms": ["a", "b"], "weights": {"a": 1, "b": 0}}, "/b"),
        ({"arms": ["a", "b"], "learn": "none"}, "/learn"),
        ({"arms": ["a", "b"], "seed": 1}, "/seed"),
        ({"arms": ["a", "b"], "shadow": ["a"]}, "/arms"),
        ({"arms": ["a", "b"], "wait": 0}, "/wait"),
        ({"arms": ["a", "b"], "default": 0.5}, "/default"),
        ({"arms": ["a", "b"], "wait": 5, "default": 2}, "/default"),
        ({"arms": ["a", "b"], "guardrails": {}}, "/guardrails"),
        ({"arms": ["a", "b"], "guardrails": [{"limit": 0.1}]}, "/guardrails/0"),
        ({"arms": ["a", "b"], "guardrails": [{"measure": "ndcg"}]}, "/guardrails/0/measure"),
        ({"arms": ["a", "b"], "guardrails": [{"measure": "reward", "limit": 1}]}, "/guardrails/0/limit"),
    ],
)
def test_a_wrong_definition_is_refused_with_its_place(definition: dict[str, Any], place: str) -> None:
    with pytest.raises(Unprocessable) as refused:
        plans.read("test", definition, [CLASSES] * 3)
    assert refused.value.errors[0]["pointer"] == place


def test_arms_must_do_the_same() -> None:
    with pytest.raises(Unprocessable, match="has the task multilabel"):
        plans.read("test", {"arms": ["a", "b"]}, [CLASSES, {**CLASSES, "task": "multilabel"}])
    for wrong in ({"learn": "served"}, {"weights": {"a": 1, "b": 2}}, {"measure": "reward"}):
        with pytest.raises(Unprocessable):
            plans.read("test", {"arms": ["a", "b"], "method": "interleave", **wrong}, [LISTS, LISTS])


def test_a_full_definition_reads_as_itself() -> None:
    definition = {
        "arms": ["a", "b", "c"],
        "weights": {"a": 1, "b": 2, "c": 1},
        "share": 0.5,
        "learn": "served",
        "alias": "search",
        "wait": 60,
        "default": 0.5,
        "guardrails": [{"measure": "reward", "limit": 0.1}],
    }
    first = plans.read("test", definition, [CLASSES] * 3)
    assert plans.read("test", first.to_json(), [CLASSES] * 3) == first
