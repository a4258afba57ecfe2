"""Labels of arms are renamed while an experiment runs: old name and new are one label, in truths and in decisions."""

import pytest

from feedrank.service.experiments.manager import Experiments
from feedrank.service.experiments.synonyms import synonyms


def test_names_that_any_arm_has_made_one_are_one():
    assert synonyms([], ["a"]) == {}
    assert synonyms([{"a": "b"}], ["a"]) == {"b": "a"}
    assert synonyms([{"a": "b"}], []) == {"b": "a"}
    assert synonyms([{"a": "b"}, {"b": "a"}], ["b"]) == {"a": "b"}
    assert synonyms([{"a": "b", "c": "d"}, {"b": "d"}], ["x", "d"]) == dict.fromkeys("abc", "d")


SPECS = {
    "binary": ({"task": "binary", "labels": ["no", "yes"]}, "yes", "certainly", lambda name: {"label": name}),
    "ordinal": (
        {"task": "ordinal", "labels": ["low", "mid", "high"]},
        "mid",
        "fair",
        lambda name: {"label": name},
    ),
    "multiclass": ({"task": "multiclass"}, "a", "b", lambda name: {"label": name}),
    "multilabel": ({"task": "multilabel"}, "a", "b", lambda name: {"labels": [name]}),
    "label-ranking": ({"task": "label-ranking"}, "a", "b", lambda name: {"label": name}),
}


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("task", SPECS)
def test_a_round_is_right_under_either_name(with_host, task, both):
    spec, old, new, truth = SPECS[task]

    async def body(host):
        experiments = Experiments(host)
        for arm in ("one", "two"):
            await host.create(arm, spec)
            for _ in range(8):
                await host.feedback(arm, {"features": ["x"], **truth(old)})
        await experiments.create("e", {"arms": ["one", "two"], "method": "split"})
        before = [await experiments.predict("e", {"features": ["x"], "unit": f"before{i}"}) for i in range(4)]
        for arm in ("one", "two")[: 1 + both]:
            await host.rename(arm, {"rename": {old: new}})
        after = [await experiments.predict("e", {"features": ["x"], "unit": f"after{i}"}) for i in range(8)]
        for i, served in enumerate((*before, *after)):
            said = truth((old, new)[i % 2]) if both or task in ("multiclass", "multilabel") else truth(old)
            done = await experiments.feedback("e", {"prediction_id": served["prediction_id"], **said})
            assert done["value"] == 0.0, (i, served)
        await experiments.close()

    with_host(body)
