"""The shipped proxy finds replicas by their names: they get other addresses, come late and go, under a real nginx."""

import shutil
import socket
import subprocess

import httpx
import pytest
from name_server import NameServer
from nginx_proxy import configure
from ports import free_port
from waiting import until

NAMES = ("replica-a", "replica-b")
LEARNERS = [f"learner-{i}" for i in range(12)]

pytestmark = pytest.mark.skipif(
    shutil.which("nginx") is None, reason="no nginx: `apt-get install nginx-light` to test the proxy"
)


class Network:
    """Replicas with names, behind nginx. Each runs at an address of its own on loopback, all on one port."""

    def __init__(self, folder, start, redis):
        self.folder, self.start, self.redis = folder, start, redis
        self.inner = free_port()  # of every replica: what changes is the address
        self.port = free_port()
        self.dns = NameServer({})
        self.running, self._next = {}, 2
        command = configure(
            folder, str(self.port), [f"{n}:{self.inner}" for n in NAMES], dns=self.dns.address
        )
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=600, trust_env=False)

    def run(self, name):
        """Start a replica under a name, at an address that it never had."""
        address, self._next = f"127.0.0.{self._next}", self._next + 1
        self.running[name] = self.start(port=self.inner, store=self.redis.url, FEEDRANK_HOST=address)
        self.dns.names[name] = address

    def end(self, name):
        self.running.pop(name).kill()

    def teach(self, name, event):
        body = {"features": ["a"], "label": "x", "feedback_id": event}

        def learned():
            assert self.process.poll() is None, (self.folder / "error.log").read_text()
            reply = self.client.post(f"/v1/learners/{name}/feedback", json=body)
            return reply.status_code == 200 and reply.json()

        return until(learned, f"{name} did not learn", not_yet=httpx.HTTPError, pause=0.1)

    def stop(self):
        self.client.close()
        self.process.terminate()
        self.process.wait()
        self.dns.stop()


@pytest.fixture
def network(tmp_path, start, own_redis):
    made = Network(tmp_path, start, own_redis)
    yield made
    made.stop()


def folded(process):
    with process.client() as client:
        lines = client.get("/metrics").text.splitlines()
    return int(float(next(line.split()[1] for line in lines if line.startswith("feedrank_loaded_learners "))))


def test_the_proxy_starts_before_its_replicas_have_names_and_finds_them_under_new_addresses(network):
    # Nothing resolves yet: it runs, and says that nobody answers.
    until(lambda: network.client.get("/livez").status_code == 502, not_yet=httpx.HTTPError)
    network.run("replica-a")
    until(lambda: network.client.get("/livez").status_code == 200)
    for name in LEARNERS:
        made = network.client.put(f"/v1/learners/{name}", json={"task": "multiclass"})
        assert made.status_code == 201, made.text
        assert network.teach(name, "1")["version"] == 1
    network.run("replica-b")

    def share():
        for name in LEARNERS:
            network.teach(name, "1")
        return folded(network.running["replica-b"])

    until(share, "the second replica gets no learners")
    for turn in range(2, 5):
        for name in NAMES:
            network.end(name)
            network.run(name)
            until(share if name == "replica-b" else lambda: folded(network.running["replica-a"]) or share())
        for name in LEARNERS:
            assert network.teach(name, str(turn))["version"] == turn


def test_what_did_not_arrive_goes_to_the_other_replica_with_its_body(network):
    for name in NAMES:
        network.run(name)
    until(lambda: network.client.get("/livez").status_code == 200, not_yet=httpx.HTTPError)
    for name in LEARNERS:
        assert network.client.put(f"/v1/learners/{name}", json={"task": "multiclass"}).status_code in (
            200,
            201,
        )
    network.end("replica-a")
    # Each is asked once: no reply is an error, whichever replica it was meant for.
    for name in LEARNERS:
        body = {"features": {f"feature-{i}": i for i in range(500)}, "label": "x", "feedback_id": "1"}
        reply = network.client.post(f"/v1/learners/{name}/feedback", json=body)
        assert (reply.status_code, reply.json()["version"]) == (200, 1), reply.text


def test_a_reply_that_breaks_off_is_not_asked_for_twice(tmp_path, network):
    """What may have arrived is not sent to the second replica: its client repeats it under its id."""
    counts = []
    listener = socket.create_server(("127.0.0.9", network.inner))
    listener.settimeout(1)
    network.dns.names.update(dict.fromkeys(NAMES, "127.0.0.9"))
    sent = b'{"features": ["a"], "label": "x"}'
    with socket.create_connection(("127.0.0.1", network.port), timeout=600) as client:
        head = b"POST /v1/learners/one/feedback HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        client.sendall(head % len(sent) + sent)
        connection, _ = listener.accept()
        while not connection.recv(65536).endswith(sent):
            pass
        connection.close()
        counts.append(client.recv(65536).split()[1])
    with pytest.raises(TimeoutError):
        listener.accept()
    listener.close()
    assert counts == [b"502"]
