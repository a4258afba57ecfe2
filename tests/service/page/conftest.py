"""The app behind a real server, with something in it to look at."""

import contextlib
import random

import httpx
import pytest

from feedrank.service.contract.settings import Settings
from feedrank.service.http.app import create_app

TOPICS = {
    "travel": ["flight", "hotel", "gate"],
    "bills": ["invoice", "due", "tax"],
    "<script>alert(1)</script>": ["angle", "bracket"],
}


@pytest.fixture
def make_server(tmp_path, serving):
    """`make_server(**settings)`: a client of a server over the test's store; the one before it is stopped first."""
    with contextlib.ExitStack() as stack:

        def make(port=0, **settings):
            stack.close()
            app = create_app(Settings(store=f"sqlite:{tmp_path / 'page.db'}", **settings))
            url = stack.enter_context(serving(app, port))
            return stack.enter_context(httpx.Client(base_url=url, timeout=600, trust_env=False))

        yield make


@pytest.fixture
def server(make_server):
    return make_server()


@pytest.fixture
def teach():
    """`teach(client, name, rounds, spec)`: a learner of topics that has seen so many messages."""

    def make(client, name, rounds, spec=None):
        made = client.put(f"/v1/learners/{name}", json=spec or {"task": "multiclass"})
        assert made.status_code in (200, 201), made.text
        rng = random.Random(name)
        events = []
        for _ in range(rounds):
            label = rng.choice(list(TOPICS))
            events.append({"features": [*rng.sample(TOPICS[label], 2), "the"], "label": label})
        for start in range(0, rounds, 5000):
            reply = client.post(
                f"/v1/learners/{name}/feedback", json={"events": events[start : start + 5000]}
            )
            assert reply.status_code == 200, reply.text
        return events

    return make
