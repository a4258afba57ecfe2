"""One budget of memory: bodies are counted while they come, refused before they are read, and given back at their end."""

import contextlib
import json
import socket
import time
from pathlib import Path

import httpx
import pytest

from feedrank.service.contract.budget import ENDLESS, SMALL, Budget, available_memory, container_memory
from feedrank.service.contract.faults import MemoryFull

MIB = 2**20
SPEC = {"task": "multiclass", "algorithm": "predtron"}
PATIENCE = 60  # seconds within which what must happen happens, on a busy machine too


def test_leases_are_counted_and_given_back():
    budget = Budget(400)
    with budget.lease() as first, budget.lease() as second:
        first.resize(60)
        second.resize(30)
        second.resize(40)
        with pytest.raises(MemoryFull):
            second.resize(41)
        assert budget.flight == 100
        assert second.size == 40
        first.resize(10)
        second.resize(90)
    assert budget.flight == budget.large == 0
    assert budget.refused == 1


def test_large_leases_leave_room_for_small_ones():
    budget = Budget(64 * SMALL)  # a flight of 16, of which large ones may take 12
    with contextlib.ExitStack() as stack:
        leases = [stack.enter_context(budget.lease()) for _ in range(7)]
        for lease in leases[:6]:
            lease.resize(2 * SMALL)
        with pytest.raises(MemoryFull):
            leases[6].resize(SMALL + 1)
        leases[6].resize(SMALL)
        with pytest.raises(MemoryFull):
            leases[6].resize(2 * SMALL)
    assert (budget.flight, budget.large) == (0, 0)


def test_the_only_large_one_may_take_what_the_limit_allows():
    budget = Budget(8 * SMALL)
    with budget.lease() as small, budget.lease() as large:
        small.resize(SMALL)
        large.resize(5 * SMALL)
        large.resize(8 * SMALL)
        with pytest.raises(MemoryFull):
            large.resize(8 * SMALL + 1)


@pytest.mark.parametrize(
    ("own", "files", "limit"),
    [
        ("0::/\n", {"memory.max": "1048576"}, MIB),
        ("0::/\n", {"memory.max": "max"}, ENDLESS),
        ("0::/a/b\n", {"a/memory.max": "5000", "a/b/memory.max": "max"}, 5000),
        ("0::/a/b\n", {"a/memory.max": "5000", "a/b/memory.max": "9000"}, 5000),
        ("0::/host/path\n", {"memory.max": "7000"}, 7000),  # as inside a container without a namespace
        ("4:cpu,memory:/x\n3:cpuset:/\n", {"memory/x/memory.limit_in_bytes": "6000"}, 6000),
        ("4:memory:/docker/1f\n", {"memory/memory.limit_in_bytes": "8000"}, 8000),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712"}, ENDLESS),
        ("", {}, ENDLESS),
        ("not a group\n", {}, ENDLESS),
    ],
)
def test_the_limit_of_the_container_is_found(tmp_path, own, files, limit):
    for name, text in files.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    said = tmp_path / "cgroup"
    said.write_text(own)
    assert container_memory(tmp_path / "groups", said) == limit


def test_by_default_it_is_four_fifths_of_what_there_is(make_client):
    client = make_client()
    assert metric(client, "feedrank_memory_limit_bytes") == available_memory() > 64 * MIB


def metric(client, name):
    lines = client.get("/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name + " "))


def resident(process):
    text = Path(f"/proc/{process.process.pid}/status").read_text()
    return 1024 * int(text.split("VmRSS:")[1].split()[0])


def address(process):
    host, _, port = process.url.removeprefix("http://").partition(":")
    return host, int(port)


def send(connection, data):
    """All of it, or as much as is taken before the other side hangs up."""
    with contextlib.suppress(OSError):
        connection.sendall(data)


def head(path, length):
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n".encode()


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(scope="module")
def small(start_shared):
    """A server that has 128 MiB: 32 for what is on its way, of which large bodies may take 24."""
    process = start_shared(
        FEEDRANK_MEMORY="128m", FEEDRANK_BODY_TIMEOUT="600", FEEDRANK_REQUEST_TIMEOUT="600"
    )
    with process.client() as client:
        assert client.put("/v1/learners/a", json=SPEC).status_code == 201
    return process


PART = b"[" + b" " * MIB
CHUNK = b"%x\r\n%b\r\n" % (len(PART), PART)
OTHERS = (
    "/v1/learners/a/predict",
    "/v1/experiments/a/predict",
    "/v1/learners/b",
    "/at/a/personalizer/v1.0/rank",
)


@pytest.mark.parametrize("announced", [True, False])
def test_unfinished_bodies_take_no_more_than_the_budget(small, announced):
    with small.client() as client, contextlib.ExitStack() as stack:
        before, refused = resident(small), []
        waiting = []
        for number in range(60):
            connection = stack.enter_context(socket.create_connection(address(small), timeout=PATIENCE))
            waiting.append(connection)
            path = OTHERS[number % 2]
            send(connection, head(path, 8 * MIB if announced else None))
            for _ in range(4):
                send(connection, PART if announced else CHUNK)
        assert client.get("/livez").status_code == 200
        for connection in waiting:
            connection.settimeout(0.05)
            with contextlib.suppress(TimeoutError, ConnectionResetError):
                refused.append(connection.recv(65536))
        assert len(refused) >= 40
        replies = [reply for reply in refused if reply]
        assert replies
        for reply in replies:
            assert reply.startswith(b"HTTP/1.1 503 "), reply
            assert b"\r\nretry-after: " in reply.lower()
            assert json.loads(reply.partition(b"\r\n\r\n")[2])["type"] == "memory-full"
        assert resident(small) - before < 128 * MIB
        assert metric(client, "feedrank_flight_bytes") > 10 * MIB
        event = {"features": ["x"], "label": "y"}
        assert client.post("/v1/learners/a/feedback", json=event).status_code == 200, "small calls have room"
    with small.client() as client:
        until(lambda: metric(client, "feedrank_flight_bytes") == 0)
        large = {"features": {f"word-{i}": 1.0 for i in range(90_000)}, "remember": False}
        assert client.post("/v1/learners/a/predict", json=large).status_code == 200


def test_what_is_announced_is_refused_before_it_is_read(small):
    with small.client() as client, contextlib.ExitStack() as stack:
        for _ in range(3):
            connection = stack.enter_context(socket.create_connection(address(small), timeout=PATIENCE))
            send(connection, head(OTHERS[0], 8 * MIB))
            for _ in range(7):
                send(connection, PART)
        until(lambda: metric(client, "feedrank_flight_bytes") >= 21 * MIB)
        for path in OTHERS:
            method = b"PUT" if path.endswith("/b") else b"POST"
            with socket.create_connection(address(small), timeout=PATIENCE) as connection:
                # No byte of the body is ever sent, so the reply comes by the head alone.
                connection.sendall(method + head(path, 8 * MIB)[4:])
                reply = connection.recv(65536)
            assert reply.startswith(b"HTTP/1.1 503 "), (path, reply)
        assert client.get("/livez").status_code == 200


def test_lines_that_never_end_are_refused_one_by_one(small):
    with small.client() as client, contextlib.ExitStack() as stack:
        before = resident(small)
        streams = []
        for _ in range(40):
            connection = stack.enter_context(socket.create_connection(address(small), timeout=PATIENCE))
            streams.append(connection)
            send(connection, head("/v1/learners/a/stream", 100 * MIB))
            for _ in range(4):
                send(connection, b" " * MIB)
        until(lambda: metric(client, "feedrank_memory_refusals_total") > 0)
        assert resident(small) - before < 128 * MIB
        said = 0
        for connection in streams:
            connection.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                while b'"type":"memory-full"' not in (data := connection.recv(65536)):
                    assert data
                said += 1
                break
        assert said, "one of them was told"
        connection.settimeout(PATIENCE)
        connection.sendall(b'\n{"predict": {"features": ["x"]}}\n')  # the stream goes on
        while b'"ranking"' not in connection.recv(65536):
            pass
    with small.client() as client:
        until(lambda: metric(client, "feedrank_flight_bytes") == 0)


def test_a_stream_of_more_than_the_budget_goes_through(small):
    line = json.dumps({"feedback": {"features": {f"w{i}": 1.0 for i in range(300)}, "label": "x"}})
    lines = "\n".join([line] * 3_000).encode()  # 10 MB, 340 by the count of what is made of them
    with small.client() as client:
        until(lambda: metric(client, "feedrank_flight_bytes") == 0)  # what other tests sent is over
        reply = client.post("/v1/learners/a/stream", content=lines)
        results = [json.loads(one) for one in reply.text.splitlines()]
        assert len(results) == 3_000
        assert [result for result in results if "loss" not in result] == []
        until(lambda: metric(client, "feedrank_flight_bytes") == 0)


def test_learners_in_use_beyond_the_budget_are_not_joined_by_more(make_client, refused):
    client = make_client(memory=100_000)
    for name in "abcdefgh":
        assert client.put(f"/v1/learners/{name}", json=SPEC).status_code in (201, 503)
    host = client.app.state.host
    learner = host._memory.loaded(next(iter(host._memory.keys())))
    learner.users, host._memory.bytes = learner.users + 1, host._memory.bytes + 200_000
    names = [entry["name"] for entry in client.get("/v1/learners").json()["learners"]]
    other = next(name for name in names if name != learner.entry.name)
    reply = client.get(f"/v1/learners/{other}")
    refused(reply, 503, "memory-full")
    assert reply.headers["retry-after"]
    assert client.get(f"/v1/learners/{learner.entry.name}").status_code == 200
    learner.users, host._memory.bytes = learner.users - 1, host._memory.bytes - 200_000
    assert client.get(f"/v1/learners/{other}").status_code == 200


def test_a_reply_to_a_large_batch_is_counted(make_client):
    client = make_client()
    client.put("/v1/learners/a", json=SPEC)
    budget, sizes = client.app.state.host.budget, []
    own = budget.lease

    def watched():
        lease = own()
        sizes.append(lease)
        return lease

    budget.lease = watched
    labels = [{"features": ["x"], "label": f"l{i}"} for i in range(200)]
    assert client.post("/v1/learners/a/feedback", json={"events": labels}).status_code == 200
    many = {"instances": [{"features": ["x"]}] * 200, "remember": False}
    assert client.post("/v1/learners/a/predict", json=many).status_code == 200
    assert budget.flight == 0
    budget.limit = budget.share = 1_000_000  # 200 times 200 entries need more
    reply = client.post("/v1/learners/a/predict", json=many)
    assert (reply.status_code, reply.json()["type"]) == (503, "memory-full")
    assert budget.flight == 0


def test_a_client_that_waits_to_be_asked_is_not_asked(small):
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            connection = stack.enter_context(socket.create_connection(address(small), timeout=PATIENCE))
            send(connection, head(OTHERS[0], 8 * MIB) + PART * 7)
        with small.client() as client:
            until(lambda: metric(client, "feedrank_flight_bytes") >= 21 * MIB)
        connection = stack.enter_context(socket.create_connection(address(small), timeout=PATIENCE))
        connection.sendall(head(OTHERS[0], 8 * MIB)[:-2] + b"Expect: 100-continue\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 503 ")
    assert httpx.get(f"{small.url}/livez", trust_env=False).status_code == 200
