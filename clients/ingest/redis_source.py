"""A Redis stream: `redis://HOST:PORT/DB/STREAM`; an entry holds the event as JSON in its field `event`."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit

import redis

from .pump import BrokerMessage

WAIT = 1000  # milliseconds for a batch
IDLE = 60_000  # milliseconds after which another member's messages are taken over


class RedisSource:
    """One member of a consumer group; what is refused goes to the stream `STREAM.dead`."""

    errors: ClassVar[tuple[type[Exception], ...]] = (redis.RedisError,)

    def __init__(self, url: str, group: str, idle: int = IDLE) -> None:
        parts = urlsplit(url)
        place, _, self.stream = parts.path.strip("/").rpartition("/")
        if not parts.netloc or not place.isdigit() or not self.stream:
            raise ValueError("must be redis://HOST:PORT/DB/STREAM")
        self._redis = redis.Redis.from_url(urlunsplit(parts._replace(path=f"/{place}")))
        self.dead = f"{self.stream}.dead"
        self._idle = idle
        self._group, self._member = group, f"{socket.gethostname()}-{os.getpid()}"
        try:
            self._redis.xgroup_create(self.stream, group, id="0", mkstream=True)
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    def fetch(self, most: int) -> Sequence[BrokerMessage]:
        """What a member that has gone left behind, or else what is new."""
        left: Any = self._redis.xautoclaim(self.stream, self._group, self._member, self._idle, count=most)
        entries = left[1]
        if not entries:
            replies: Any = self._redis.xreadgroup(
                self._group, self._member, {self.stream: ">"}, count=most, block=WAIT
            )
            entries = replies[0][1] if replies else []
        return [
            BrokerMessage(f"redis:{self.stream}:{id.decode()}", (fields or {}).get(b"event", b""), id)
            for id, fields in entries
        ]

    def done(self, messages: Sequence[BrokerMessage]) -> None:
        """Acknowledge them."""
        self._redis.xack(self.stream, self._group, *[message.handle for message in messages])

    def dead_letter(self, message: BrokerMessage, reason: str) -> None:
        """To `STREAM.dead`."""
        self._redis.xadd(self.dead, {"event": message.body, "message": message.id, "reason": reason})

    def publish(self, topic: str, body: bytes) -> None:
        """To another stream of the same database."""
        self._redis.xadd(topic, {"event": body})

    def close(self) -> None:
        """Close the connection; the group keeps what was not acknowledged."""
        self._redis.close()
