"""From a store's URL to the store.

sqlite:PATH                              one process
redis://[USER:PASSWORD@]HOST:PORT/DB     many processes; rediss:// over TLS
redis+cluster://HOST:PORT[,HOST:PORT]    Redis Cluster, by any of its nodes; rediss+cluster:// over TLS
"""

from __future__ import annotations

from ..errors import StoreRefused
from .base import Store

SCHEMES = ("sqlite", "redis", "rediss", "redis+cluster", "rediss+cluster")


async def open_store(url: str) -> Store:
    """The store at `url`, ready to use; StoreRefused, in one line, if it cannot be."""
    scheme, _, rest = url.partition(":")
    if scheme not in SCHEMES or not rest:
        raise StoreRefused(f"the store must be sqlite:PATH or redis://HOST:PORT/DB, not {url!r}")
    if scheme == "sqlite":
        from .sqlite import SqliteStore  # noqa: PLC0415  (each store imports its own driver)

        return SqliteStore(rest)
    from .redis_open import open_redis  # noqa: PLC0415

    return await open_redis(url)
