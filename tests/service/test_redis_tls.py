"""Redis over TLS, one server and a Cluster. A proxy ends TLS before each server, whose build may know none."""

import asyncio
import ssl
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace
from unittest import mock

import pytest
import trustme
from ports import free_port
from redis_cluster import join
from redis_server import RedisServer

from feedrank.service.contract import faults as errors
from feedrank.service.contract.store_url import shown
from feedrank.service.store import Draft, open_store, redis_open

HOSTS = ("localhost", "127.0.0.1")  # the first is named in the URL, the second by the nodes of the cluster


@pytest.fixture(scope="module", params=["rediss", "rediss+cluster"])
def redis(request, tmp_path_factory):
    """Servers, the ports on which they are reached over TLS, and the URL of these."""
    clustered = request.param.endswith("cluster")
    ports, servers = [free_port() for _ in range(3 if clustered else 1)], []
    try:
        for announced in ports:
            port, options = free_port(), ()
            if clustered:
                options += ("--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1")
                options += ("--cluster-announce-port", str(announced))
                options += ("--cluster-announce-bus-port", str(port + 10_000))
            servers.append(RedisServer(tmp_path_factory.mktemp("redis"), *options, port=port))
            servers[-1].ask(b"ACL SETUSER app on >p@ss/w?rd ~* &* +@all")
        if clustered:
            join(servers)
        places = ",".join(f"localhost:{port}" for port in ports)
        yield SimpleNamespace(servers=servers, ports=ports, url=f"{request.param}://{places}")
    finally:
        for server in servers:
            server.kill()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """An authority of one's own and a strange one, and the files that a client has of them."""
    folder = tmp_path_factory.mktemp("certificates")
    own, strange = trustme.CA(), trustme.CA()
    client = own.issue_cert("client")
    own.cert_pem.write_to_path(folder / "own.pem")
    strange.cert_pem.write_to_path(folder / "strange.pem")
    client.private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    return SimpleNamespace(own=own, strange=strange, folder=folder)


@asynccontextmanager
async def over_tls(redis, authority, hosts=HOSTS, *, ask_client=False):
    """While this is open, the servers answer on their ports over TLS; then every connection is cut."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*hosts).configure_cert(context)
    if ask_client:
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)
    writers, meetings = [], []

    async def relay(reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:  # the other side is gone
            pass
        finally:
            writer.close()

    def to(port):
        async def meet(reader, writer):
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
            writers.extend((writer, inner_writer))
            meetings.append(asyncio.current_task())
            await asyncio.gather(relay(reader, inner_writer), relay(inner_reader, writer))

        return meet

    async with AsyncExitStack() as stack:
        for server, port in zip(redis.servers, redis.ports, strict=True):
            await stack.enter_async_context(
                await asyncio.start_server(to(server.port), "127.0.0.1", port, ssl=context)
            )
        try:
            yield
        finally:
            for writer in writers:
                writer.close()
            await asyncio.gather(*meetings)


async def refusal(url):
    """The one line in which a URL is refused for good, without waiting for any time to run out."""
    with mock.patch.object(redis_open, "TIMEOUT", 3600.0), pytest.raises(errors.StoreRefused) as caught:
        await open_store(url)
    assert "\n" not in caught.value.detail
    return caught.value.detail


async def check(url, log):
    """Writing, reading and listening work."""
    store = await open_store(url)
    try:
        changes = store.changes()
        assert await anext(changes) == ("lost", "", 0)
        store.watch(log)
        assert await anext(changes) == ("watched", log, 0)
        await store.append(log, [Draft(b"x" * 100_000), Draft(b"y")])
        assert [len(entry.body) for entry in await store.read(log, 0, 10)] == [100_000, 1]
        assert (await anext(changes))[1] == log
        await changes.aclose()
    finally:
        await store.close()


def test_a_store_over_tls_takes_gives_and_tells(redis, authority):
    async def main():
        async with over_tls(redis, authority.own):
            await check(f"{redis.url}?ssl_ca_certs={authority.folder}/own.pem", "plain")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("hosts", "options", "said"),
    [
        (HOSTS, "", "ssl_ca_certs=FILE"),
        (HOSTS, "?ssl_ca_certs={}/strange.pem", "ssl_ca_certs=FILE"),
        (["elsewhere"], "?ssl_ca_certs={}/own.pem", "mismatch"),
        (HOSTS, "?ssl_ca_certs={}/none.pem", "No such file"),
        (HOSTS, "?ssl_colour=red", "ssl_colour"),
        (HOSTS, "?ssl_cert_reqs=perhaps", "perhaps: check the URL"),
    ],
)
def test_what_cannot_be_trusted_is_refused_in_one_line(redis, authority, hosts, options, said):
    async def main():
        async with over_tls(redis, authority.own, hosts):
            assert said in await refusal(redis.url + options.format(authority.folder))

    asyncio.run(main())


def test_a_server_may_ask_for_the_certificate_of_its_client(redis, authority):
    trusting = f"{redis.url}?ssl_ca_certs={authority.folder}/own.pem"
    both = f"{authority.folder}/client.pem"

    async def main():
        async with over_tls(redis, authority.own, ask_client=True):
            assert "ssl_certfile" in await refusal(trusting)
            await check(f"{trusting}&ssl_certfile={both}&ssl_keyfile={both}", "certified")

    asyncio.run(main())


def test_a_certificate_that_is_no_longer_good_is_a_store_that_is_away(redis, authority):
    async def main():
        async with over_tls(redis, authority.own):
            store = await open_store(f"{redis.url}?ssl_ca_certs={authority.folder}/own.pem")
        try:
            for _ in range(2):  # the first may find the connection cut, the second needs a new one
                async with over_tls(redis, authority.strange):
                    with pytest.raises(errors.StoreUnavailable):
                        await store.append("away", [Draft(b"x")])
            async with over_tls(redis, authority.own):
                assert (await store.append("away", [Draft(b"x")]))[0].version == 1
        finally:
            await store.close()

    asyncio.run(main())


def test_a_password_of_any_letters_is_taken_and_never_shown(redis, authority):
    scheme, _, places = redis.url.partition("://")
    options = f"?ssl_ca_certs={authority.folder}/own.pem"

    async def main():
        async with over_tls(redis, authority.own):
            await check(f"{scheme}://app:p%40ss%2Fw%3Frd@{places}{options}", "named")
            assert "check the user and password" in await refusal(f"{scheme}://app:wrong@{places}{options}")
        for secret in ("app:p@ss/w?rd", "app:12/ss", ":p#ss"):
            detail = await refusal(f"{scheme}://{secret}@{places}{options}")
            assert "%2F" in detail
            assert "ss" not in detail.replace("rediss", "").replace("password", "")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("redis://host:1/0", "redis://host:1/0"),
        ("rediss://user:secret@host:1/0?ssl_password=secret", "rediss://host:1/0"),
        ("redis+cluster://:sec:ret@a:1,b:2", "redis+cluster://a:1,b:2"),
        ("redis://user:sec@ret@host", "redis://host"),
        ("redis://user:sec/ret@host", "redis://..."),
        ("redis://host/0?password=sec@ret", "redis://..."),
        ("redis:user:secret@host", "redis:host"),
        ("postgres://user:secret@host", "postgres://host"),
        ("sqlite:a@b/c?d", "sqlite:a@b/c?d"),
        ("feedrank.db", "feedrank.db"),
    ],
)
def test_what_is_printed_of_a_url_has_no_secret(url, seen):
    assert shown(url) == seen
