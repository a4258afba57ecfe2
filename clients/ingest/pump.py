"""The loop of `feedrank ingest`: read a batch, send it as one stream, forward refused messages, then acknowledge.

A broker delivers at least once. A message's feedback id is its place in the topic, so that one which comes again, after a
crash, a rebalance or from offset 0, changes nothing: effectively once. Nothing is acknowledged before the service has
replied, and nothing is read while it has not: that is the back-pressure.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

from ..client import Client
from ..exceptions import ClientError, Refused
from ..payloads import JSON
from ..replies import Outcome, Prediction

BATCH = 500
SHOWN = 5  # refusals that are said at once; all are kept with their reason
PERMANENT = frozenset({404, 409, 410, 413, 422})  # sent again, it would be refused again


@dataclass(frozen=True, slots=True)
class BrokerMessage:
    """One message: `id` is its place (topic, partition and offset), `handle` what the broker knows it by."""

    id: str
    body: bytes
    handle: Any = None


class BrokerSource(Protocol):
    """A broker's topic, read by one member of a group.

    `dead` names where refused messages go, `errors` is what its library raises when the broker fails.
    """

    dead: str
    errors: ClassVar[tuple[type[Exception], ...]]

    def fetch(self, most: int) -> Sequence[BrokerMessage]:
        """The next messages, at most so many; none if there are none within about a second."""

    def done(self, messages: Sequence[BrokerMessage]) -> None:
        """All of them have been dealt with: the group will not be given them again."""

    def dead_letter(self, message: BrokerMessage, reason: str) -> None:
        """Keep a message that was refused, with the reason, where an operator finds it."""

    def publish(self, topic: str, body: bytes) -> None:
        """Send to another topic."""

    def close(self) -> None: ...


@dataclass(slots=True)
class IngestCounts:
    """What went through."""

    learned: int = 0
    predicted: int = 0
    duplicates: int = 0
    refused: int = 0


class Pump:
    """From a source to a learner; replies go to the topic `publish` if one is named."""

    def __init__(
        self,
        client: Client,
        learner: str,
        source: BrokerSource,
        publish: str | None = None,
        batch: int = BATCH,
        sleep: Callable[[float], None] = time.sleep,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.counts = IngestCounts()
        self._client, self._learner, self._source = client, learner, source
        self._publish, self._batch, self._sleep, self._note = publish, batch, sleep, note

    def run(self, until: Callable[[], bool] = lambda: False, *, drain: bool = False) -> IngestCounts:
        """Go on until stopped, or with `drain` until nothing is left."""
        while not until():
            if not self.step() and drain:
                break
        return self.counts

    def step(self) -> int:
        """One batch; how many messages there were."""
        messages = self._source.fetch(self._batch)
        if messages:
            self._send(messages)
            self._source.done(messages)
        return len(messages)

    def _send(self, messages: Sequence[BrokerMessage]) -> None:
        lines: list[tuple[BrokerMessage, JSON]] = []
        for message in messages:
            try:
                lines.append((message, line_of(message)))
            except ValueError as error:
                self._refuse(message, str(error))
        pause = 0.5
        while lines:
            lines = self._try(lines)
            if lines:  # the service is not there: wait, and send the rest again
                self._sleep(pause)
                pause = min(2 * pause, 30.0)

    def _try(self, lines: list[tuple[BrokerMessage, JSON]]) -> list[tuple[BrokerMessage, JSON]]:
        """Send them; those that must be sent again."""
        again = []
        replies = self._client.stream(self._learner, [line for _, line in lines])
        answered = 0
        try:
            for (message, line), reply in zip(lines, replies, strict=True):
                answered += 1
                if not isinstance(reply, Refused):
                    self._count(message, reply)
                elif reply.status in PERMANENT:
                    self._refuse(message, str(reply))
                else:
                    again.append((message, line))
        except Refused as error:
            if error.status not in (429, 500, 502, 503, 504):
                raise  # the learner is not there, or the key is wrong: no message can go through
            again += lines[answered:]
        except ClientError:
            again += lines[answered:]
        return again

    def _count(self, message: BrokerMessage, reply: Outcome | Prediction) -> None:
        if isinstance(reply, Prediction):
            self.counts.predicted += 1
        elif reply.duplicate:
            self.counts.duplicates += 1
        else:
            self.counts.learned += 1
        if self._publish is not None:
            self._source.publish(self._publish, json.dumps({"message": message.id, **asdict(reply)}).encode())

    def _refuse(self, message: BrokerMessage, reason: str) -> None:
        self.counts.refused += 1
        self._source.dead_letter(message, reason)
        if self.counts.refused <= SHOWN:
            self._note(f"{message.id} is refused and kept in {self._source.dead}: {reason}")


def line_of(message: BrokerMessage) -> JSON:
    """The stream's line of a message: a feedback body, or `{"predict": ...}` or `{"feedback": ...}`; else ValueError."""
    if not message.body:
        raise ValueError("has no content; in a Redis stream the event is JSON in the field `event`")
    try:
        body = json.loads(message.body)
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ValueError("must be an object")
    if body.keys() == {"predict"} and isinstance(body["predict"], dict):
        return {"predict": {"prediction_id": message.id, **body["predict"]}}
    if body.keys() == {"feedback"} and isinstance(body["feedback"], dict):
        body = body["feedback"]
    return {"feedback": {"feedback_id": message.id, **body}}
