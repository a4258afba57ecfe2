"""A process that would fold the log of others to other bits says so when it starts."""

import asyncio
import os
import subprocess
import sys

import pytest

from feedrank.service.contract.faults import StoreUnavailable
from feedrank.service.contract.settings import Settings
from feedrank.service.http import app as application
from feedrank.service.http.app import create_app
from feedrank.service.runtime import same_bits
from feedrank.service.store import Damaged

PRINT = "from feedrank.service.runtime import same_bits; print(same_bits.fingerprint())"


def test_a_process_with_other_bits_says_so_and_the_next_of_its_kind_does_not(with_store, monkeypatch):
    async def body(store):
        assert await same_bits.compare(store) == ()
        assert await same_bits.compare(store) == ()
        monkeypatch.setattr(same_bits, "fingerprint", lambda: "other")
        (notice,) = await same_bits.compare(store)
        assert "other bits" in notice
        assert "same build on all replicas" in notice
        assert await same_bits.compare(store) == ()

    with_store(body)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("get", Damaged(0, "the document build/bits has changed since it was written")),
        ("get", StoreUnavailable("the store is away")),
        ("put", StoreUnavailable("the store takes no writes now")),
    ],
)
def test_a_store_that_cannot_be_compared_with_is_said_and_stops_no_start(
    with_store, monkeypatch, call, error
):
    async def refuse(*_):
        raise error

    async def body(store):
        monkeypatch.setattr(store, call, refuse)
        (notice,) = await same_bits.compare(store)
        assert "was not compared" in notice
        assert str(error) in notice

    with_store(body)


def test_the_fingerprint_depends_on_the_last_bit_and_not_on_the_kernel(monkeypatch):
    own = same_bits.fingerprint()
    done = subprocess.run(
        [sys.executable, "-c", PRINT],
        env={**os.environ, "FEEDRANK_KERNEL": "numpy"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == own
    numbers = same_bits.numbers
    monkeypatch.setattr(
        same_bits, "numbers", lambda seed: {name: value + 2**-53 for name, value in numbers(seed).items()}
    )
    assert same_bits.fingerprint.__wrapped__() != own


def test_the_service_logs_it_soon_after_it_starts(tmp_path, caplog, monkeypatch):
    async def start(done):
        app = create_app(Settings(store=f"sqlite:{tmp_path / 'a.db'}"))
        async with asyncio.timeout(60), app.router.lifespan_context(app):
            while not await done(app.state.host.store):
                await asyncio.sleep(0.01)

    async def is_kept(store):
        return await store.get(same_bits.KIND, same_bits.NAME) is not None

    async def is_logged(_):
        return "other bits" in caplog.text

    monkeypatch.setattr(application, "FIRST_REPLIES", 0.0)
    asyncio.run(start(is_kept))
    assert "other bits" not in caplog.text
    monkeypatch.setattr(same_bits, "fingerprint", lambda: "other")
    asyncio.run(start(is_logged))
    assert caplog.text.count("other bits") == 1
