"""The server as a process: one line when ready, one line when it cannot start, nothing lost when it stops."""

import socket
import subprocess
import sys
import threading

import pytest
from waiting import until

SPEC = {"task": "multiclass", "algorithm": "predtron"}
FEEDBACK = "/v1/learners/mail/feedback"


def test_ready_line_names_the_address_and_a_curl_line(start):
    process = start()
    assert process.url.startswith("http://127.0.0.1:")
    assert "curl -X PUT" in process.line
    with process.client() as client:
        assert client.get("/readyz").status_code == 200
        assert "server" not in client.get("/livez").headers
    status, errors = process.stop()
    assert status == 0
    assert errors == ""


def test_environment_sets_the_address(start, free_tcp_port):
    process = start(port=free_tcp_port)
    assert process.url == f"http://127.0.0.1:{free_tcp_port}"


def test_learners_survive_a_stop_and_a_kill(start):
    process = start()
    with process.client() as client:
        client.put("/v1/learners/mail", json=SPEC)
        client.post(FEEDBACK, json={"features": ["a"], "label": "x"})
    process.stop()
    process = start()
    with process.client() as client:
        assert client.post(FEEDBACK, json={"features": ["b"], "label": "y"}).json()["version"] == 2
        identity = client.post("/v1/learners/mail/predict", json={"features": ["b"]}).json()["prediction_id"]
    process.kill()
    process = start()
    with process.client() as client:
        reply = client.post(FEEDBACK, json={"prediction_id": identity, "label": "y"}).json()
        assert (reply["version"], reply["served_loss"]) == (3, 0)
        assert client.get("/v1/learners/mail").json()["labels"] == ["x", "y"]


def test_no_request_is_cut_by_a_stop(start):
    process = start()
    with process.client() as client:
        client.put("/v1/learners/mail", json=SPEC)
    answered, cut = [], []
    stopping = threading.Event()

    def send(worker):
        with process.client() as client:
            for i in range(100_000):
                try:
                    reply = client.post(
                        FEEDBACK, json={"features": ["a"], "label": "x", "feedback_id": f"{worker}-{i}"}
                    )
                except Exception as error:
                    # Once the stop has begun, a new connection is refused and an idle one is closed; a cut reply is not.
                    if not stopping.is_set() or "incomplete" in str(error):
                        cut.append(error)
                    return
                answered.append(reply.json()["version"])

    workers = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    until(lambda: len(answered) >= 40 or cut)
    stopping.set()
    status, _ = process.stop()
    for worker in workers:
        worker.join()
    assert (status, cut) == (0, [])
    again = start()
    with again.client() as client:
        assert client.get("/v1/learners/mail").json()["version"] >= max(answered)


@pytest.mark.parametrize("case", ["port", "folder", "foreign", "keys"])
def test_what_cannot_start_says_so_in_one_line(tmp_path, case):
    taken = socket.create_server(("127.0.0.1", 0))
    port, store, environ = "0", tmp_path / "x.db", {}
    if case == "port":
        port, reply = str(taken.getsockname()[1]), "cannot listen"
    elif case == "folder":
        (tmp_path / "file").touch()
        store, reply = tmp_path / "file" / "x.db", "cannot"
    elif case == "foreign":
        store.write_bytes(b"this is not a database, but a text\n" * 100)
        reply = ""
    else:
        file = tmp_path / "keys"
        file.write_text("not a key\n")
        environ, reply = {"FEEDRANK_KEYS_FILE": str(file)}, "line 1 of the keys file"
    before = store.read_bytes() if store.exists() else None
    command = [sys.executable, "-m", "feedrank.cli", "serve", "--port", port, "--store", f"sqlite:{store}"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, env=environ or None
    )
    taken.close()
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("feedrank: ")
    assert reply in done.stderr
    assert done.stderr.count("\n") == 1
    if before is not None:
        assert store.read_bytes() == before


def test_a_large_body_is_refused_before_it_is_sent(start):
    process = start(FEEDRANK_MAX_BODY="64k")
    with process.client() as client:
        client.put("/v1/learners/mail", json=SPEC)
    host, port = process.url.removeprefix("http://").split(":")
    head = "POST /v1/learners/mail/predict HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n"
    for length in ("Content-Length: 99999999999", "Transfer-Encoding: chunked"):
        with socket.create_connection((host, int(port)), timeout=600) as connection:
            connection.sendall(head.format(length).encode())
            if "chunked" in length:
                connection.sendall(b"14000\r\n" + b" " * 0x14000 + b"\r\n")
            reply = b""
            while part := connection.recv(65536):
                reply += part
        assert reply.startswith(b"HTTP/1.1 413")
        assert b"application/problem+json" in reply
