"""The client's types are those of the contract, and the service's own replies can be read by them."""

import importlib.util
from pathlib import Path

import pytest

from feedrank.clients import InvalidResponse, replies
from feedrank.clients.calls import reply_of
from feedrank.service.contract import experiment_bodies, reply_models

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script():
    """scripts/client_types.py."""
    found = importlib.util.spec_from_file_location("client_types", ROOT / "scripts" / "client_types.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_types_are_those_that_the_script_writes(script):
    assert script.PAGE.read_text() == script.page(), "run scripts/client_types.py"


def test_a_required_field_must_be_there_and_another_may_be_missing():
    read = reply_of(replies.Outcome)
    whole = b'{"version": 1, "loss": 0.5, "mistake": true, "updated": true, "duplicate": false}'
    assert read(whole) == replies.Outcome(
        version=1, loss=0.5, mistake=True, updated=True, served_loss=None, duplicate=False
    )
    with pytest.raises(InvalidResponse, match="loss"):
        read(whole.replace(b"loss", b"lost"))


def test_one_type_reads_what_either_of_two_models_has(script):
    text = script.written(
        "Prediction", (reply_models.Prediction, experiment_bodies.ExperimentPrediction)
    ).splitlines()
    assert "    learner: str | None = None" in text  # null in a drafted list
    assert "    versions: dict[str, int] | None = None" in text  # of experiments alone
    assert "    version: int" in text


def test_a_type_without_a_spelling_is_named(script):
    with pytest.raises(TypeError, match="complex"):
        script.spelled(list[complex])
