"""docs/spec.md, the reference and the spec reader say the same."""

import json
from pathlib import Path

import pytest

from feedrank.learners import SpecError, build, forms, reference, registry, spec, spec_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spec.md"
ALGORITHMS = reference()["algorithms"]


def test_the_page_is_made_from_the_code_as_it_is():
    assert PAGE.read_text() == spec_page.page(), "run scripts/spec_reference.py"


def test_the_reference_is_plain_json_and_misses_no_name():
    plain = json.loads(json.dumps(reference(), allow_nan=False))
    assert plain == reference()
    assert [task["name"] for task in plain["tasks"]] == list(forms.names())
    assert {entry["name"] for entry in plain["common"]} == set(spec.COMMON)
    for entry in plain["algorithms"]:
        algorithm = registry.algorithm(entry["name"])
        assert [parameter["name"] for parameter in entry["parameters"]] == list(algorithm.parameters)
        assert set(entry["tasks"]) == set(algorithm.does())


def test_every_name_stands_on_the_page_with_its_effect():
    text = PAGE.read_text()
    for entry in ALGORITHMS:
        section = text.split(f"## `{entry['name']}`\n")[1].split("\n## ")[0]
        for parameter in entry["parameters"]:
            assert f"| `{parameter['name']}` |" in section
            assert parameter["text"].replace("|", "\\|") in section


def labels_of(task):
    form = forms.of(task)
    return {} if form.items or not form.least else {"labels": ["a", "b"]}


@pytest.mark.parametrize("entry", ALGORITHMS, ids=lambda entry: entry["name"])
def test_every_example_is_taken_where_the_reference_says_so(entry):
    for parameter in entry["parameters"]:
        assert parameter["tasks"], "a parameter that no task takes"
        if parameter["example"] is None:
            continue
        taken = []
        for task in parameter["tasks"]:
            options = parameter["by_task"].get(task, parameter["schema"]).get("enum")
            value = (
                parameter["example"] if options is None or parameter["example"] in options else options[-1]
            )
            when = parameter["when"]
            needed = {} if when is None else {when["field"]: when["values"][0]}
            asked = {
                "task": task,
                "algorithm": entry["name"],
                **labels_of(task),
                **needed,
                parameter["name"]: value,
            }
            if parameter["name"] in ("weights", "reject_costs") and labels_of(task):
                asked[parameter["name"]] = {"a": 0.5}
            if parameter["name"] == "matrix" and labels_of(task):
                asked["matrix"] = {"a": {"b": 2}}
            for more in ({}, {"R": 1}, {"cutoff": 2}, {"blocks": [["a"]]}, {"matrix": {"a": {"b": 2}}}):
                try:
                    full = build({**more, **asked}).spec
                except SpecError as error:
                    last = error
                    continue
                assert full[parameter["name"]] is not None
                taken.append(task)
                break
            else:
                raise AssertionError(f"{asked}: {last}")
        assert taken == parameter["tasks"]


@pytest.mark.parametrize("entry", ALGORITHMS, ids=lambda entry: entry["name"])
def test_what_is_said_to_be_the_default_is_the_default(entry):
    for task in entry["tasks"]:
        full = build({"task": task, "algorithm": entry["name"], **labels_of(task)}).spec
        for parameter in entry["parameters"]:
            shown, name = parameter["default"], parameter["name"]
            if (name in full and not isinstance(shown, str)) or (
                name in full and " " not in shown and not shown.isdigit()
            ):
                assert full[name] == shown
            assert name not in full or task in parameter["tasks"]


def test_a_field_of_another_algorithm_is_refused_with_its_owner():
    with pytest.raises(SpecError, match=r"slam.*not of listnet"):
        build({"task": "subset-ranking", "algorithm": "listnet", "margin": 1})
    with pytest.raises(SpecError, match="goes with kernel: gaussian"):
        build({"task": "multiclass", "algorithm": "predtron", "bandwidth": 1})
    with pytest.raises(SpecError, match="required with loss: precision"):
        build({"task": "subset-ranking", "algorithm": "predtron", "loss": "precision"})


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="already"):
        registry.register(registry.algorithm("slam"))
    with pytest.raises(ValueError, match="already"):
        forms.add(forms.of("binary"))
