"""Commands to Redis, many on one round trip: what waits for a node goes to it as one pipeline.

Nothing is sent twice by itself: after a lost connection it is not known whether a command ran, and saying so (503) is
the caller's chance to send the event again under its id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha1
from pathlib import Path
from typing import Any

from redis.exceptions import NoScriptError, RedisClusterException, RedisError

from ..errors import StoreUnavailable
from ..gather import Gather

Argument = str | bytes | int | float
FAILURES = (RedisError, RedisClusterException, OSError)
MOST = 256  # commands in one pipeline


class Script:
    """A Lua file, called by its hash."""

    def __init__(self, name: str) -> None:
        self.text = Path(__file__).with_name("lua").joinpath(f"{name}.lua").read_text()
        self.hash = sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    def call(self, keys: Sequence[str], arguments: Sequence[Argument]) -> tuple[Argument, ...]:
        return ("EVALSHA", self.hash, len(keys), *keys, *arguments)


class Pipes:
    """One pipeline at a time for each node (a single one without Cluster). `client` is a redis.asyncio client."""

    def __init__(self, client: Any, scripts: Sequence[Script]) -> None:
        self.client = client
        self._cluster = hasattr(client, "get_node_from_key")
        self._texts = {script.hash: script.text for script in scripts}
        self._gather: Gather[tuple[Argument, ...], Any] = Gather(self._send, MOST)

    async def run(self, key: str, *command: Argument) -> Any:
        """The reply to a command on `key`, or StoreUnavailable."""
        return await self._gather.run(await self._node(key), command)

    async def many(self, commands: Sequence[tuple[str, *tuple[Argument, ...]]]) -> list[Any]:
        """The replies to commands that do not depend on each other, each preceded by its key."""
        return list(await asyncio.gather(*(self.run(key, *command) for key, *command in commands)))

    async def alone(self, *command: Argument) -> Any:
        """A command on a connection of its own, so that a large value does not hold up small ones."""
        try:
            return await self.client.execute_command(*command)
        except FAILURES as error:
            raise unavailable(error) from None

    async def close(self) -> None:
        """Finish what was sent."""
        await self._gather.close()
        await self.client.aclose()

    async def _node(self, key: str) -> str:
        if not self._cluster:
            return ""
        try:
            await self.client.initialize()
            node = self.client.get_node_from_key(key)
        except FAILURES as error:
            raise unavailable(error) from None
        return "" if node is None else str(node.name)

    async def _send(self, node: str, commands: Sequence[tuple[Argument, ...]]) -> list[Any]:
        try:
            replies = await self._pipeline(commands)
            # A server that was restarted has forgotten the scripts: the call did not run, so it may be sent in full.
            lost = [i for i, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
            if lost:
                full = [("EVAL", self._texts[str(commands[i][1])], *commands[i][2:]) for i in lost]
                for i, reply in zip(lost, await self._pipeline(full), strict=True):
                    replies[i] = reply
        except FAILURES as error:
            raise unavailable(error) from None
        return [unavailable(reply) if isinstance(reply, FAILURES) else reply for reply in replies]

    async def _pipeline(self, commands: Sequence[tuple[Argument, ...]]) -> list[Any]:
        if len(commands) == 1:
            try:
                return [await self.client.execute_command(*commands[0])]
            except FAILURES as error:
                return [error]
        pipeline = self.client.pipeline() if self._cluster else self.client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        replies: list[Any] = await pipeline.execute(raise_on_error=False)
        return replies


def unavailable(error: Exception) -> StoreUnavailable:
    """What Redis says, as what the caller can do."""
    return StoreUnavailable(f"Redis did not take or answer it ({error}): send it again, under the same id")
