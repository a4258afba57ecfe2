"""Every byte that a store has: of its files, or of a Redis as it would write them to a disk."""

from __future__ import annotations

from pathlib import Path

import redis


def bytes_of(url: str) -> bytes:
    """Of a store at rest, or one that is open."""
    if url.startswith("sqlite:"):
        path = Path(url.removeprefix("sqlite:"))
        return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))
    with redis.Redis.from_url(url) as client:
        client.config_set("rdbcompression", "no")
        client.save()
        folder = client.config_get("dir")["dir"]
    return b"".join(file.read_bytes() for file in sorted(Path(folder).rglob("*")) if file.is_file())
