"""A Kafka topic: `kafka://HOST:PORT,HOST:PORT/TOPIC`.

confluent-kafka, because it wraps librdkafka, the client that the brokers' makers keep, and
carries a mock cluster to test with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from urllib.parse import urlsplit

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from ..payloads import Payload
from .pump import BrokerMessage

WAIT = 1.0  # seconds for a batch
FIRST = 15.0  # seconds for the first answer of a broker
CRITICAL = 2  # of syslog's levels
# How the settings begin that a producer does not know: it would warn of each.
READING = (
    "auto.offset.",
    "fetch.",
    "group.",
    "heartbeat.",
    "isolation.",
    "max.poll.",
    "partition.assignment.",
    "session.",
)


class KafkaSource:
    """One member of a consumer group; what is refused goes to `TOPIC.dead`, with the reason as a header."""

    errors: ClassVar[tuple[type[Exception], ...]] = (KafkaException,)

    def __init__(self, url: str, group: str, options: Payload | None = None) -> None:
        parts = urlsplit(url)
        self.topic = parts.path.strip("/")
        if not parts.netloc or not self.topic:
            raise ValueError("must be kafka://HOST:PORT/TOPIC")
        self.dead = f"{self.topic}.dead"
        # librdkafka would print a line for every attempt to connect, many a second.
        common = {"bootstrap.servers": parts.netloc, "log_level": CRITICAL, **(options or {})}
        self._consumer = Consumer(
            common | {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        )
        writing = {name: value for name, value in common.items() if not name.startswith(READING)}
        self._producer = Producer(writing | {"enable.idempotence": True})
        self._lost: KafkaError | None = None
        self._consumer.list_topics(timeout=FIRST)  # raises where no broker answers
        self._consumer.subscribe([self.topic])

    def fetch(self, most: int) -> Sequence[BrokerMessage]:
        """The next messages of the partitions that are ours."""
        batch = []
        for message in self._consumer.consume(most, WAIT):
            error = message.error()
            if error is not None:
                if error.fatal():
                    raise KafkaException(error)
                continue  # a broker or partition that is not there yet: librdkafka tries again
            place = f"kafka:{message.topic()}:{message.partition()}:{message.offset()}"
            batch.append(BrokerMessage(place, message.value() or b"", message))
        return batch

    def done(self, messages: Sequence[BrokerMessage]) -> None:
        """Commit behind the last message of each partition, after what was published has arrived."""
        self._producer.flush()
        if self._lost is not None:
            # A refused message that is kept nowhere must not be committed: whoever starts again reads it again.
            raise KafkaException(self._lost)
        last: dict[int, int] = {}
        for message in messages:
            partition = message.handle.partition()
            last[partition] = max(last.get(partition, 0), message.handle.offset() + 1)
        offsets = [TopicPartition(self.topic, partition, offset) for partition, offset in last.items()]
        self._consumer.commit(offsets=offsets, asynchronous=False)

    def dead_letter(self, message: BrokerMessage, reason: str) -> None:
        """To `TOPIC.dead`."""
        self._produce(self.dead, message.body, {"reason": reason.encode(), "message": message.id.encode()})

    def publish(self, topic: str, body: bytes) -> None:
        """To another topic of the same brokers; sent in the background, waited for by `done`."""
        self._produce(topic, body, {})

    def _produce(self, topic: str, body: bytes, headers: dict[str, str | bytes | None]) -> None:
        while True:
            try:
                self._producer.produce(topic, body, headers=headers, on_delivery=self._delivered)
                break
            except BufferError:
                self._producer.poll(0.1)
        self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: object) -> None:
        self._lost = self._lost or error

    def close(self) -> None:
        """Leave the group."""
        self._producer.flush(10)
        self._consumer.close()
