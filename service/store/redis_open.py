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
from .redis import SCRIPTS, RedisStore
from .redis_listen import Listener
from .redis_pipes import FAILURES, Pipes

LAYOUT = 1
OLDEST = (6, 2)
TIMEOUT = 5.0


def options() -> dict[str, Any]:
    # No silent second sending: an append whose reply was lost may have run.
    return {
        "socket_timeout": TIMEOUT,
        "socket_connect_timeout": TIMEOUT,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
    }


async def open_redis(url: str) -> RedisStore:
    """The store at a `redis` URL of any form; StoreRefused in one line if it cannot be used."""
    shown = urlsplit(url)._replace(netloc=urlsplit(url).netloc.rpartition("@")[2]).geturl()
    client: Any = None
    try:
        client = cluster(url) if "+cluster:" in url else Redis.from_url(url, **options())
        await client.initialize()
        notices = await examine(client, shown)
    except BaseException as error:
        if client is not None:
            await client.aclose()
        if isinstance(error, (*FAILURES, ValueError)):
            raise StoreRefused(f"cannot use {shown}: {hint(error)}") from None
        raise

    async def listen() -> Any:
        if "+cluster:" not in url:
            return Redis.from_url(url, **options())
        await client.initialize()
        node = client.get_random_node()
        parts = urlsplit(url)
        plain = parts._replace(
            scheme=parts.scheme.removesuffix("+cluster"),
            netloc=f"{parts.netloc.rpartition('@')[0]}@{node.host}:{node.port}".lstrip("@"),
        )
        return Redis.from_url(plain.geturl(), **options())

    return RedisStore(Pipes(client, SCRIPTS), Listener(listen), notices)


def cluster(url: str) -> Any:
    """A client of Redis Cluster; the URL names one or more of its nodes, separated by commas."""
    parts = urlsplit(url)
    who, _, where = parts.netloc.rpartition("@")
    nodes = []
    for place in where.split(","):
        host, _, port = place.rpartition(":")
        nodes.append(ClusterNode(host or place, int(port) if host else 6379))
    user, _, password = who.partition(":")
    extra: dict[str, Any] = {"username": user or None, "password": password or None} if who else {}
    return RedisCluster(startup_nodes=nodes, ssl=parts.scheme.startswith("rediss"), **extra, **options())


def hint(error: BaseException) -> str:
    if isinstance(error, AuthenticationError):
        return f"{error}: check the user and password in the URL"
    return f"{error}: is Redis {OLDEST[0]}.{OLDEST[1]} or later running there?"


async def examine(client: Any, shown: str) -> tuple[str, ...]:
    """Refuse a server that is too old or a newer layout; return what would lose data."""
    found = await client.info()
    infos = [found] if "redis_version" in found else list(found.values())
    notices: list[str] = []
    settings = await configured(client)
    for info in infos:
        version = str(info["redis_version"])
        if tuple(map(int, version.split(".")[:2])) < OLDEST:
            raise StoreRefused(f"{shown} is Redis {version}; {OLDEST[0]}.{OLDEST[1]} or later is needed")
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
        raise StoreRefused(
            f"{shown} was written by a newer feedrank (layout {int(layout)}): upgrade feedrank"
        )
    return tuple(dict.fromkeys(notices))


async def configured(client: Any) -> dict[str, str]:
    """How the server writes to disk; empty where it does not tell."""
    try:
        found: dict[str, Any] = await client.config_get("*")
    except ResponseError:  # hosted servers often forbid CONFIG
        return {}
    return found if "save" in found else dict(next(iter(found.values()), {}))
