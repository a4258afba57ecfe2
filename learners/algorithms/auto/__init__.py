"""The automatic learner, and its experts as algorithms of their own."""

import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ... import registry
from ...checks import boolean, choice, integer
from ...forms import Form
from ...kernel.lists import PAIRED
from ...model import Model
from ...parameters import BELOW, BLOCKS, FIRST_PLACES, MATRIX, OF_VECTORS, REJECT_COSTS, WEIGHTS
from ...registry import Algorithm, Cost, Parameter, Size, Spec, discover, needs, register
from ...tasks.multilabel import Hamming, SubsetZeroOne
from ...tasks.one_class import Multiclass
from .blend import Blend
from .decisions import ByBlock, ByGrade, ByMatrix, ByScores, Decider, FScore, Weighted, WithReject
from .expert_registry import (
    Setting,
    expert,
    expert_entries,
    experts_of,
    name_preset,
    names_check,
    preset_names,
)
from .least_squares import MOST_COLUMNS
from .list_blend import ListBlend
from .list_pool import WIDEST, ListPool

_KINDS = {
    "binary": "class",
    "multiclass": "class",
    "ordinal": "grade",
    "multilabel": "set",
    "label-ranking": "ranking",
}
_LOSSES: dict[str, tuple[str, ...]] = {
    "binary": ("zero-one", "weighted", "reject", "matrix"),
    "multiclass": ("zero-one", "weighted", "reject", "block-zero-one", "matrix"),
    "ordinal": ("absolute", "matrix"),
    "multilabel": ("hamming", "subset-zero-one", "f-score"),
    "label-ranking": ("ndcg", "precision", "ap"),
    "subset-ranking": ("ndcg", "precision", "ap"),
}
_WEIGHT = (
    "counts as w events; in dual ascent the largest step is w C, in AdaGrad the gradient is w times as long"
)


def _decider(spec: Spec) -> Decider:
    loss = spec["loss"]
    if spec["task"] == "ordinal":
        count = len(spec["labels"])
        steps = np.arange(count)[:, None] > np.arange(max(count - 1, 0))
        return (ByGrade if loss == "absolute" else ByMatrix)(steps.astype(np.float64))
    plain: dict[str, Callable[[], Decider]] = {
        "zero-one": lambda: ByScores(Multiclass()),
        "weighted": Weighted,
        "reject": WithReject,
        "block-zero-one": ByBlock,
        "matrix": ByMatrix,
        "hamming": lambda: ByScores(Hamming(), counts=True),
        "subset-zero-one": lambda: ByScores(SubsetZeroOne()),
        "f-score": FScore,
    }
    if loss in plain:
        return plain[loss]()
    return ByScores(registry.loss(spec["task"], loss).make(spec | {"position": "linear"}))


def _build_auto(spec: Spec) -> Model:
    if spec["task"] == "subset-ranking":
        task = registry.loss(spec["task"], spec["loss"]).make(spec | {"position": "linear"})
        return ListBlend(task) if "listnet" in experts_of(spec["preset"]) else ListPool(task)
    return _build(spec, spec["experts"])


def _build(spec: Spec, names: list[str]) -> Model:
    kind = _KINDS[spec["task"]]
    entries = [expert(name) for name in names]
    setting = Setting(kind in ("set", "grade"), int(spec["bias"]), frozenset(names), kind == "ranking")
    start = np.array([entry.trust for entry in entries]) if len(names) > 1 else np.ones(1)
    labels = 2 if spec["task"] == "binary" else 0
    experts = [entry.build(setting) for entry in entries]
    return Blend(kind, labels, spec["bias"], _decider(spec), experts, start)


def _cost(spec: Spec, size: Size) -> Cost:
    if size.items:
        inputs = 2 * (size.known_features + size.features)
        square = inputs * inputs if inputs <= 4 * WIDEST else inputs
        partners = min(size.items, PAIRED)
        seconds = 2e-4 + 2e-8 * square + size.items * (5e-5 + 4e-9 * square + 2e-8 * partners)
        return Cost(seconds, 96 * size.items * inputs + 24 * square + 48 * partners * partners)
    cells = max(1, size.features) * max(1, size.labels)
    features = size.known_features + size.features
    curves, window = (300 * (300 + size.labels), 2 * 4096 * 5 * features) if features <= 300 else (0, 0)
    if size.labels > MOST_COLUMNS:
        curves = 0  # least squares has left
    return Cost(5e-4 + 6e-8 * cells + 5e-9 * curves, 200 * cells + 16 * curves + window)


def _has_cutoff(form: Form) -> bool:
    return "precision" in _LOSSES.get(form.name, ())


_SHARED: dict[str, Parameter] = {
    "weighting": Parameter(
        choice("idf", "none"),
        "`idf` multiplies a sparse feature by 1 + log((1 + n) / (1 + n_j)), n events so far, n_j of them with feature j",
        forms=lambda form: not form.items,
        why=OF_VECTORS,
        example="none",
    ),
    "normalize": Parameter(
        lambda form: choice("list" if form.items else "auto"),
        "features are always scaled with this algorithm: online, or within their list",
        example="auto",
    ),
    "bias": Parameter(
        boolean,
        "adds a constant feature",
        lambda spec: spec["task"] != "subset-ranking",
        shown="true; lists false",
    ),
    "loss": Parameter(
        lambda form: choice(*_LOSSES[form.name]),
        "what a decision costs; the decision of least expected cost is taken",
        example="weighted",
    ),
    "weights": WEIGHTS,
    "reject_costs": REJECT_COSTS,
    "matrix": MATRIX,
    "blocks": BLOCKS,
    "cutoff": Parameter(
        integer(least=1),
        FIRST_PLACES,
        None,
        needs("loss", "ndcg", "precision"),
        forms=_has_cutoff,
        required=needs("loss", "precision"),
        why="goes with loss: ndcg or precision",
        example=10,
    ),
}


def _agree(spec: Spec) -> None:
    name_preset(spec)
    if "below" in spec and spec["below"] is None:
        spec["below"] = 0 if spec["preset"] == preset_names(spec["task"])[-1] else 1


register(
    Algorithm(
        "auto",
        "several learners, weighted by how well each has predicted so far; with probabilities and a regret bound",
        (*_KINDS, "subset-ranking"),
        {
            **_SHARED,
            "preset": Parameter(
                lambda form: choice(*preset_names(form.name)),
                "the version of the list of experts; a learner keeps the one that it was made with",
                shown="the newest",
                example="multiclass-2",
                versions=lambda form: preset_names(form.name)[-1],
            ),
            "below": replace(BELOW, default=None, shown="1; with version 1 of the preset 0"),
            "experts": Parameter(
                lambda form: names_check(),
                "the learners that take part",
                lambda spec: experts_of(spec["preset"]),
                shown="those of `preset`",
                forms=lambda form: not form.items,
                why=OF_VECTORS,
                example=["dual-ascent", "naive-bayes"],
            ),
        },
        _build_auto,
        presets={task: {} for task in (*_KINDS, "subset-ranking")},
        agree=_agree,
        cost=_cost,
        weight=_WEIGHT,
    )
)


def _by_itself(name: str) -> Callable[[Spec], Model]:
    return lambda spec: _build(spec, [name])


discover([sys.modules[__name__]])
for _entry in expert_entries():
    if _entry.alone:
        register(
            Algorithm(
                _entry.name,
                _entry.alone,
                tuple(_KINDS),
                _SHARED,
                _by_itself(_entry.name),
                cost=_cost,
                weight=_WEIGHT,
            )
        )
