"""Free ports for servers that must be told theirs.

A port that the system names on `bind(0)` may be taken by any outgoing connection before the server binds it: those come
from the same range. Ours lie below it, and a process that has chosen one keeps its number to itself until it ends.
"""

from __future__ import annotations

import random
import socket

LOWEST, HIGHEST = 12_000, 22_000
BUS = 10_000  # a node of a Redis Cluster listens on the port so far above its own, too
_reserved: list[socket.socket] = []


def free_port() -> int:
    """A port that nobody listens on, nor on its neighbour `BUS` above, and that no other test process will choose."""
    while True:
        port = random.randrange(LOWEST, HIGHEST)
        if is_free(port) and is_free(port + BUS) and reserve(port):
            return port


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def reserve(port: int) -> bool:
    """Whether the number was ours to take: a name of Linux's abstract sockets, which goes with the process."""
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0feedrank-test-port-{port}")
    except OSError:
        name.close()
        return False
    _reserved.append(name)
    return True
