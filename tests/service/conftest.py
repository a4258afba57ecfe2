"""Fixtures of the service's tests: real stores, SQLite files and a Redis started here. No mocks."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import kill_rounds as killing
import pytest
import redis_cluster as clusters
import store_logs
import uvicorn
from postgres_server import PostgresServer
from redis_sentinel import Replicated
from redis_server import RedisServer
from store_logs import emptied

from feedrank.service.contract.settings import Settings
from feedrank.service.http.edge import App
from feedrank.service.http.wire import protocol
from feedrank.service.runtime import Host
from feedrank.service.store import Store

T = TypeVar("T")


@pytest.fixture(scope="session")
def serving() -> Callable[..., AbstractContextManager[str]]:
    """`with serving(app, port=0) as url`: the app behind a real server in a thread, ours or a bare uvicorn."""

    @contextmanager
    def serve(app: App, port: int = 0, *, direct: bool = True) -> Iterator[str]:
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                port=port,
                http=protocol(app.state.settings, app) if direct else "auto",
                lifespan="on",
                log_config=None,
                access_log=False,
            )
        )
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.002)
        assert server.started
        try:
            yield "http://{}:{}".format(*server.servers[0].sockets[0].getsockname())
        finally:
            server.should_exit = True
            thread.join()

    return serve


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One Redis for all tests that only need a store; each test gets a clean one by `store_url`."""
    server = RedisServer(tmp_path_factory.mktemp("redis"), "--appendfsync", "everysec")
    yield server
    server.kill()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis of one test, which may kill, freeze or reconfigure it."""
    server = RedisServer(tmp_path)
    yield server
    server.thaw()
    server.kill()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL for all tests that only need a store; each test gets a clean one by `store_url`."""
    server = PostgresServer("-c", "fsync=off")
    yield server
    server.close()


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL of one test, which may kill, freeze or reconfigure it."""
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture
def redis_cluster(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A Redis Cluster of three nodes: its `url` and its `servers`."""
    servers = []
    try:
        for i in range(3):
            (tmp_path / str(i)).mkdir()
            servers.append(RedisServer(tmp_path / str(i), "--cluster-enabled", "yes"))
        clusters.join(servers)
        url = "redis+cluster://" + ",".join(f"127.0.0.1:{server.port}" for server in servers)
        yield SimpleNamespace(url=url, servers=servers)
    finally:
        for server in servers:
            server.kill()


@pytest.fixture
def redis_replicated() -> Callable[[Path], SimpleNamespace]:
    """Makes a primary, a replica and a Sentinel in a folder."""
    return Replicated


@pytest.fixture
def kill_rounds() -> Callable[[str, int], SimpleNamespace]:
    """Kills and restarts the service on a store so often, under load, and checks what is left."""
    return killing.rounds


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """`later(60)`: the clock of this process is so many seconds ahead of the real one, or with -60 behind it."""
    real, ahead = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + ahead[0])
    return partial(ahead.__setitem__, 0)


# "other" is a store that another package brings: see docs/operating.md.
OTHER = ["other"] if os.environ.get("FEEDRANK_TEST_STORE") else []


@pytest.fixture(params=["sqlite", "redis", "postgres", *OTHER])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'feedrank.db'}"
    if request.param == "other":
        return os.environ["FEEDRANK_TEST_STORE"].format(tmp_path.name)
    return emptied(request.param, request)


@pytest.fixture(params=["redis", "postgres"])
def shared_url(request: pytest.FixtureRequest) -> str:
    """The same of each kind that several processes may share."""
    return emptied(request.param, request)


@pytest.fixture
def with_store(store_url: str) -> Callable[[Callable[[Store], Awaitable[T]]], T]:
    """Run `body(store)` on the empty store of this test; call it again to open the same store anew."""
    return partial(store_logs.run, store_url)


@pytest.fixture
def with_host(store_url: str) -> Callable[..., T]:
    """Run `body(host)` on a Host over the store of this test; call it again to start anew on the same store."""

    def run(body: Callable[[Host], Awaitable[T]], **settings: object) -> T:
        async def main() -> T:
            async with Host.open(store_url, Settings(**settings)) as host:  # type: ignore[arg-type]
                return await body(host)

        return asyncio.run(main())

    return run


@pytest.fixture
def hosts() -> Callable[..., None]:
    """Run `body(hosts...)` with several Hosts on the store at a URL."""

    def run(url: str, body: Callable[..., Awaitable[None]], count: int = 2, **settings: object) -> None:
        async def main() -> None:
            async with AsyncExitStack() as stack:
                opened = [
                    await stack.enter_async_context(Host.open(url, Settings(**settings)))  # type: ignore[arg-type]
                    for _ in range(count)
                ]
                await body(*opened)

        asyncio.run(main())

    return run


@pytest.fixture
def replicas(shared_url: str, hosts: Callable[..., None]) -> Callable[..., None]:
    """Run `body(hosts...)` with several Hosts on one store, empty at first, of each kind that can be shared."""
    return partial(hosts, shared_url)
