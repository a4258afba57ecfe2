"""The contenders of `peers.py`: functions that make a player, `play(x, y)` -> the loss of what it said before learning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from feedrank.learners import ItemList, build
from feedrank.learners.losses.rankings import ndcg_loss

Play = Callable[[Any, Any], float]
Make = Callable[[], Play]
HASHED = 2**18


# ---- one label


def classes(labels: Sequence[str]) -> dict[str, Make]:
    """x is a list of words, y a label."""
    makers: dict[str, Make] = {
        "feedrank preset": lambda: _ours({"task": "multiclass"}),
        "feedrank predtron": lambda: _ours({"task": "multiclass", "algorithm": "predtron"}),
    }
    for setting in ("--oaa", "--ect"):
        makers[f"Vowpal Wabbit {setting}"] = lambda s=setting: vw_classes(f"{s} {len(labels)}", labels)
    makers["Vowpal Wabbit --csoaa_ldf"] = lambda: _vw_ldf(labels)
    makers["River one-vs-rest perceptron"] = _river_classes
    makers["scikit-learn SGD hinge, partial_fit"] = lambda: _sklearn_classes(labels)
    return makers


def _ours(spec: dict[str, Any]) -> Play:
    learner = build(spec)
    return lambda x, y: learner.learn({"features": x}, {"label": y}).loss


VW_MEANS = str.maketrans(" :|\t\n", "_____")  # what means something in Vowpal Wabbit's text


def vw_text(x: Sequence[str] | Mapping[str, float]) -> str:
    """Words, or names with numbers."""
    if isinstance(x, Mapping):
        return " ".join(f"{name.translate(VW_MEANS)}:{value:.6g}" for name, value in x.items())
    return " ".join(word.translate(VW_MEANS) for word in x)


def vw_classes(setting: str, labels: Sequence[str]) -> Play:
    """Vowpal Wabbit's own multiclass reductions."""
    from vowpalwabbit import LabelType, Workspace

    number = {label: i for i, label in enumerate(labels, start=1)}
    vw = Workspace(f"{setting} -b 24 --quiet")

    def play(x: Sequence[str] | Mapping[str, float], y: str) -> float:
        example = vw.parse(f"{number[y]} | {vw_text(x)}", LabelType.MULTICLASS)
        said = vw.predict(example)
        vw.learn(example)
        vw.finish_example(example)
        return float(said != number[y])

    return play


def _vw_ldf(labels: Sequence[str]) -> Play:
    """Label-dependent features: every label is an action with an id that is crossed with the words."""
    from vowpalwabbit import Workspace

    vw = Workspace("--csoaa_ldf m -q ax -b 24 --quiet")
    ids = range(1, len(labels) + 1)

    def play(x: Sequence[str], y: str) -> float:
        text = vw_text(x)
        right = labels.index(y) + 1
        said = vw.predict([f"{i} |a a{i} |x {text}" for i in ids])
        vw.learn([f"{i}:{float(i != right)} |a a{i} |x {text}" for i in ids])
        return float(said != right)

    return play


def _river_classes() -> Play:
    from river import linear_model, multiclass

    model = multiclass.OneVsRestClassifier(linear_model.Perceptron())

    def play(x: Sequence[str], y: str) -> float:
        features = dict.fromkeys(x, 1)
        said = model.predict_one(features)
        model.learn_one(features, y)
        return float(said != y)

    return play


def _sklearn_classes(labels: Sequence[str]) -> Play:
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import SGDClassifier

    hasher = FeatureHasher(HASHED, input_type="string")
    model = SGDClassifier(loss="hinge")
    begun = False

    def play(x: Sequence[str], y: str) -> float:
        nonlocal begun
        row = hasher.transform([x])
        said = model.predict(row)[0] if begun else None
        model.partial_fit(row, [y], classes=labels)
        begun = True
        return float(said != y)

    return play


# ---- label sets


def sets(labels: Sequence[str]) -> dict[str, Make]:
    """x maps features to numbers, y is a list of labels; the loss is the share of labels that are wrong."""
    return {
        "feedrank preset": lambda: _our_sets({"task": "multilabel"}, labels),
        "feedrank predtron, hamming": lambda: _our_sets(
            {
                "task": "multilabel",
                "algorithm": "predtron",
                "loss": "hamming",
                "normalize": "unit",
                "bias": True,
            },
            labels,
        ),
        "feedrank quadratic surrogate, hamming": lambda: _our_sets(
            {"task": "multilabel", "algorithm": "quadratic-surrogate", "loss": "hamming", "bias": True},
            labels,
        ),
        "Vowpal Wabbit --multilabel_oaa": lambda: _vw_sets(labels),
        "River classifier chain": lambda: _river_sets(labels),
        "scikit-learn SGD hinge, one a label, partial_fit": lambda: _sklearn_sets(labels),
    }


def _our_sets(spec: dict[str, Any], labels: Sequence[str]) -> Play:
    learner = build({**spec, "labels": list(labels)})

    def play(x: dict[str, float], y: Sequence[str]) -> float:
        said = learner.predict({"features": x}).labels or []
        learner.learn({"features": x}, {"labels": y})
        return len(set(said) ^ set(y)) / len(labels)

    return play


def _vw_sets(labels: Sequence[str]) -> Play:
    from vowpalwabbit import LabelType, Workspace

    number = {label: i for i, label in enumerate(labels)}
    vw = Workspace(f"--multilabel_oaa {len(labels)} -b 22 --quiet")

    def play(x: dict[str, float], y: Sequence[str]) -> float:
        text = vw_text(x)
        wanted = {number[label] for label in y}
        said = vw.predict(f"| {text}")
        example = vw.parse(f"{','.join(map(str, sorted(wanted)))} | {text}", LabelType.MULTILABEL)
        vw.learn(example)
        vw.finish_example(example)
        return len(set(said) ^ wanted) / len(labels)

    return play


def _river_sets(labels: Sequence[str]) -> Play:
    from river import linear_model, multioutput

    model = multioutput.ClassifierChain(linear_model.LogisticRegression(), order=list(labels))

    def play(x: dict[str, float], y: Sequence[str]) -> float:
        truth = {label: label in y for label in labels}
        said = model.predict_one(x)
        model.learn_one(x, truth)
        return sum(bool(said.get(label)) != truth[label] for label in labels) / len(labels)

    return play


def _sklearn_sets(labels: Sequence[str]) -> Play:
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import SGDClassifier

    hasher = FeatureHasher(HASHED)
    each = {label: SGDClassifier(loss="hinge") for label in labels}
    begun = False

    def play(x: dict[str, float], y: Sequence[str]) -> float:
        nonlocal begun
        row = hasher.transform([x])
        said = {label for label, model in each.items() if begun and model.predict(row)[0]}
        for label, model in each.items():
            model.partial_fit(row, [label in y], classes=[False, True])
        begun = True
        return len(said ^ set(y)) / len(labels)

    return play


# ---- lists


def lists() -> dict[str, Make]:
    """x is a matrix with a row an item, y the grades; the loss is 1 - NDCG at 10."""
    return {
        "feedrank preset": lambda: _our_lists({}),
        "feedrank slam": lambda: _our_lists({"algorithm": "slam", "normalize": "list"}),
        "feedrank minimax-perceptron": lambda: _our_lists(
            {"algorithm": "minimax-perceptron", "normalize": "list"}
        ),
        "feedrank quadratic surrogate": lambda: _our_lists(
            {"algorithm": "quadratic-surrogate", "normalize": "list"}
        ),
        "LightGBM lambdarank, retrained every 50": lambda: _lightgbm(50),
        "River linear regression of the grades": _river_lists,
    }


def _loss(scores: np.ndarray, y: np.ndarray) -> float:
    return ndcg_loss(np.argsort(-scores, kind="stable"), y, 10)


def _our_lists(spec: dict[str, Any]) -> Play:
    learner = build({"task": "subset-ranking", **spec})

    def play(x: np.ndarray, y: np.ndarray) -> float:
        item_list = ItemList.dense([str(i) for i in range(len(x))], x)
        order = np.array([int(name) for name, _ in learner.predict(item_list).ranking])
        learner.learn(item_list, {"relevance": y})
        return ndcg_loss(order, y, 10)

    return play


def _lightgbm(every: int) -> Play:
    """The batch yardstick: all lists seen so far, anew every so many."""
    import lightgbm

    seen: list[tuple[np.ndarray, np.ndarray]] = []
    model: Any = None

    def play(x: np.ndarray, y: np.ndarray) -> float:
        nonlocal model
        loss = _loss(model.predict(x) if model is not None else np.zeros(len(x)), y)
        seen.append((x, y))
        if len(seen) % every == 0:
            X, Y = np.vstack([x for x, _ in seen]), np.concatenate([y for _, y in seen])
            data = lightgbm.Dataset(X, Y, group=[len(y) for _, y in seen])
            options = {"objective": "lambdarank", "verbosity": -1, "seed": 0, "num_threads": 1}
            model = lightgbm.train(options, data, num_boost_round=50)
        return loss

    return play


def _river_lists() -> Play:
    from river import linear_model, preprocessing

    model = preprocessing.StandardScaler() | linear_model.LinearRegression()

    def play(x: np.ndarray, y: np.ndarray) -> float:
        rows = [dict(enumerate(row.tolist())) for row in x]
        loss = _loss(np.array([model.predict_one(row) for row in rows]), y)
        for row, grade in zip(rows, y.tolist(), strict=True):
            model.learn_one(row, grade)
        return loss

    return play
