"""Which server has a key: the only one, the one that Sentinel names, or the one that Cluster's map of slots says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from redis.crc import key_slot
from redis.exceptions import RedisClusterException, RedisError

from feedrank.service.contract.json_types import JSON

# What a connection may end by. A transport that was closed raises RuntimeError, a reply that breaks off EOFError, and
# redis-py passes both on as they are.
FAILURES = (RedisError, RedisClusterException, OSError, RuntimeError, EOFError)
Address = tuple[str, int]


class Nodes(Protocol):
    """Clients are of redis.asyncio; a name is only for telling nodes apart."""

    async def name(self, key: str) -> str:
        """The node that has `key`."""
        ...

    def client(self, name: str) -> Any:
        """The client of a node."""
        ...

    async def names(self) -> list[str]:
        """All nodes that take writes."""
        ...

    def invalidate(self) -> None:
        """A node failed, or has moved on: ask for the map again before it is used next."""
        ...

    async def close(self) -> None: ...


class OneNode:
    """A single server, or whichever one Sentinel calls the primary at the moment of connecting."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def name(self, key: str) -> str:
        return ""

    def client(self, name: str) -> Any:
        return self._client

    async def names(self) -> list[str]:
        return [""]

    def invalidate(self) -> None:
        return

    async def close(self) -> None:
        await self._client.aclose()


class Cluster:
    """Redis Cluster, by any of its nodes. Commands go to the primary of their slot and are never sent on by themselves."""

    def __init__(self, start: Sequence[Address], connect: Callable[[Address], Any]) -> None:
        self._start, self._connect = list(start), connect
        self._clients: JSON = {}
        self._slots: list[tuple[int, int, str]] = []
        self._outdated = True
        self._refreshing = asyncio.Lock()

    async def name(self, key: str) -> str:
        await self._refresh()
        slot = key_slot(key.encode())
        for first, last, name in self._slots:
            if first <= slot <= last:
                return name
        self._outdated = True
        raise RedisClusterException(f"no node of the cluster serves slot {slot}")

    def client(self, name: str) -> Any:
        if name not in self._clients:
            host, _, port = name.rpartition(":")
            self._clients[name] = self._connect((host, int(port)))
        return self._clients[name]

    async def names(self) -> list[str]:
        await self._refresh()
        return sorted({name for _, _, name in self._slots})

    def invalidate(self) -> None:
        self._outdated = True

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()

    async def _refresh(self) -> None:
        """Ask the nodes, one after the other, until one answers."""
        async with self._refreshing:
            if not self._outdated:
                return
            reason: BaseException = RedisClusterException("the cluster serves no slots")
            nodes = {name: None for _, _, name in self._slots} | {
                f"{host}:{port}": None for host, port in self._start
            }
            for name in nodes:
                try:
                    rows = await self.client(name).execute_command("CLUSTER SLOTS")
                except FAILURES as error:
                    reason = error
                    continue
                if slots := parse_slots(rows, name):
                    self._slots, self._outdated = slots, False
                    return
            raise reason


def parse_slots(rows: Any, asked: str) -> list[tuple[int, int, str]]:
    """(first slot, last slot, its primary) from a reply to CLUSTER SLOTS, plain or as redis-py shapes it."""
    if isinstance(rows, dict):
        rows = [(first, last, row["primary"]) for (first, last), row in rows.items()]
    slots = []
    for first, last, primary, *_ in rows:
        host = primary[0].decode() if isinstance(primary[0], bytes) else primary[0]
        # A node that does not tell its own address is where it was asked.
        slots.append((int(first), int(last), f"{host or asked.rpartition(':')[0]}:{int(primary[1])}"))
    return slots
