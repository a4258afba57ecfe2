"""`feedrank ingest`: learn from a Kafka topic, a Redis stream or a NATS JetStream, each event once."""

from __future__ import annotations

import importlib
import signal
import sys
from contextlib import closing
from typing import Annotated, Any

import typer

from .client import Client
from .connection import with_client
from .ingest.pump import BATCH, Pump

app = typer.Typer(add_completion=False)

# scheme: (module, class, the extra it needs)
SOURCES = {
    "kafka": ("kafka_source", "KafkaSource", "kafka"),
    "redis": ("redis_source", "RedisSource", "service"),
    "nats": ("nats_source", "NatsSource", "nats"),
}


@app.command()
@with_client("ingest", ValueError)
def ingest(
    client: Client,
    url: Annotated[
        str,
        typer.Argument(
            help="kafka://HOST:PORT/TOPIC, redis://HOST:PORT/DB/STREAM or nats://HOST:PORT/STREAM"
        ),
    ],
    learner: Annotated[str, typer.Option(help="the learner's name")],
    group: Annotated[
        str, typer.Option(help="consumer group: processes with the same group share the messages")
    ] = "feedrank",
    publish: Annotated[str | None, typer.Option(help="topic to send the replies to")] = None,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="messages sent together")] = BATCH,
    drain: Annotated[bool, typer.Option("--drain", help="stop when all messages are read")] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(help="setting of the Kafka client, `name=value`, for TLS, SASL, ...; may be repeated"),
    ] = None,
) -> None:
    """Learn from the messages of a broker, each once; refused messages go to a dead-letter topic."""
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    kind = source_of(url)
    client.learner(learner)
    try:
        with closing(opened(kind, url, group, option or [])) as source:
            print(f"reading {url} into {learner}", flush=True)
            pump = Pump(
                client, learner, source, publish, batch, note=lambda text: print(text, file=sys.stderr)
            )
            counts = pump.run(lambda: stopped, drain=drain)
    except kind.errors as error:
        raise ValueError(f"the broker of {url} failed: {error or type(error).__name__}") from error
    print(
        f"{counts.learned} learned, {counts.predicted} predicted, {counts.duplicates} known already, "
        f"{counts.refused} refused" + (f" and kept in {source.dead}" if counts.refused else "")
    )


def source_of(url: str) -> Any:
    """The kind of source that a URL names; ValueError with what to do if there is none."""
    scheme = url.partition("://")[0]
    if scheme not in SOURCES:
        raise ValueError(f"{url!r} must start with {', '.join(f'{name}://' for name in SOURCES)}")
    module, name, extra = SOURCES[scheme]
    try:
        return getattr(importlib.import_module(f"feedrank.clients.ingest.{module}"), name)
    except ModuleNotFoundError as error:
        raise ValueError(f"{scheme} needs {error.name}; run: pip install 'feedrank[{extra}]'") from None


def opened(kind: Any, url: str, group: str, options: list[str]) -> Any:
    """A source; settings are Kafka's."""
    if not options:
        return kind(url, group)
    if not url.startswith("kafka://"):
        raise ValueError("--option goes with kafka://")
    pairs = [option.partition("=") for option in options]
    return kind(url, group, {name: value for name, _, value in pairs})
