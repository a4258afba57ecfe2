"""A trial of what a snapshot describes: rounds that must teach it something, behind which it is still a learner.

Each number of a snapshot may be sound, and still what is made of them is not: a link, a pool or a factor that is not
finite answers with NaN, or refuses every event. So a learner read from the snapshot for this alone predicts on all its
features, some at a time, learns the truth that it holds for least likely, and is looked at again.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .errors import InputError
from .learner import Learner
from .results import Prediction

PROBES = 32  # instances that together name all features
FEW = 8  # features of an instance, if there are not more

Instance = dict[str, Any]


def try_out(learner: Learner) -> None:
    """ValueError with the reason if it is none that works. It has learned from the trial, and is of no use any more."""
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        every = list(instances(learner))
        _look(learner, every)
        for instance in every:
            try:
                _round(learner, instance)
            except InputError:
                continue  # the spec rules such an instance out
        _look(learner, every[:2])
    json.dumps(learner.model.counters(), allow_nan=False)


def instances(learner: Learner) -> Iterator[Instance]:
    """Instances of this learner's kind: with an unknown feature, with all that are known, some at a time, and with none."""
    known = [name[1:] if learner.form.chooses else name for name in learner.features if name]
    size = max(FEW, -(-len(known) // PROBES))
    some = [["?", *known[:FEW]], *(known[at : at + size] for at in range(0, len(known), size)), []]
    for names in some:
        features = dict.fromkeys(names, 1.0)
        if not learner.form.items:
            yield {"features": features}
        elif learner.form.chooses:
            yield {"items": _items(features), "features": dict.fromkeys(known[:1], 1.0)}
        else:
            yield {"items": _items(features)}
    if not learner.form.items:
        yield {"row": {}}


def _items(features: dict[str, float]) -> list[Instance]:
    """One that has the features, and one that has half of each."""
    halves = {name: value / 2 for name, value in features.items()}
    return [{"id": "0", "features": features}, {"id": "1", "features": halves}]


def _look(learner: Learner, every: Sequence[Instance]) -> None:
    for instance in every:
        try:
            json.dumps(learner.predict(instance).to_json(), allow_nan=False)
        except InputError:
            continue
    json.dumps(learner.describe(), allow_nan=False)


def _round(learner: Learner, instance: Instance) -> None:
    prediction = learner.predict(instance)
    served = prediction.served() if learner.form.chooses else None
    outcome = learner.learn(instance, contrary(learner, prediction), served=served)
    json.dumps([outcome.loss, outcome.served_loss], allow_nan=False)


def contrary(learner: Learner, prediction: Prediction) -> dict[str, object]:
    """The truth that the learner holds for least likely; of a choice the best reward."""
    name = prediction.ranking[-1][0] if prediction.ranking else "?"
    field = learner.form.truths[0]
    if field == "reward":
        return {"reward": learner.spec["range"][1]}
    values: dict[str, object] = {"label": name, "labels": [name], "clicks": [name], "relevance": {name: 1.0}}
    return {field: values[field]}
