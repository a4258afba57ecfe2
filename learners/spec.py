"""The spec of a learner: read, checked, completed. A full spec holds every parameter, so that it explains itself.

Tables say which algorithm takes which parameter on which task; a parameter that has no meaning where it stands is refused,
never ignored. To add a parameter, add a row to its algorithm's table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import presets
from .checks import (
    Check,
    boolean,
    choice,
    costs,
    integer,
    label_blocks,
    label_list,
    number,
    number_or,
    numbers,
)
from .errors import SpecError, pointer

Spec = dict[str, Any]

TASKS = ("binary", "multiclass", "ordinal", "multilabel", "label-ranking", "subset-ranking")
RANKINGS = ("label-ranking", "subset-ranking")

LOSSES: dict[str, tuple[str, ...]] = {
    "binary": ("zero-one", "weighted", "reject"),
    "multiclass": ("zero-one", "weighted", "reject"),
    "ordinal": ("absolute",),
    "multilabel": ("subset-zero-one", "hamming", "error-set-size"),
    "label-ranking": ("ndcg", "precision", "ap"),
    "subset-ranking": ("ndcg", "precision", "ap"),
}

QUADRATIC_LOSSES: dict[str, tuple[str, ...]] = {
    "multiclass": ("zero-one", "weighted", "block-zero-one"),
    "multilabel": ("subset-zero-one", "hamming", "f-score", "precision", "block-zero-one"),
    "label-ranking": ("ndcg", "precision", "ap", "pairwise-disagreement"),
    "subset-ranking": ("ndcg", "precision", "ap", "pairwise-disagreement"),
}

Condition = Callable[[Spec], bool]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One row of a table: how a value is checked, what it is when left out, and when it has a meaning at all."""

    check: Check | Callable[[Spec], Check]
    default: Any = None
    when: Condition = lambda spec: True
    why: str = "has no meaning here"
    required: bool = False


def _of_task(table: dict[str, tuple[str, ...]]) -> Callable[[Spec], Check]:
    return lambda spec: choice(*table[spec["task"]])


def _first(table: dict[str, tuple[str, ...]]) -> Callable[[Spec], str]:
    return lambda spec: table[spec["task"]][0]


def _is(field: str, *values: Any) -> Condition:
    return lambda spec: spec.get(field) in values


def _scale(spec: Spec) -> tuple[float, float]:
    """C and gamma of dual ascent. Entropic scores are averages of x: with x scaled down, gamma shrinks and C grows."""
    if spec["complexity"] == "squared-norm":
        return 1.0, 1.0
    return (10.0, 0.0005) if spec["normalize"] == "unit" else (1.0, 0.005)


def _kernels(*kernels: str) -> dict[str, Parameter]:
    return {
        "kernel": Parameter(choice(*kernels), kernels[0]),
        "bandwidth": Parameter(number(above=0), 1.0, _is("kernel", "gaussian"), "goes with kernel: gaussian"),
    }


_CUTOFF = Parameter(
    integer(least=1),
    None,
    lambda s: s.get("loss", s.get("measure")) == "ndcg",
    "goes with ndcg and precision",
)
_CUTOFF_OF_LOSS = Parameter(
    integer(least=1), None, _is("loss", "ndcg", "precision"), "goes with loss: ndcg or precision"
)
_R = Parameter(
    number(above=0), None, _is("learning_rate", "theory"), "goes with learning_rate: theory", required=True
)

ALGORITHMS: dict[str, tuple[tuple[str, ...], dict[str, Parameter]]] = {
    "predtron": (
        TASKS,
        {
            "loss": Parameter(_of_task(LOSSES), _first(LOSSES)),
            "weights": Parameter(
                costs(zero=False), dict, _is("loss", "weighted"), "goes with loss: weighted"
            ),
            "reject_costs": Parameter(
                costs(zero=True), dict, _is("loss", "reject"), "goes with loss: reject"
            ),
            "cutoff": _CUTOFF_OF_LOSS,
            "variant": Parameter(choice("standard", "loss-driven"), "standard"),
            "learning_rate": Parameter(number_or("theory", above=0), 1.0),
            "R": _R,
            "position": Parameter(
                choice("linear", "reciprocal", "power"),
                "linear",
                _is("task", *RANKINGS),
                "goes with rankings",
            ),
            "exponent": Parameter(
                number(above=0), 1.1, _is("position", "power"), "goes with position: power"
            ),
            **_kernels("linear", "gaussian", "polynomial"),
            "degree": Parameter(
                integer(least=1), 2, _is("kernel", "polynomial"), "goes with kernel: polynomial"
            ),
            "budget": Parameter(
                integer(least=1),
                None,
                _is("kernel", "gaussian", "polynomial"),
                "goes with a kernel that is not linear",
            ),
            "norm": Parameter(
                choice("l2", "l1", "group"), "l2", _is("kernel", "linear"), "goes with kernel: linear"
            ),
        },
    ),
    "dual-ascent": (
        ("label-ranking", "multiclass"),
        {
            "update": Parameter(choice("I", "II", "III"), "I"),
            "complexity": Parameter(choice("squared-norm", "entropy"), "squared-norm"),
            "C": Parameter(number(above=0), lambda s: _scale(s)[0]),
            "gamma": Parameter(number(above=0), lambda s: _scale(s)[1]),
            "dimension": Parameter(
                integer(least=1), 50_000, _is("complexity", "entropy"), "goes with complexity: entropy"
            ),
        },
    ),
    "slam": (
        ("subset-ranking", "label-ranking"),
        {
            "measure": Parameter(choice("ndcg", "ap"), "ndcg"),
            "cutoff": _CUTOFF,
            "margin": Parameter(number(above=0), 1.0),
            "learning_rate": Parameter(number_or("scale-free", "theory", above=0), "scale-free"),
            "R": _R,
        },
    ),
    "minimax-perceptron": (
        ("subset-ranking", "label-ranking"),
        {"measure": Parameter(choice("ndcg", "ap"), "ndcg"), "cutoff": _CUTOFF},
    ),
    "listnet": (
        ("subset-ranking", "label-ranking"),
        {"learning_rate": Parameter(number_or("scale-free", above=0), "scale-free")},
    ),
    "quadratic-surrogate": (
        ("multiclass", "multilabel", "label-ranking", "subset-ranking"),
        {
            "loss": Parameter(_of_task(QUADRATIC_LOSSES), _first(QUADRATIC_LOSSES)),
            "weights": Parameter(
                costs(zero=False), dict, _is("loss", "weighted"), "goes with loss: weighted"
            ),
            "blocks": Parameter(
                label_blocks,
                None,
                _is("loss", "block-zero-one"),
                "goes with loss: block-zero-one",
                required=True,
            ),
            # Not only of the spec's own loss: another decoder, asked for at predict time, may need it.
            "cutoff": Parameter(
                integer(least=1), None, lambda s: s["task"] != "multiclass", "goes with sets and rankings"
            ),
            "regularization": Parameter(number(above=0), 1.0),
            **_kernels("linear", "gaussian"),
            "budget": Parameter(integer(least=1), None),
        },
    ),
}

COMMON: dict[str, Parameter] = {
    "labels": Parameter(
        label_list, list, lambda s: s["task"] != "subset-ranking", "subset-ranking takes items"
    ),
    "weighting": Parameter(
        choice("none", "idf"), "none", lambda s: s["task"] != "subset-ranking", "goes with feature vectors"
    ),
    "normalize": Parameter(
        lambda s: choice("none", "unit", *(("list",) if s["task"] == "subset-ranking" else ())), "none"
    ),
    "bias": Parameter(boolean, False),
    "examination": Parameter(
        numbers(above=0, most=1), None, _is("task", "subset-ranking"), "goes with clicks on items"
    ),
}


def read(given: Any) -> Spec:
    """The full spec: every parameter that has a meaning, with its default where it was left out."""
    if not isinstance(given, Mapping):
        raise SpecError("a spec must be an object")
    task = _required(given, "task", TASKS)
    asked = dict(given)
    if "algorithm" not in asked:
        asked = presets.of(task) | asked
    algorithm = _required(asked, "algorithm", tuple(ALGORITHMS))
    tasks, parameters = ALGORITHMS[algorithm]
    if task not in tasks:
        raise SpecError(f"{algorithm} does not do {task}; it does {', '.join(tasks)}", "/algorithm")
    table = COMMON | parameters
    for field in asked:
        if field not in table and field not in ("task", "algorithm"):
            raise SpecError(_unknown(field, algorithm), pointer(field))
    full: Spec = {"task": task, "algorithm": algorithm}
    for field, parameter in table.items():
        _fill(full, asked, field, parameter)
    _agree(full)
    return full


def _required(given: Mapping[str, Any], field: str, known: tuple[str, ...]) -> str:
    if field not in given:
        raise SpecError(f"is required: one of {', '.join(known)}", pointer(field))
    value = given[field]
    if not isinstance(value, str) or value not in known:
        raise SpecError(f"must be one of {', '.join(known)}", pointer(field))
    return value


def _unknown(field: object, algorithm: str) -> str:
    owners = [name for name, (_, table) in ALGORITHMS.items() if field in table]
    if owners:
        return f"is a parameter of {', '.join(owners)}, not of {algorithm}"
    return "unknown field"


def _fill(full: Spec, asked: Mapping[str, Any], field: str, parameter: Parameter) -> None:
    if not parameter.when(full):
        if asked.get(field) is not None:
            raise SpecError(parameter.why, pointer(field))
        return
    value = asked.get(field)
    if value is None:
        if parameter.required:
            raise SpecError("is required here", pointer(field))
        default = parameter.default
        if callable(default):
            default = default() if default in (dict, list) else default(full)
        full[field] = default
        return
    check = parameter.check
    full[field] = check.read(value, field) if isinstance(check, Check) else check(full).read(value, field)


def _agree(full: Spec) -> None:
    """What no single field can tell."""
    task, labels = full["task"], full.get("labels", [])
    if task == "binary" and len(labels) != 2:
        raise SpecError("binary needs exactly two labels, the negative one first", "/labels")
    if task == "ordinal" and not labels:
        raise SpecError("ordinal needs its labels, the lowest first", "/labels")
    if full.get("loss") == "precision" and full["cutoff"] is None:
        raise SpecError("precision needs a cutoff", "/cutoff")
    if task in ("binary", "ordinal"):
        for field in ("weights", "reject_costs"):
            for label in full.get(field, {}):
                if label not in labels:
                    raise SpecError("is not one of the labels", pointer(field, label))
    if full["algorithm"] == "dual-ascent" and full["complexity"] == "entropy" and full["gamma"] >= 1:
        raise SpecError(
            "must be below 1 with complexity: entropy, because scores are probabilities", "/gamma"
        )
