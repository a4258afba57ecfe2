"""A learner that one thread teaches refuses every other thread meanwhile, and is what it was without them."""

import threading
from collections.abc import Mapping

import pytest

from feedrank.learners import build, dump

SPECS = [
    {"task": "multiclass"},
    {"task": "multiclass", "algorithm": "predtron"},
    {"task": "subset-ranking"},
    {"task": "choice"},
]
PATIENCE = 600


class Waiting(Mapping):
    """Features that call somebody when they are read."""

    def __init__(self, call):
        self.call = call

    def __getitem__(self, name):
        return 1.0

    def __iter__(self):
        self.call()
        return iter(["x", "y"])

    def __len__(self):
        return 2


def event(spec, features):
    if spec["task"] == "subset-ranking":
        return {"items": [{"id": "a", "features": features}, {"id": "b", "features": ["z"]}]}, {
            "relevance": {"a": 1}
        }
    if spec["task"] == "choice":
        return {"items": [{"id": "a", "features": features}, {"id": "b", "features": ["z"]}]}, {"reward": 1.0}
    return {"features": features}, {"label": "l"}


def teach(learner, spec, features):
    instance, truth = event(spec, features)
    served = {"id": "a", "probability": 0.5} if spec["task"] == "choice" else None
    return learner.learn(instance, truth, served=served)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_who_calls_while_another_thread_teaches_is_refused(spec, monkeypatch):
    learner, alone = build(spec), build(spec)
    inside, go_on, done = threading.Event(), threading.Event(), []
    step = "_reward_round" if spec["task"] == "choice" else "_round"
    own = getattr(learner, step)

    def wait(*arguments):
        inside.set()
        assert go_on.wait(PATIENCE)
        return own(*arguments)

    monkeypatch.setattr(learner, step, wait)
    thread = threading.Thread(target=lambda: done.append(teach(learner, spec, ["x", "y"])))
    thread.start()
    assert inside.wait(PATIENCE)
    with pytest.raises(RuntimeError, match="another thread"):
        teach(learner, spec, ["other"])
    with pytest.raises(RuntimeError, match="another thread"):
        learner.predict(event(spec, ["x"])[0])
    go_on.set()
    thread.join()
    assert len(done) == 1
    monkeypatch.undo()
    for one in (learner, alone):
        if one is alone:
            teach(one, spec, ["x", "y"])
        teach(one, spec, ["z"])
        one.predict(event(spec, ["x"])[0])
    assert dump(learner) == dump(alone)


def test_one_thread_may_ask_while_it_teaches():
    learner = build({"task": "multiclass"})
    asked = []
    features = Waiting(lambda: asked.append(learner.predict({"features": ["x"]}).label))
    learner.learn({"features": features}, {"label": "l"})
    assert asked
    assert learner.version == 1


def test_a_lesson_that_fails_lets_others_in():
    learner = build({"task": "multiclass"})

    def fail():
        raise KeyError("no")

    with pytest.raises(KeyError):
        learner.learn({"features": Waiting(fail)}, {"label": "l"})
    thread = threading.Thread(target=learner.learn, args=({"features": ["x"]}, {"label": "l"}))
    thread.start()
    thread.join()
    assert learner.version == 1
