"""Fixtures of the tests that run what ships: the image, built once by `scripts/harden`, or here."""

import pytest
from containers import Engine, missing


@pytest.fixture(scope="session")
def engine():
    """podman, with the image."""
    if reason := missing():
        pytest.skip(reason)
    made = Engine()
    made.make_base()
    made.build()
    yield made
    made.run("volume", "prune", "--force", check=False)
