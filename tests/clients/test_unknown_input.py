"""What the client says of inputs that a learner has never met."""

import logging

import pytest

from feedrank.clients import Client, UnknownInput
from feedrank.clients.exceptions import BadRequest
from feedrank.embedded import Embedded


@pytest.fixture
def client(tmp_path):
    with Client(transport=Embedded(f"sqlite:{tmp_path}/u.db")) as client:
        client.create("unmet", {"task": "multiclass"})
        yield client


def test_nothing_known_is_said_once_and_only_of_a_learner_that_has_learned(client, caplog):
    caplog.set_level(logging.WARNING, "feedrank.clients")
    client.predict("unmet", {"text": "my card has not arrived"})
    assert caplog.records == []  # it cannot know anything yet
    client.feedback("unmet", {"features": {"Subject=card": 1}, "label": "billing"})
    for _ in range(3):
        client.predict("unmet", {"text": "my card has not arrived"})
    client.predict("unmet", {"features": {"Subject=card": 1, "new": 1}})
    (record,) = [one for one in caplog.records if one.name == "feedrank.clients"]
    assert record.getMessage().startswith("unmet has learned from nothing in this input")


def test_what_is_unknown_raises_for_who_asks(client, caplog):
    client.feedback("unmet", {"features": {"a": 1}, "label": "x"})
    assert client.predict("unmet", {"features": {"a": 1}}, unknown="raise").label == "x"
    with pytest.raises(UnknownInput, match="1 of 2 features are unknown to unmet"):
        client.predict("unmet", {"features": {"a": 1, "b": 1}}, unknown="raise")
    client.predict("unmet", {"features": {"b": 1}}, unknown="ignore")
    with pytest.raises(BadRequest, match="warn, raise, ignore"):
        client.predict("unmet", {"features": {"b": 1}}, unknown="explode")
