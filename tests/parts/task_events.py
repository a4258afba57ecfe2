"""Events of every task, drawn by chance, and learners behind them."""

import functools
import json

import numpy as np

from feedrank.learners import build, dump, forms

WORDS = [f"w{i}" for i in range(12)]
TOPICS = ["a", "b", "c", "d", "__class__"]


def features(rng):
    words = rng.choice(WORDS, size=rng.integers(0, 6), replace=False).tolist()
    form = rng.integers(3)
    if form == 0:
        return words
    if form == 1:
        return {word: float(value) for word, value in zip(words, rng.uniform(0, 2, len(words)), strict=True)}
    return rng.uniform(0, 1, 4).round(3).tolist()


def some(names, rng):
    return [name for name in names if rng.integers(2)]


# What a truth of each field may be, from the names that it may use. A form says which of the fields it takes.
TRUTHS = {
    "label": lambda names, rng: str(rng.choice(names)),
    "labels": some,
    "clicks": some,
    "relevance": lambda names, rng: {name: int(rng.integers(4)) for name in some(names, rng)},
    "reward": lambda names, rng: float(rng.integers(2)),
}


def event(spec, rng):
    form = forms.of(spec["task"])
    names = spec["labels"] if form.closed else TOPICS
    if form.items:
        names = [f"d{i}" for i in range(rng.integers(1, 6))]
        if rng.integers(2):
            instance = {"items": [{"id": name, "features": features(rng)} for name in names]}
        else:
            rows = rng.uniform(0, 1, (len(names), 3)).round(3).tolist()
            instance = {"items": {"ids": names, "columns": ["w0", "w1", "2"], "rows": rows}}
        if (spec.get("context") or form.chooses) and rng.integers(2):
            instance["features"] = features(rng)
    elif rng.integers(4):
        instance = {"features": features(rng)}
    else:
        instance = {"text": " ".join(some(WORDS, rng))}
    field = str(rng.choice(form.truths))
    truth = TRUTHS[field](names, rng)
    if form.chooses and rng.integers(3) == 0:
        slots = [{"id": f"s{i}", "features": features(rng)} for i in range(min(2, len(names)))]
        instance, truth = {**instance, "slots": slots}, {slot["id"]: truth for slot in slots}
    return instance, {field: truth}


def stream(spec, seed, count):
    """Events of a spec, made once: learning changes none of them."""
    return _stream(json.dumps(spec), seed, count)


@functools.cache
def _stream(spec, seed, count):
    rng = np.random.default_rng(seed)
    return [event(json.loads(spec), rng) for _ in range(count)]


def snapshot(spec, seed, count):
    """The snapshot of a learner behind so many events, which are learned once."""
    return _snapshot(json.dumps(spec), seed, count)


@functools.cache
def _snapshot(spec, seed, count):
    learner = build(json.loads(spec))
    run(learner, _stream(spec, seed, count))
    return dump(learner)


def teach(learner, instance, answer, weight=1.0):
    """One round; a reward is of what was served."""
    served = learner.predict(instance).served() if learner.form.chooses else None
    return learner.learn(instance, answer, served=served, weight=weight)


def run(learner, events):
    return [teach(learner, instance, answer) for instance, answer in events]
