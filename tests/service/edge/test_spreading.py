"""Learners spread over replicas by a proxy that people run already: a real nginx, three replicas, one Redis."""

import shutil
import signal
import subprocess

import httpx
import pytest
from nginx_proxy import configure
from ports import free_port
from waiting import until

LEARNERS = [f"learner-{i}" for i in range(30)]


class Proxy:
    """A running nginx before replicas on these ports."""

    def __init__(self, folder, ports):
        self.folder, self.port = folder, free_port()
        self.places = {}
        self.process = subprocess.Popen(
            self.configure(ports), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=600, trust_env=False)
        self.wait(lambda: self.client.get("/livez").status_code == 200)

    def configure(self, ports):
        places = [self.places.setdefault(port, free_port()) for port in ports]
        return configure(self.folder, str(self.port), [f"127.0.0.1:{port}" for port in ports], ports=places)

    def reload(self, ports):
        self.configure(ports)
        self.process.send_signal(signal.SIGHUP)

    def wait(self, condition):
        until(lambda: self.runs() and condition(), not_yet=httpx.HTTPError)

    def runs(self):
        assert self.process.poll() is None, (self.folder / "error.log").read_text()
        return True

    def stop(self):
        self.client.close()
        self.process.terminate()
        self.process.wait()


@pytest.fixture
def replicas(own_redis, tmp_path, start):
    if shutil.which("nginx") is None:
        pytest.skip("no nginx: `apt-get install nginx-light` to test the proxy")
    processes = [start(store=own_redis.url) for _ in range(3)]
    proxy = Proxy(tmp_path, [port_of(process) for process in processes])
    yield proxy, processes
    proxy.stop()


def port_of(process):
    return int(process.url.rsplit(":", 1)[1])


def loaded(process):
    with process.client() as client:
        lines = client.get("/metrics").text.splitlines()
    return int(float(next(line.split()[1] for line in lines if line.startswith("feedrank_loaded_learners "))))


def teach(proxy, name, event):
    body = {"features": ["a"], "label": "x", "feedback_id": event}

    def learned():
        reply = proxy.client.post(f"/v1/learners/{name}/feedback", json=body)
        return reply.status_code == 200 and reply.json()

    return until(learned, f"{name} did not learn", not_yet=httpx.HTTPError)


def test_each_learner_lives_in_one_replica_and_the_others_take_over_when_it_dies(replicas, own_redis, start):
    proxy, processes = replicas
    for name in LEARNERS:
        assert proxy.client.put(f"/v1/learners/{name}", json={"task": "multiclass"}).status_code == 201
        assert teach(proxy, name, "1")["version"] == 1
    counts = [loaded(process) for process in processes]
    assert sum(counts) == len(LEARNERS)
    assert min(counts) > 0

    processes[0].kill()
    for name in LEARNERS:
        assert teach(proxy, name, "2")["version"] == 2
        assert proxy.client.get(f"/v1/learners/{name}").json()["version"] == 2

    processes.append(start(store=own_redis.url))
    proxy.reload([port_of(process) for process in processes[1:]])
    proxy.wait(lambda: loaded(processes[-1]) > 0 or not [teach(proxy, name, "2") for name in LEARNERS])
    for name in LEARNERS:
        teach(proxy, name, "3")
        assert proxy.client.get(f"/v1/learners/{name}").json()["version"] == 3
    assert loaded(processes[-1]) > 0


def test_while_a_replica_is_frozen_its_learners_are_answered_by_others(replicas):
    proxy, processes = replicas
    for name in LEARNERS:
        proxy.client.put(f"/v1/learners/{name}", json={"task": "multiclass"})
        teach(proxy, name, "1")
    processes[0].process.send_signal(signal.SIGSTOP)
    try:
        for name in LEARNERS:
            reply = proxy.client.post(
                f"/v1/learners/{name}/predict", json={"features": ["a"], "remember": False}
            )
            assert reply.status_code == 200, reply.text
            assert reply.json()["version"] == 1
            assert teach(proxy, name, "2")["version"] == 2
    finally:
        processes[0].process.send_signal(signal.SIGCONT)
    # What comes back reads what it missed before it answers.
    with processes[0].client() as client:
        for name in LEARNERS:
            body = {"features": ["a"], "min_version": 2}
            assert client.post(f"/v1/learners/{name}/predict", json=body).json()["version"] == 2
