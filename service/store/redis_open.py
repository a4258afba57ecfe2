"""Opening Redis: the URL, what the server must be, and what an operator should know about it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ResponseError

from ..errors import StoreRefused
from . import keys
from .open import HIDDEN, shown
from .redis import SCRIPTS, RedisStore
from .redis_listen import Listener
from .redis_pipes import FAILURES, Pipes

LAYOUT = 1
OLDEST = (6, 2)
TIMEOUT = 5.0


def options(url: str) -> dict[str, Any]:
    """What holds for every connection unless the URL says otherwise."""
    return {
        "socket_timeout": TIMEOUT,
        "socket_connect_timeout": TIMEOUT,
        # No silent second sending: an append whose reply was lost may have run.
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        # redis-py before 6 takes the certificate of any host unless told.
        **({"ssl_check_hostname": True} if url.startswith("rediss") else {}),
    }


async def open_redis(url: str) -> RedisStore:
    """The store at a `redis` URL of any form; StoreRefused in one line if it cannot be used."""
    name = shown(url)
    if name.endswith(HIDDEN):
        raise StoreRefused(
            f"cannot read {name}: write / ? # in a password as %2F %3F %23, and @ in an option as %40"
        )
    try:
        client = cluster(url) if "+cluster:" in url else single(url)
    except (*FAILURES, TypeError, ValueError) as error:  # TypeError: an option that redis-py does not know
        raise StoreRefused(f"cannot use {name}: {line(error)}: check the URL") from None
    try:
        await client.initialize()
        notices = await examine(client, name)
    except BaseException as error:
        await client.aclose()
        if isinstance(error, (*FAILURES, ValueError)):
            reason = error.__cause__ or error  # Cluster wraps what a node said
            raise StoreRefused(f"cannot use {name}: {line(reason)}: {hint(reason, url)}") from None
        raise

    async def listen() -> Any:
        if "+cluster:" not in url:
            return single(url)
        await client.initialize()
        node = client.get_random_node()
        return single(at(url, f"[{node.host}]:{node.port}" if ":" in node.host else node.name))

    return RedisStore(Pipes(client, SCRIPTS), Listener(listen), notices)


def single(url: str) -> Any:
    """A client of one server."""
    client: Any = Redis.from_url(url, **options(url))
    client.connection_pool.make_connection()  # a wrong option is told here, not on the first use
    return client


def cluster(url: str) -> Any:
    """A client of Redis Cluster; the URL names one or more of its nodes, separated by commas."""
    servers = [at(url, place) for place in urlsplit(url).netloc.rpartition("@")[2].split(",")]
    nodes = [ClusterNode(node.hostname or "", node.port or 6379) for node in map(urlsplit, servers)]
    single(servers[0])  # the listener is a client of one server and must take the same options
    return RedisCluster.from_url(servers[0], startup_nodes=nodes, **options(url))


def at(url: str, place: str) -> str:
    """The URL of one server, with the user, password and options of `url`."""
    parts = urlsplit(url)
    who, sign, _ = parts.netloc.rpartition("@")
    return parts._replace(scheme=parts.scheme.removesuffix("+cluster"), netloc=who + sign + place).geturl()


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


async def examine(client: Any, name: str) -> tuple[str, ...]:
    """Refuse a server that is too old or a newer layout; return what would lose data."""
    found = await client.info()
    infos = [found] if "redis_version" in found else list(found.values())
    notices: list[str] = []
    settings = await configured(client)
    for info in infos:
        version = str(info["redis_version"])
        if tuple(map(int, version.split(".")[:2])) < OLDEST:
            raise StoreRefused(f"{name} is Redis {version}; {OLDEST[0]}.{OLDEST[1]} or later is needed")
        if not info.get("aof_enabled"):
            lost = "what it has not yet saved" if settings.get("save", "?") else "all"
            notices.append(f"Redis runs without appendonly: {lost} is lost if it stops; set appendonly yes")
        elif settings.get("appendfsync", "always") != "always":
            notices.append(
                "Redis syncs to disk after it has answered: the last second or two is lost if it is killed; "
                "set appendfsync always to lose nothing"
            )
        policy = info.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            notices.append(f"Redis has maxmemory-policy {policy} and may evict data: set it to noeviction")
    layout = await client.get(keys.FORMAT)
    if layout is None:
        await client.set(keys.FORMAT, LAYOUT, nx=True)
    elif int(layout) > LAYOUT:
        raise StoreRefused(f"{name} was written by a newer feedrank (layout {int(layout)}): upgrade feedrank")
    return tuple(dict.fromkeys(notices))


async def configured(client: Any) -> dict[str, str]:
    """How the server writes to disk; empty where it does not tell."""
    try:
        found: dict[str, Any] = await client.config_get("*")
    except ResponseError:  # hosted servers often forbid CONFIG
        return {}
    return found if "save" in found else dict(next(iter(found.values()), {}))
