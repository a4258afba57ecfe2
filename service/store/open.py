"""From a store's URL to the store.

sqlite:PATH                                          one process
postgresql://[USER:PASSWORD@]HOST[:PORT]/DB          many processes; its options are those of libpq, and schema=NAME
redis://[USER:PASSWORD@]HOST:PORT/DB                 many processes; rediss:// over TLS
redis+cluster://HOST:PORT[,HOST:PORT]                Redis Cluster, by any of its nodes; rediss+cluster:// over TLS
redis+sentinel://HOST:PORT[,HOST:PORT]/SERVICE[/DB]  the primary that these Sentinels name; rediss+sentinel:// over TLS

Options of the connection follow a `?`, by the names that redis-py and libpq give them: ?ssl_ca_certs=FILE&ssl_certfile=FILE

Another package brings a store by an entry point of the group `feedrank.stores`: its name is the scheme of the URL, its
value a coroutine function that is called as `open_store` calls it below, and gives a `Store`.
"""

from __future__ import annotations

from feedrank.service.contract.faults import StoreRefused
from feedrank.service.contract.store_url import FORMS, SCHEMES, brought, is_store, shown

from .interface import Store


async def open_store(
    url: str, *, read_only: bool = False, replicas: int = 0, replica_wait: float = 1.0, arithmetic: int = 0
) -> Store:
    """The store at `url`, ready to use; StoreRefused, in one line, if it cannot be.

    `read_only` opens what is there, never makes a store and writes nothing. `replicas` of Redis must have a write, within
    `replica_wait` seconds, before it is acknowledged. `arithmetic` counts the ways in which releases made states of its
    logs: a store that a later one has used is refused, and whoever has an earlier one open can write no more.
    """
    if not is_store(url):
        raise StoreRefused(f"the store must be {FORMS}, not {shown(url)!r}")
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite":
        from .sql.sqlite import SqliteStore  # noqa: PLC0415  (each store imports its own driver)

        return SqliteStore(rest, read_only=read_only, arithmetic=arithmetic)
    if scheme in {"postgresql", "postgres"}:
        try:
            from .sql.postgres_open import open_postgres  # noqa: PLC0415
        except ImportError:
            raise StoreRefused("a PostgreSQL store needs psycopg: pip install 'feedrank[postgres]'") from None
        return await open_postgres(url, read_only=read_only, arithmetic=arithmetic)
    if scheme in SCHEMES:
        from .redis_open import open_redis  # noqa: PLC0415

        return await open_redis(
            url, read_only=read_only, replicas=replicas, replica_wait=replica_wait, arithmetic=arithmetic
        )
    return await open_other(url, scheme, read_only=read_only, arithmetic=arithmetic)


async def open_other(url: str, scheme: str, *, read_only: bool, arithmetic: int) -> Store:
    """The store that another package brings."""
    entry = brought(scheme)
    assert entry is not None
    try:
        opener = entry.load()
    except Exception as error:
        raise StoreRefused(f"cannot load {entry.value}, which brings {scheme}: stores: {error}") from None
    store: Store = await opener(url, read_only=read_only, arithmetic=arithmetic)
    return store
