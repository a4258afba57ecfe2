"""Commands to Redis, many on one round trip: what waits for a node goes to it as one pipeline.

Nothing is sent twice by itself: after a lost connection it is not certain whether a command ran, and saying so (503) is
the caller's chance to send the event again under its id. Where replicas must confirm, a pipeline that writes ends with a
wait for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from typing import Any, NamedTuple

from redis.exceptions import MovedError, NoScriptError

from feedrank.service.contract.faults import StoreUnavailable
from feedrank.service.contract.json_types import JSON

from .outage import Outage
from .redis_nodes import FAILURES, Cluster, Nodes
from .shared import Batcher

Argument = str | bytes | int | float
MOST = 256  # commands in one pipeline
BYTES = 8 * 2**20  # in one pipeline, unless it is of a single command
CALM = 1.0  # seconds without a failure after which an outage is over
RECEIVED = 100  # milliseconds of a wait for the disks of replicas that go to what they have received


class Script:
    """A Lua file behind `identity.lua`, called by its hash."""

    def __init__(self, name: str) -> None:
        folder = Path(__file__).with_name("lua")
        self.text = "".join(folder.joinpath(f"{part}.lua").read_text() for part in ("identity", name))
        self.hash = sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    def call(
        self, keys: Sequence[str], arguments: Sequence[Argument], identity: tuple[str, str] | None = None
    ) -> tuple[Argument, ...]:
        """The command; with the key of the store's `identity` and what it must hold, or nothing happens."""
        names, last = (keys, "") if identity is None else ((*keys, identity[0]), identity[1])
        return ("EVALSHA", self.hash, len(names), *names, *arguments, last)


class Command(NamedTuple):
    """One command, the key that decides its node, and whether replicas must confirm it."""

    key: str
    words: tuple[Argument, ...]
    write: bool

    @property
    def size(self) -> int:
        return sum(len(word) for word in self.words if isinstance(word, str | bytes))


@dataclass(frozen=True, slots=True)
class Confirmation:
    """How many replicas must have a write before it is acknowledged; `synced`: on disk (WAITAOF, from Redis 7.2 on)."""

    replicas: int = 0
    seconds: float = 1.0
    synced: bool = False

    def commands(self) -> list[tuple[Argument, ...]]:
        """What a pipeline that writes ends with; the reply to the last one decides.

        A replica that is asked how far it is answers at once, with what it has on disk by then: never yet with what it
        has just received, and nobody asks again for a second. So it is asked twice: WAIT lasts until it has received
        everything, and syncs that before it hears of WAITAOF.
        """
        milliseconds = max(1, int(1000 * self.seconds))
        if not self.synced:
            return [("WAIT", self.replicas, milliseconds)]
        first = min(RECEIVED, milliseconds // 2) or 1
        return [("WAIT", self.replicas, first), ("WAITAOF", 1, self.replicas, max(1, milliseconds - first))]

    def refusal(self, reply: Any) -> str:
        """Why a write is not acknowledged, from what the server says; nothing if it is."""
        if isinstance(reply, FAILURES):
            return reason_of(reply)
        local, replicas = reply if self.synced else (1, reply)
        if local >= 1 and replicas >= self.replicas:
            return ""
        return (
            f"{replicas} of the {self.replicas} replicas asked for have confirmed within {self.seconds:g} s"
        )


class Pipes:
    """One pipeline at a time for each node."""

    def __init__(
        self, nodes: Nodes, scripts: Sequence[Script], confirmation: Confirmation | None = None
    ) -> None:
        self.nodes = nodes
        self.read_only = False
        self.confirmation = confirmation or Confirmation()
        self.outage = Outage(
            "Redis did not take or answer a call", "Redis takes and answers calls again", CALM
        )
        self._texts = {script.hash: script.text for script in scripts}
        self._batcher: Batcher[Command, Any] = Batcher(
            self._send, MOST, weigh=lambda command: command.size, weight=BYTES, turns=0
        )

    @property
    def spread(self) -> bool:
        """Whether keys lie on several nodes."""
        return isinstance(self.nodes, Cluster)

    async def run(self, key: str, *words: Argument, write: bool = False) -> Any:
        """The reply to a command on `key`, or StoreUnavailable."""
        if write and self.read_only:
            raise StoreUnavailable("the store was opened for reading only")
        return await self._batcher.run(
            await self._node(key), Command(key, words, write and self.confirmation.replicas > 0)
        )

    async def many(self, commands: Sequence[tuple[str, *tuple[Argument, ...]]]) -> list[Any]:
        """The replies to commands that do not depend on each other, each preceded by its key."""
        return list(await asyncio.gather(*(self.run(key, *words) for key, *words in commands)))

    async def alone(self, key: str, *words: Argument) -> Any:
        """A command on a connection of its own, so that a large value does not hold up small ones."""
        node = await self._node(key)
        (reply,) = await self._deliver(node, [Command(key, words, False)])
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def info(self, section: str) -> list[JSON]:
        """What every node says of itself."""
        try:
            return [await self.nodes.client(name).info(section) for name in await self.nodes.names()]
        except FAILURES as error:
            self.nodes.invalidate()
            raise self._unavailable(error) from None

    async def close(self) -> None:
        """Finish what was sent."""
        await self._batcher.close()
        await self.nodes.close()

    async def _node(self, key: str) -> str:
        try:
            return await self.nodes.name(key)
        except FAILURES as error:
            raise self._unavailable(error) from None

    async def _send(self, node: str, commands: Sequence[Command]) -> list[Any]:
        return await self._deliver(node, commands)

    async def _deliver(self, node: str, commands: Sequence[Command]) -> list[Any]:
        try:
            replies = await self._pipeline(node, commands)
            # A server that was restarted has forgotten the scripts: the call did not run, so it may be sent in full.
            lost = [i for i, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
            if lost:
                full = [
                    commands[i]._replace(
                        words=("EVAL", self._texts[str(commands[i].words[1])], *commands[i].words[2:])
                    )
                    for i in lost
                ]
                for i, reply in zip(lost, await self._pipeline(node, full), strict=True):
                    replies[i] = reply
        except FAILURES as error:
            self.nodes.invalidate()
            raise self._unavailable(error) from None
        if not any(isinstance(reply, (*FAILURES, StoreUnavailable)) for reply in replies):
            self.outage.worked()
        for i, reply in enumerate(replies):
            if isinstance(reply, FAILURES):
                self.nodes.invalidate()
                replies[i] = await self._elsewhere(commands[i], reply)
        return replies

    async def _elsewhere(self, command: Command, reply: Exception) -> Any:
        """A slot that has moved did not take the command: it goes once to where the slot is now."""
        if isinstance(reply, MovedError):
            try:
                (reply,) = await self._pipeline(await self.nodes.name(command.key), [command])
            except FAILURES as error:
                reply = error
        return self._unavailable(reply) if isinstance(reply, FAILURES) else reply

    async def _pipeline(self, node: str, commands: Sequence[Command]) -> list[Any]:
        """One round trip; what was written and not confirmed is refused."""
        confirmed = any(command.write for command in commands)
        client = self.nodes.client(node)
        if len(commands) == 1 and not confirmed:
            try:
                return [await client.execute_command(*commands[0].words)]
            except FAILURES as error:
                return [error]
        pipeline = client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command.words)
        for words in self.confirmation.commands() if confirmed else ():
            pipeline.execute_command(*words)
        every: list[Any] = await pipeline.execute(raise_on_error=False)
        replies = every[: len(commands)]
        if confirmed and (refusal := self.confirmation.refusal(every[-1])):
            self.outage.failed(refusal)
            for i, command in enumerate(commands):
                if command.write and not isinstance(replies[i], FAILURES):
                    replies[i] = StoreUnavailable(f"{refusal}: send it again, under the same id")
        return replies

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        """What Redis says, as what the caller can do."""
        reason = reason_of(error)
        self.outage.failed(reason)
        return StoreUnavailable(
            f"Redis did not take or answer it ({reason}): send it again, under the same id"
        )


def reason_of(error: Exception) -> str:
    return str(error).partition(" : <")[0]  # redis-py shows all of its connections to the Sentinels
