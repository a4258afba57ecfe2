"""Shares a store that another process of this user has open, over a socket next to its file.

A SQLite store is for one process. Whoever has it open through `--store` listens on `PATH.socket`, which only its owner can
use, and every later command with the same `--store` talks to that process instead of opening the file.
"""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import httpx

__all__ = ["is_shared", "socket_of", "transport"]

LONGEST = 100
"""Bytes of a path that every system takes for the address of a socket."""


def socket_of(store: str) -> Path | None:
    """Where the store of a `sqlite:PATH` is shared; None where it needs no sharing, or its path is too long for that."""
    scheme, _, path = store.partition(":")
    if scheme != "sqlite" or not path or path == ":memory:":
        return None
    place = Path(f"{Path(path.partition('?')[0]).absolute()}.socket")
    return place if len(str(place).encode()) <= LONGEST and hasattr(socket, "AF_UNIX") else None


def is_shared(place: Path) -> bool:
    """Whether a process listens there."""
    try:
        if not stat.S_ISSOCK(place.stat().st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(5.0)
            probe.connect(str(place))
    except OSError:
        return False
    return True


def transport(place: Path) -> httpx.BaseTransport:
    """To the process that listens there."""
    return httpx.HTTPTransport(uds=str(place))
