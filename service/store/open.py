"""From a store's URL to the store.

sqlite:PATH                              one process
redis://[USER:PASSWORD@]HOST:PORT/DB     many processes; rediss:// over TLS
redis+cluster://HOST:PORT[,HOST:PORT]    Redis Cluster, by any of its nodes; rediss+cluster:// over TLS

Options of the connection follow a `?`, by the names that redis-py gives them: ?ssl_ca_certs=FILE&ssl_certfile=FILE
"""

from __future__ import annotations

from ..errors import StoreRefused
from .base import Store

SCHEMES = ("sqlite", "redis", "rediss", "redis+cluster", "rediss+cluster")
HIDDEN = "..."


async def open_store(url: str) -> Store:
    """The store at `url`, ready to use; StoreRefused, in one line, if it cannot be."""
    scheme, _, rest = url.partition(":")
    if scheme not in SCHEMES or not rest:
        raise StoreRefused(f"the store must be sqlite:PATH or redis://HOST:PORT/DB, not {shown(url)!r}")
    if scheme == "sqlite":
        from .sqlite import SqliteStore  # noqa: PLC0415  (each store imports its own driver)

        return SqliteStore(rest)
    from .redis_open import open_redis  # noqa: PLC0415

    return await open_redis(url)


def shown(url: str) -> str:
    """`url` as it may be printed: without user, password and options."""
    scheme, colon, rest = url.partition(":")
    if scheme == "sqlite":
        return url
    who, _, where = rest.removeprefix("//").rpartition("@")
    # With one of these before the last @, where a password ends and the place begins cannot be told.
    place = HIDDEN if set(who) & set("/?#") else where.partition("?")[0]
    return scheme + colon + ("//" if rest.startswith("//") else "") + place
