"""Opening Redis: the URL, what the server must be, and what an operator should know about it."""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from hiredis import pack_command
from redis.asyncio import Redis
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ResponseError

from feedrank.service.contract.faults import StoreRefused, StoreUnavailable, newer_store, no_store
from feedrank.service.contract.json_types import JSON
from feedrank.service.contract.store_url import HIDDEN, shown

from . import keys
from .arithmetic import FIRST, notices
from .redis import SCRIPTS, RedisStore
from .redis_listen import Listener
from .redis_nodes import FAILURES, Address, Cluster, Nodes, OneNode
from .redis_pipes import Argument, Confirmation, Pipes
from .redis_upgrade import MOVE, upgrade

OLDEST = (6, 2)
WAITAOF = (7, 2)  # the first that can say what is on the disks of replicas
TIMEOUT = 5.0
CLAIM = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
"""


def options(url: str) -> JSON:
    """What holds for every connection unless the URL says otherwise."""
    return {
        "socket_timeout": TIMEOUT,
        "socket_connect_timeout": TIMEOUT,
        # No silent second sending: an append whose reply was lost may have run.
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        # redis-py before 6 takes the certificate of any host unless asked to check.
        **({"ssl_check_hostname": True} if url.startswith("rediss") else {}),
    }


async def open_redis(
    url: str, *, read_only: bool = False, replicas: int = 0, replica_wait: float = 1.0, arithmetic: int = 0
) -> RedisStore:
    """The store at a `redis` URL of any form; StoreRefused in one line if it cannot be used."""
    name = shown(url)
    if name.endswith(HIDDEN):
        raise StoreRefused(
            f"cannot read {name}: write / ? # in a password as %2F %3F %23, and @ in an option as %40"
        )
    try:
        nodes = connect(url)
    except (*FAILURES, TypeError, ValueError) as error:  # TypeError: an option that redis-py does not know
        raise StoreRefused(f"cannot use {name}: {line(error)}: check the URL") from None
    pipes = Pipes(nodes, (*SCRIPTS, MOVE), Confirmation(replicas, replica_wait))
    try:
        warnings, version = await examine(pipes, name)
        pipes.confirmation = Confirmation(replicas, replica_wait, synced=version >= WAITAOF)
        identity, said = await prepare(pipes, name, read_only, arithmetic)
        pipes.read_only = read_only
    except BaseException as error:
        await nodes.close()
        if isinstance(error, (*FAILURES, StoreUnavailable, ValueError)):
            raise StoreRefused(f"cannot use {name}: {line(error)}: {hint(error, url)}") from None
        raise

    async def listen() -> Any:
        if not isinstance(nodes, Cluster):
            return one(url)
        nodes.invalidate()
        names = await nodes.names()
        host, _, port = names[0].rpartition(":")
        return single(at(url, (host, int(port))))

    return RedisStore(pipes, Listener(listen), warnings + said, identity)


def connect(url: str) -> Nodes:
    """The servers that a URL names; nothing is sent to them yet."""
    if "+cluster:" not in url:
        return OneNode(one(url))
    addresses = places(url)
    single(at(url, addresses[0]))  # a wrong option shows here, not on the first use
    return Cluster(addresses, lambda address: single(at(url, address)))


def one(url: str) -> Any:
    """A client of the one server that takes writes."""
    return sentinel(url) if "+sentinel:" in url else single(url)


def single(url: str) -> Any:
    """A client of one server."""
    client: Any = packing_in_c(Redis.from_url(url, **options(url)))
    client.connection_pool.make_connection()  # a wrong option shows here, not on the first use
    return client


def packing_in_c(client: Any) -> Any:
    """The client, whose commands hiredis packs: the asyncio half of redis-py does so in Python, five times as slowly."""
    kind = client.connection_pool.connection_class
    client.connection_pool.connection_class = type(kind.__name__, (kind,), {"pack_command": pack})
    return client


def pack(_: object, name: str | bytes, *words: Argument) -> list[bytes]:
    """A command as it goes to the server; its name may be of two words."""
    parts: Any = (*(name.encode() if isinstance(name, str) else name).split(), *words)
    return [pack_command(parts)]


class WatchedRedis(Redis):
    """A client of the primary; with it, the connections to its Sentinels are closed."""

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        await super().aclose(close_connection_pool)
        pool: Any = self.connection_pool
        for watcher in pool.sentinel_manager.sentinels:
            await watcher.aclose()


def sentinel(url: str) -> Any:
    """A client of the primary that Sentinel names, asked anew for every connection."""
    service, _, database = urlsplit(url).path.strip("/").partition("/")
    if not service:
        raise ValueError("name the service that Sentinel watches: redis+sentinel://HOST:PORT/SERVICE/DB")
    query = dict(parse_qsl(urlsplit(url).query))
    own = {
        name.removeprefix("sentinel_"): query.pop(name)
        for name in ("sentinel_username", "sentinel_password")
        if name in query
    }
    address = at(url, places(url)[0], f"/{database or 0}", urlencode(query))
    settings = {**options(url), **parse_url(address)}
    for name in ("host", "port"):
        settings.pop(name, None)
    kind = settings.pop("connection_class", None)
    if kind is not None:
        settings["ssl"] = True
    shared = {
        key: value
        for key, value in settings.items()
        if key.startswith(("ssl", "socket", "retry", "protocol"))
    }
    watchers: Any = Sentinel(places(url), sentinel_kwargs={**shared, **own}, **settings)  # type: ignore[no-untyped-call]
    return packing_in_c(watchers.master_for(unquote(service), redis_class=WatchedRedis))


def places(url: str) -> list[Address]:
    """The servers in a URL, separated by commas."""
    parts = urlsplit(url)
    hosts = [urlsplit(f"//{place}") for place in parts.netloc.rpartition("@")[2].split(",") if place]
    fallback = 26379 if "+sentinel:" in url else 6379
    return [(place.hostname or "localhost", place.port or fallback) for place in hosts] or [
        ("localhost", fallback)
    ]


def at(url: str, address: Address, path: str | None = None, query: str | None = None) -> str:
    """The URL of one server, with the user, password and options of `url`."""
    parts = urlsplit(url)
    who, sign, _ = parts.netloc.rpartition("@")
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    return parts._replace(
        scheme=parts.scheme.partition("+")[0],
        netloc=f"{who}{sign}{host}:{address[1]}",
        path=parts.path if path is None else path,
        query=parts.query if query is None else query,
    ).geturl()


def line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")


def hint(error: BaseException, url: str) -> str:
    if isinstance(error, AuthenticationError):
        return "check the user and password in the URL"
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "name the host as its certificate does, and an authority of your own by ?ssl_ca_certs=FILE"
    running = f"is Redis {OLDEST[0]}.{OLDEST[1]} or later running there"
    if url.startswith("rediss"):
        return f"{running} with TLS, and does the URL name its ssl_ca_certs, ssl_certfile and ssl_keyfile?"
    return f"{running}?"


async def examine(pipes: Pipes, name: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Refuse a server that is too old or would evict data; return what else would lose data, and the oldest version."""
    notices: list[str] = []
    versions = []
    for node in await pipes.nodes.names():
        client = pipes.nodes.client(node)
        info, settings = await client.info(), await configured(client)
        version = tuple(map(int, str(info["redis_version"]).split(".")[:2]))
        versions.append(version)
        if version < OLDEST:
            raise StoreRefused(
                f"{name} is Redis {info['redis_version']}; {OLDEST[0]}.{OLDEST[1]} or later is needed"
            )
        policy = info.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            raise StoreRefused(
                f"{name} has maxmemory-policy {policy} and would evict data: set maxmemory-policy noeviction"
            )
        if info.get("connected_slaves", 0) < pipes.confirmation.replicas:
            notices.append(
                f"Redis has {info.get('connected_slaves', 0)} of the {pipes.confirmation.replicas} replicas that must "
                "confirm: writes are refused until they are there"
            )
        if not info.get("aof_enabled"):
            lost = "what it has not yet saved" if settings.get("save", "?") else "all"
            notices.append(f"Redis runs without appendonly: {lost} is lost if it stops; set appendonly yes")
        elif settings.get("appendfsync", "always") != "always":
            notices.append(
                "Redis syncs to disk after it has answered: the last second or two is lost if it is killed; "
                "set appendfsync always to lose nothing"
            )
    return tuple(dict.fromkeys(notices)), min(versions)


async def prepare(pipes: Pipes, name: str, read_only: bool, arithmetic: int) -> tuple[str, tuple[str, ...]]:
    """Refuse a newer layout, bring an older one up to date, mark an empty database as ours; its identity, and notices."""
    layout, upgraded = await pipes.run(keys.FORMAT, "GET", keys.FORMAT), None
    if layout is not None and int(layout) > keys.LAYOUT:
        raise newer_store(name, int(layout))
    if layout is not None:
        upgraded = await pipes.run(keys.UPGRADED, "GET", keys.UPGRADED)
    if read_only and layout is None:
        raise no_store(name)
    if read_only and (upgraded is None or int(upgraded) < keys.LAYOUT):
        raise StoreRefused(
            f"{name} was written by an older feedrank (layout {int(layout)}): start the service once to upgrade it"
        )
    if layout is None:
        await pipes.run(keys.UPGRADED, "SET", keys.UPGRADED, keys.LAYOUT)
        await pipes.run(keys.FORMAT, "SET", keys.FORMAT, keys.LAYOUT, "NX")
    elif upgraded is None or int(upgraded) < keys.LAYOUT:
        await upgrade(pipes)
    if not read_only:
        before = arithmetic if layout is None else FIRST
        fresh = f"{secrets.token_hex(16)} {keys.LAYOUT} {before}"
        await pipes.run(
            keys.STORE, "SET", keys.STORE, fresh, "NX"
        )  # replicas have it before what is written next
    return await claim(pipes, name, arithmetic if not read_only else 0)


async def claim(pipes: Pipes, name: str, arithmetic: int) -> tuple[str, tuple[str, ...]]:
    """The store's identity, from now on with this arithmetic: earlier ones that have it open write no more. And notices."""
    identity = (await pipes.run(keys.STORE, "GET", keys.STORE) or b"").decode()
    token, _, rest = identity.partition(" ")
    before = int(rest.partition(" ")[2] or FIRST)
    said = notices(name, before, arithmetic)
    if not arithmetic or before == arithmetic:
        return identity, said
    # All who come with this arithmetic make the same of it, whoever is first.
    renewed = f"{token} {keys.LAYOUT} {arithmetic}"
    if await pipes.run(keys.STORE, "EVAL", CLAIM, 1, keys.STORE, identity, renewed):
        return renewed, said
    return (await claim(pipes, name, arithmetic))[0], said


async def configured(client: Any) -> dict[str, str]:
    """How the server writes to disk; empty where it does not tell."""
    try:
        settings: dict[str, str] = await client.config_get("*")
    except ResponseError:  # hosted servers often forbid CONFIG
        return {}
    return settings
