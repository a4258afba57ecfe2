"""Every byte that a store has: of its files, of a Redis as it would write them to a disk, of the tables of PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import psycopg
import redis


def bytes_of(url: str) -> bytes:
    """Of a store at rest, or one that is open."""
    if url.startswith("sqlite:"):
        path = Path(url.removeprefix("sqlite:"))
        return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))
    if url.startswith("postgresql:"):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            ((folder,),) = connection.execute("SHOW data_directory").fetchall()
        return b"".join(
            file.read_bytes() for file in sorted(Path(folder, "base").rglob("*")) if file.is_file()
        )
    with redis.Redis.from_url(url) as client:
        client.config_set("rdbcompression", "no")
        client.save()
        folder = client.config_get("dir")["dir"]
    return b"".join(file.read_bytes() for file in sorted(Path(folder).rglob("*")) if file.is_file())
