"""A NATS JetStream: `nats://HOST:PORT/STREAM`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar
from urllib.parse import urlsplit

import nats
import nats.errors
from nats.errors import TimeoutError as NoMessage
from nats.js.errors import NotFoundError

from .pump import BrokerMessage

WAIT = 1.0  # seconds for a batch
ATTEMPTS = 5  # to reach the server, a second apart


async def _unsaid(_: Exception) -> None:
    """The library would print a stack trace for every attempt; the last one is raised."""


class NatsSource:
    """A durable pull consumer, shared by all members of a group; what is refused goes to the stream `STREAM-dead`."""

    errors: ClassVar[tuple[type[Exception], ...]] = (nats.errors.Error,)

    def __init__(self, url: str, group: str) -> None:
        parts = urlsplit(url)
        self.stream = parts.path.strip("/")
        if not parts.netloc or not self.stream:
            raise ValueError("must be nats://HOST:PORT/STREAM")
        # The library is asyncio; the pump is not: each call runs the loop until it is done.
        self._runner = asyncio.Runner()
        try:
            self._runner.run(self._open(f"nats://{parts.netloc}", group))
        except BaseException:
            self._runner.close()
            raise

    async def _open(self, server: str, group: str) -> None:
        self._nats = await nats.connect(
            server, max_reconnect_attempts=ATTEMPTS, reconnect_time_wait=1, error_cb=_unsaid
        )
        self._js = self._nats.jetstream()
        self._pull = await self._js.pull_subscribe("", durable=group, stream=self.stream)
        self.dead, self._dead_is_there = f"{self.stream}-dead", False

    def fetch(self, most: int) -> Sequence[BrokerMessage]:
        """The next messages of the stream."""
        return self._runner.run(self._fetch(most))

    async def _fetch(self, most: int) -> Sequence[BrokerMessage]:
        try:
            batch = await self._pull.fetch(most, timeout=WAIT)
        except NoMessage:
            return []
        return [
            BrokerMessage(f"nats:{self.stream}:{message.metadata.sequence.stream}", message.data, message)
            for message in batch
        ]

    def done(self, messages: Sequence[BrokerMessage]) -> None:
        """Acknowledge them, and wait until the server has heard it."""
        self._runner.run(self._acknowledge(messages))

    async def _acknowledge(self, messages: Sequence[BrokerMessage]) -> None:
        for message in messages:
            await message.handle.ack()
        await self._nats.flush()

    def dead_letter(self, message: BrokerMessage, reason: str) -> None:
        """To `STREAM-dead`, which is made when it is first needed."""
        self._runner.run(self._bury(message, reason))

    async def _bury(self, message: BrokerMessage, reason: str) -> None:
        if not self._dead_is_there:
            try:
                await self._js.stream_info(self.dead)
            except NotFoundError:
                await self._js.add_stream(name=self.dead, subjects=[self.dead])
            self._dead_is_there = True
        safe = reason.replace("\r", " ").replace("\n", " ")
        await self._js.publish(self.dead, message.body, headers={"reason": safe, "message": message.id})

    def publish(self, topic: str, body: bytes) -> None:
        """To a subject that some stream keeps."""
        self._runner.run(self._send(topic, body))

    async def _send(self, topic: str, body: bytes) -> None:
        await self._js.publish(topic, body)

    def close(self) -> None:
        """Close the connection; the consumer keeps what was not acknowledged."""
        self._runner.run(self._nats.close())
        self._runner.close()
