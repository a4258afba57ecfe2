"""Measures stay in [0, 1] and say what their names say."""

from typing import Any

import numpy as np
import pytest

from feedrank.learners import build, registry
from feedrank.learners.spec import read as full
from feedrank.service.contract.faults import Unprocessable
from feedrank.service.experiments.measures import Measure, check_fit, credited, defaults, kind_of, read, value

JSON = dict[str, Any]
ABCD = {"ranking": ["a", "b", "c", "d"], "items": ["d", "c", "b", "a"]}


def measure(name: str | None, method: str = "split", **spec: Any) -> Measure:
    specs = [full(spec), full(spec)]
    return defaults(specs, method)["grades"] if name is None else read(name, specs, method)


@pytest.mark.parametrize(
    ("name", "feedback", "expected"),
    [
        ("clicks", {"clicks": ["b", "d"]}, 0.5),
        ("clicks@3", {"clicks": ["b", "d"]}, 1 / 3),
        ("clicks@9", {"clicks": ["b", "d"]}, 0.5),
        ("clicks@3", {"relevance": {"a": 2, "b": 0}}, 1 / 3),
        ("clicks", {"reward": 1.0}, None),
        ("reciprocal-rank", {"clicks": ["d", "c"]}, 1 / 3),
        ("reciprocal_rank", {"clicks": []}, 0.0),
        ("reward", {"reward": 0.25}, 0.25),
        ("reward", {"clicks": ["a"]}, None),
        ("ndcg", {"relevance": {"a": 3, "b": 2, "c": 1}}, 0.0),
        ("ap", {"relevance": {"b": 1}}, 0.5),
        ("precision@2", {"relevance": {"a": 1, "d": 1}}, 0.5),
        ("pairwise-disagreement", {"relevance": {"c": 1}}, 2 / 3),
        ("ap", {"clicks": ["b"]}, None),
        ("loss", {}, None),
    ],
)
def test_measures_of_lists(name: str, feedback: dict[str, Any], expected: float | None) -> None:
    result = value(measure(name, task="subset-ranking"), ABCD, feedback)
    assert result == (None if expected is None else pytest.approx(expected))


def test_what_was_not_shown_stands_last() -> None:
    cut = {"ranking": ["a"], "items": ["a", "b", "c"]}
    assert value(measure("ap", task="subset-ranking"), cut, {"relevance": {"c": 1}}) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("spec", "served", "feedback", "expected"),
    [
        ({"task": "multiclass"}, {"label": "a"}, {"label": "b"}, 1.0),
        ({"task": "multiclass"}, {"label": "b"}, {"label": "b"}, 0.0),
        ({"task": "multiclass"}, {"label": None}, {"label": "b"}, None),
        ({"task": "ordinal", "labels": ["a", "b", "c", "d"]}, {"label": "a"}, {"label": "c"}, 2 / 3),
        (
            {"task": "binary", "labels": ["a", "b"], "algorithm": "predtron", "loss": "weighted",
             "weights": {"a": 1, "b": 4}},
            {"label": "b"}, {"label": "a"}, 0.25,
        ),
        (
            {"task": "binary", "labels": ["a", "b"], "algorithm": "predtron", "loss": "matrix",
             "matrix": {"a": {"b": 3}, "b": {"a": 4}}},
            {"label": "b"}, {"label": "a"}, 0.75,
        ),
        (
            {"task": "multilabel", "algorithm": "predtron", "loss": "hamming"},
            {"labels": ["a", "b"]}, {"labels": ["b", "c", "e"]}, 3 / 4,
        ),
        (
            {"task": "multilabel", "algorithm": "predtron", "loss": "error-set-size"},
            {"labels": ["a"]}, {"labels": ["c"]}, 1 / 3,
        ),
        ({"task": "label-ranking", "algorithm": "dual-ascent"}, {"ranking": ["a", "b", "c"]}, {"labels": ["b"]}, 1.0),
        ({"task": "label-ranking", "algorithm": "dual-ascent"}, {"ranking": ["a", "b", "c"]}, {"labels": ["a", "b"]}, 0.0),
    ],
)  # fmt: skip
def test_losses_are_those_of_the_core_within_one(
    spec: dict[str, Any], served: dict[str, Any], feedback: dict[str, Any], expected: float | None
) -> None:
    result = value(measure(None, **spec), {**served, "items": [], "known": 4}, feedback)
    assert result == (None if expected is None else pytest.approx(expected))


SPECS: list[JSON] = [
    {"task": "multiclass", "algorithm": "predtron", "loss": "weighted", "weights": {"a": 3, "b": 0.5}},
    {"task": "multiclass", "algorithm": "predtron", "loss": "reject", "reject_costs": {"a": 0.25}},
    {
        "task": "multiclass",
        "algorithm": "quadratic-surrogate",
        "loss": "block-zero-one",
        "blocks": [["a", "b"]],
    },
    {"task": "ordinal", "algorithm": "predtron", "labels": ["a", "b", "c", "d"]},
    *(
        {"task": "multilabel", "algorithm": "predtron", "loss": loss}
        for loss in registry.losses("multilabel")
    ),
    {"task": "multilabel", "algorithm": "quadratic-surrogate", "loss": "f-score"},
    {
        "task": "multilabel",
        "algorithm": "quadratic-surrogate",
        "loss": "block-zero-one",
        "blocks": [["a", "b"]],
    },
    *(
        {
            "task": task,
            "algorithm": "quadratic-surrogate",
            "loss": loss,
            **({"cutoff": 2} if "ci" in loss else {}),
        }
        for task in ("label-ranking", "subset-ranking")
        for loss in ("ndcg", "ap", "precision", "pairwise-disagreement")
    ),
    {"task": "label-ranking", "algorithm": "dual-ascent"},
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec['task']}-{spec.get('loss')}")
def test_losses_are_those_of_the_core_but_for_a_scale(spec: JSON) -> None:
    rng = np.random.default_rng(0)
    names, task = list("abcd"), spec["task"]
    own = measure("loss", **spec)
    ratios = set()
    for _ in range(60):
        order = [names[i] for i in rng.permutation(4)]
        some = [name for name in names if rng.random() < 0.5]
        other = [name for name in names if rng.random() < 0.5]
        served: JSON = {"ranking": order}
        truth: JSON = {"relevance": {name: int(rng.integers(3)) for name in names}}
        instance: JSON = {"features": {}}
        if task == "subset-ranking":
            instance = {"items": [{"id": name, "features": {"f": 1}} for name in names]}
        elif task == "multilabel":
            served, truth = {"labels": other}, {"labels": some}
        elif task != "label-ranking":
            served, truth = {"label": str(rng.choice([*names]))}, {"label": str(rng.choice(names))}
            if spec.get("loss") == "reject" and rng.random() < 0.3:
                served = {"label": None}
        learner = build({**spec, **({} if task == "subset-ranking" else {"labels": names})})
        expected = learner.learn(instance, truth, served=served).served_loss
        result = value(own, {**served, "items": names if "items" in instance else [], "known": 4}, truth)
        assert (result is None) == (expected is None)
        if result is not None:
            assert 0 <= result <= 1
            assert (result == pytest.approx(0, abs=1e-12)) == (expected == pytest.approx(0, abs=1e-12))
            if result > 1e-12 and spec.get("loss") != "error-set-size":
                ratios.add(round(expected / result, 9))
    assert len(ratios) == (spec.get("loss") != "error-set-size")


def test_arms_with_losses_of_their_own_need_a_named_one() -> None:
    lists = [full({"task": "subset-ranking", "algorithm": "slam", "measure": m}) for m in ("ndcg", "ap")]
    with pytest.raises(Unprocessable, match="ap, ndcg"):
        read("loss", lists, "split")
    assert read("ndcg@5", lists, "split").text == "ndcg@5"
    costs = [
        full({"task": "multiclass", "algorithm": "predtron", "loss": "weighted", "weights": {"a": c}})
        for c in (1, 2)
    ]
    with pytest.raises(Unprocessable, match="weights"):
        read("weighted", costs, "split")
    with pytest.raises(Unprocessable, match="cutoff"):
        read("precision", lists, "split")


def test_credit_goes_to_clicked_places() -> None:
    names = ["a", "b", "c", "d"]
    clicks = measure("clicks@3", "interleave", task="subset-ranking")
    assert credited(clicks, names, {"clicks": ["d", "c", "a"]}) == [0, 2]
    first = measure("reciprocal-rank", "interleave", task="subset-ranking")
    assert credited(first, names, {"clicks": ["d", "c"]}) == [2]
    assert credited(first, names, {"reward": 1}) is None
    assert measure(None, "interleave", task="subset-ranking").name == "clicks"


def test_a_measure_must_fit_the_feedback() -> None:
    with pytest.raises(Unprocessable, match="reciprocal-rank"):
        check_fit(measure("ndcg", task="subset-ranking"), {"clicks": ["a"]})
    with pytest.raises(Unprocessable, match="reward"):
        check_fit(measure("reward", task="subset-ranking"), {"clicks": ["a"]})
    check_fit(measure("reward", task="subset-ranking"), {"reward": 0.0})
    check_fit(measure("clicks@3", task="subset-ranking"), {"relevance": {"a": 1}})


def test_the_default_follows_the_feedback() -> None:
    own = defaults([full({"task": "subset-ranking"})] * 2, "split")
    assert own[kind_of({"clicks": []})].text == "reciprocal-rank"
    assert own[kind_of({"relevance": {}})].is_loss
    lists = [full({"task": "subset-ranking", "algorithm": "slam", "measure": m}) for m in ("ndcg", "ap")]
    assert defaults(lists, "split")["grades"].text == "ndcg"
    classes = defaults([full({"task": "multiclass"})] * 2, "split")
    assert classes["clicks"] == classes["grades"]


def test_measures_are_named_in_words() -> None:
    assert (
        measure("ndcg@10", task="subset-ranking").in_words
        == "NDCG loss in the first 10 positions, lower is better"
    )
    assert measure("reward", task="multiclass").in_words == "reward, higher is better"
    for task in ("binary", "multiclass", "ordinal", "multilabel", "label-ranking", "subset-ranking"):
        for loss in registry.losses(task):
            spec = {"task": task, **({"labels": ["a", "b"]} if task in ("binary", "ordinal") else {})}
            name = "precision@3" if loss == "precision" else loss
            assert not measure(name, **spec).in_words.startswith(f"{loss},")
