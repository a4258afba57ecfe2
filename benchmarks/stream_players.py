"""Who plays the streams of `streams.py`: our preset and single algorithms, River and scikit-learn.

A player takes (features, truth) and gives what it would have said before it learns: (decision, confidence, probability that
the decision, or each label, is right). Vowpal Wabbit reads files of its own (stream_vw.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from stream_data import Answer, Features, Stream

from feedrank.learners import Learner, build

Said = tuple[Any, list[tuple[float, bool]]]
Player = Callable[[Features, Answer], Said]

OURS: dict[str, dict[str, Any]] = {
    "dual-ascent": {"algorithm": "dual-ascent", "update": "III", "weighting": "idf", "normalize": "auto"},
    "least-squares": {"algorithm": "least-squares"},
    "naive-bayes": {"algorithm": "naive-bayes"},
    "adagrad": {"algorithm": "adagrad"},
    "predtron": {"algorithm": "predtron", "normalize": "unit", "bias": True},
}


def spec(stream: Stream, settings: dict[str, Any]) -> dict[str, Any] | None:
    """Our spec for a stream; None where the algorithm does not do the task."""
    if settings.get("algorithm") == "dual-ascent" and stream.task not in ("binary", "multiclass"):
        return None
    closed = {"labels": list(stream.labels)} if stream.task in ("binary", "ordinal") else {}
    return {"task": stream.task, **closed, **settings}


def ours(stream: Stream, settings: dict[str, Any]) -> tuple[Player, Learner]:
    """A player, and the learner behind it."""
    learner = build(spec(stream, settings))
    sets = stream.task == "multilabel"

    def play(x: Features, y: Answer) -> Said:
        prediction = learner.predict({"features": x})
        sure: list[tuple[float, bool]] = []
        if prediction.probabilities:
            pairs = zip((name for name, _ in prediction.ranking), prediction.probabilities, strict=True)
            if sets or stream.task == "ordinal":
                sure = [(p, name in y if sets else name == y) for name, p in pairs]
            else:
                sure = [(max(prediction.probabilities), prediction.ranking[0][0] == y)]
        learner.learn({"features": x}, {"labels": y} if sets else {"label": y})
        return (prediction.labels or []) if sets else prediction.label, sure

    return play, learner


def river(stream: Stream) -> dict[str, Callable[[], Player]]:
    """River's usual models, with its scaler where features are numbers."""
    from river import compose, forest, linear_model, multiclass, naive_bayes, preprocessing

    def player(model: Any) -> Player:
        def play(x: Features, y: Answer) -> Said:
            features = x if isinstance(x, dict) else dict.fromkeys(x, 1)
            said = model.predict_one(features)
            model.learn_one(features, y)
            return said, []

        return play

    def scaled(model: Any) -> Any:
        return compose.Pipeline(preprocessing.StandardScaler(), model) if stream.dense else model

    if stream.task == "multilabel":
        return {}
    logistic = multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
    models = {
        "River logistic": scaled(logistic),
        "River passive-aggressive": scaled(multiclass.OneVsRestClassifier(linear_model.PAClassifier())),
    }
    if stream.dense:
        models["River adaptive random forest"] = forest.ARFClassifier(seed=0)
        models["River Gaussian naive Bayes"] = naive_bayes.GaussianNB()
    else:
        models["River naive Bayes"] = naive_bayes.MultinomialNB()
    return {name: (lambda m=model: player(m)) for name, model in models.items()}


def sklearn(stream: Stream) -> dict[str, Callable[[], Player]]:
    """scikit-learn's SGD by partial_fit, on hashed features."""
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.linear_model import SGDClassifier

    if stream.task == "multilabel":
        return {}

    def make(loss: str) -> Player:
        hasher = FeatureHasher(2**18)
        model = SGDClassifier(loss=loss, random_state=0)
        begun = False

        def play(x: Features, y: Answer) -> Said:
            nonlocal begun
            row = hasher.transform([x if isinstance(x, dict) else dict.fromkeys(x, 1)])
            said = model.predict(row)[0] if begun else None
            model.partial_fit(row, [y], classes=list(stream.labels))
            begun = True
            return said, []

        return play

    return {f"scikit-learn SGD {loss}": (lambda kind=loss: make(kind)) for loss in ("hinge", "log_loss")}


def loss(stream: Stream, said: Any, y: Answer) -> float:
    """0-1; grades between; the share of labels that are wrong."""
    if stream.task == "multilabel":
        return len(set(said) ^ set(y)) / len(stream.labels)
    if stream.task == "ordinal":
        places = {label: i for i, label in enumerate(stream.labels)}
        return float(abs(places.get(said, 0) - places[str(y)]))
    return float(said != y)


def calibration(sure: Sequence[tuple[float, bool]], bins: int = 15) -> tuple[float, float]:
    """The expected calibration error over bins of equal width, and its floor.

    The error is the sum over bins of |sum of probabilities - number that was right|, over the number of all. Its floor is
    what probabilities that are exactly right would show by chance: the mean of twenty draws of what was right.
    """
    if not sure:
        return 0.0, 0.0
    p, right = np.array(sure, dtype=np.float64).T
    cells = np.minimum((p * bins).astype(np.int64), bins - 1)

    def error(outcome: np.ndarray) -> float:
        return float(np.abs(np.bincount(cells, p - outcome, bins)).sum()) / len(p)

    rng = np.random.default_rng(0)
    return error(right), float(np.mean([error(rng.random(len(p)) < p) for _ in range(20)]))
