"""kill -9 of the service under eight clients: what was acknowledged is there, once, as it was said."""

import pytest


def test_two_kills(store_url, kill_rounds):
    load = kill_rounds(store_url, 2)
    assert sum(load.calls.values()) > 50


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_kills(store_url, kill_rounds):
    load = kill_rounds(store_url, 20)
    assert min(load.calls.values()) > 10, load.calls
