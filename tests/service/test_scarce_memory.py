"""A server whose memory runs out for real, by a limit on its addresses: it lives, refuses with 503, and loses nothing."""

import resource
import signal
import subprocess
import sys
import threading

import httpx
import pytest

FEEDRANK = (sys.executable, "-c", "from feedrank.cli import main; main()")
SPEC = {"task": "multiclass", "algorithm": "predtron"}
ROOM = 250 * 2**20  # each thread takes 64 MiB of addresses for itself
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

pytestmark = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no prlimit here")


def size(process):
    """Bytes of addresses that a process has."""
    with open(f"/proc/{process.pid}/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def test_a_server_without_memory_replies_503_and_lives(tmp_path):
    log = tmp_path / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*FEEDRANK, "serve", "--port", "0", "--store", f"sqlite:{tmp_path / 'a.db'}"],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        line = process.stdout.readline()
        assert "ready on " in line, log.read_text()
        url = line.split("ready on ")[1].split()[0]
        statuses, kept = [], []

        def call(worker):
            with httpx.Client(base_url=url, timeout=600, trust_env=False) as client:
                for i in range(200):
                    names = {f"w{worker}-{i}-{j}": 1.0 for j in range(2000)}
                    event = {"features": names, "label": f"l{i}", "feedback_id": f"{worker}-{i}"}
                    try:
                        reply = client.post("/v1/learners/a/feedback", json=event)
                        statuses.append(reply.status_code)
                        if reply.status_code == 200:
                            kept.append(event)
                        else:
                            assert reply.headers["retry-after"]
                        asked = {"features": names, "remember": i % 2 == 0}
                        reply = client.post("/v1/learners/a/predict", json=asked)
                        statuses.append(reply.status_code)
                        statuses.append(client.get("/v1/learners/a").status_code)
                    except httpx.TransportError:
                        statuses.append("broken")

        with httpx.Client(base_url=url, timeout=600, trust_env=False) as client:
            assert client.put("/v1/learners/a", json=SPEC).status_code == 201
            first = {"features": {"x": 1.0}, "label": "l0"}
            assert client.post("/v1/learners/a/feedback", json=first).status_code == 200
            most = size(process) + ROOM
            resource.prlimit(process.pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
            threads = [threading.Thread(target=call, args=(n,)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert process.poll() is None, (process.returncode, log.read_text()[-2000:])
            assert 503 in statuses, set(statuses)
            assert set(statuses) <= {200, 503}, {one: statuses.count(one) for one in set(statuses)}
            resource.prlimit(process.pid, resource.RLIMIT_AS, UNLIMITED)
            assert client.get("/v1/learners/a").json()["version"] >= len(kept) + 1
            for event in kept:
                reply = client.post("/v1/learners/a/feedback", json=event)
                assert (reply.status_code, reply.json()["duplicate"]) == (200, True)
            assert client.get("/readyz").status_code == 200
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(600)
        process.stdout.close()
