"""`feedrank ingest`: learn from a Kafka topic, a Redis stream or a NATS JetStream, each event once."""

from __future__ import annotations

import importlib
import signal
import sys
from typing import Annotated, Any

import typer

from .connection import Key, Server, Store, service
from .exceptions import ClientError
from .ingest.pump import BATCH, Pump

app = typer.Typer(add_completion=False)

# scheme: (module, class, the extra it needs)
SOURCES = {
    "kafka": ("kafka_source", "KafkaSource", "kafka"),
    "redis": ("redis_source", "RedisSource", "service"),
    "nats": ("nats_source", "NatsSource", "nats"),
}


@app.command()
def ingest(
    url: Annotated[
        str,
        typer.Argument(
            help="kafka://HOST:PORT/TOPIC, redis://HOST:PORT/DB/STREAM or nats://HOST:PORT/STREAM"
        ),
    ],
    learner: Annotated[str, typer.Option(help="the learner's name")],
    group: Annotated[str, typer.Option(help="members of one group share the messages")] = "feedrank",
    publish: Annotated[str | None, typer.Option(help="topic for predictions and outcomes")] = None,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="messages sent together")] = BATCH,
    drain: Annotated[bool, typer.Option("--drain", help="stop when nothing is left")] = False,
    option: Annotated[
        list[str] | None, typer.Option(help="a setting of the Kafka client, `name=value`: TLS, SASL, ...")
    ] = None,
    server: Server = None,
    store: Store = None,
    key: Key = None,
) -> None:
    """Learn from events where they are: each message once, in the order of its partition, refused ones kept aside."""
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        source = open_source(url, group, option or [])
        try:
            with service(server, store, key) as client:
                client.learner(learner)
                print(f"reading {url} into {learner}", flush=True)
                pump = Pump(client, learner, source, publish, batch)
                counts = pump.run(lambda: stopped, drain=drain)
        finally:
            source.close()
    except (ClientError, OSError, ValueError) as error:
        print(f"feedrank ingest: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    print(
        f"{counts.learned} learned, {counts.predicted} predicted, {counts.duplicates} known already, "
        f"{counts.refused} refused"
    )


def open_source(url: str, group: str, options: list[str]) -> Any:
    """The source of a URL; ValueError with what to do if there is none."""
    scheme = url.partition("://")[0]
    if scheme not in SOURCES:
        raise ValueError(f"{url!r} must start with {', '.join(f'{name}://' for name in SOURCES)}")
    module, name, extra = SOURCES[scheme]
    try:
        kind = getattr(importlib.import_module(f"feedrank.clients.ingest.{module}"), name)
    except ModuleNotFoundError as error:
        raise ValueError(f"{scheme} needs {error.name}; run: pip install 'feedrank[{extra}]'") from None
    if scheme != "kafka":
        if options:
            raise ValueError("--option goes with kafka://")
        return kind(url, group)
    pairs = [option.partition("=") for option in options]
    return kind(url, group, {name: value for name, _, value in pairs})
