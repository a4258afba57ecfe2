"""Clients of other languages make the calls as they do by themselves: upgrades offered, chunks, kept connections.

Each makes a learner, teaches it one event twice, predicts with a large body in chunks, and asks for what is not there.
A client that is not on this machine is left out.
"""

import json
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole
PARTS = Path(__file__).parents[2] / "parts"
EVENT = {"features": ["a"], "label": "x", "feedback_id": "1"}
PREDICT = json.dumps({"features": ["a"], "remember": False}) + " " * 4_000_000
NODE = """
const [base, http] = [process.argv[1], await import("node:http")];
const agent = new http.Agent({ keepAlive: true });
// Without a length Node sends chunks.
const call = (method, path, body, first) => new Promise((resolve, reject) => {
  const request = http.request(base + path, { method, agent, headers: { "Content-Type": "application/json" } }, (reply) => {
    let text = "";
    reply.setEncoding("utf8").on("data", (part) => (text += part)).on("end", () => resolve(`${reply.statusCode} ${text}`));
  }).on("error", reject);
  if (first) request.write(first);
  request.end(body);
});
const event = JSON.stringify({ features: ["a"], label: "x", feedback_id: "1" });
console.log(await call("PUT", "/v1/learners/node", '{"task": "multiclass"}'));
console.log(await call("POST", "/v1/learners/node/feedback", event));
console.log(await call("POST", "/v1/learners/node/feedback", event));
console.log(await call("POST", "/v1/learners/node/predict", " ".repeat(4e6), '{"features": ["a"], "remember": false}'));
console.log(await call("GET", "/v1/learners/nobody"));
"""


@pytest.fixture(scope="module")
def url(start_shared):
    return start_shared().url


def run(*command, text=None):
    done = subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def judged(lines):
    """What every client must have got, as `status body` a line, each with the line end of the reply."""
    replies = [(int(line.split(" ", 1)[0]), json.loads(line.split(" ", 1)[1])) for line in lines if line]
    assert [status for status, _ in replies] == [201, 200, 200, 200, 404], replies
    assert replies[1][1]["version"] == replies[2][1]["version"] == 1
    assert replies[3][1]["label"] == "x"
    assert replies[4][1]["status"] == 404


@pytest.mark.skipif(shutil.which("java") is None, reason="no java")
def test_the_client_of_the_jdk(url):
    judged(run("java", "-XX:TieredStopAtLevel=1", PARTS / "ForeignClient.java", url).splitlines())


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_node(url):
    judged(run("node", "--input-type=module", "--eval", NODE, url).splitlines())


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
@pytest.mark.parametrize("version", ["--http1.0", "--http1.1", "--http2"])  # 2: by an upgrade that is offered
def test_curl(url, version):
    name = f"curl{version}"

    def call(method, path, body=None, *more):
        data = ["--data-binary", "@-"] if body is not None else []
        head = ["-H", "Content-Type: application/json", *more]
        command = ["curl", "-sS", "--noproxy", "*", version, "-w", "\n%{http_code}", "-X", method]
        text, status = run(*command, *head, *data, url + path, text=body).rsplit("\n", 1)
        return f"{status} {text}"

    chunked = [] if version == "--http1.0" else ["-H", "Transfer-Encoding: chunked"]
    judged(
        [
            call("PUT", f"/v1/learners/{name}", '{"task": "multiclass"}'),
            call("POST", f"/v1/learners/{name}/feedback", json.dumps(EVENT)),
            call("POST", f"/v1/learners/{name}/feedback", json.dumps(EVENT), "-H", "Expect: 100-continue"),
            call("POST", f"/v1/learners/{name}/predict", PREDICT, *chunked),
            call("GET", "/v1/learners/nobody"),
        ]
    )


def test_the_bytes_of_go(url):
    """As net/http writes them: names in its case, chunks of 32 KiB, replies read before the next request."""
    host, _, port = url.removeprefix("http://").partition(":")
    common = f"Host: {host}:{port}\r\nUser-Agent: Go-http-client/1.1\r\n"
    with socket.create_connection((host, int(port)), 600) as connection, connection.makefile("rb") as reader:

        def reply():
            status = reader.readline().split()[1].decode()
            head = {}
            while line := reader.readline().strip():
                name, _, value = line.partition(b":")
                head[name.lower()] = value.strip()
            return f"{status} {reader.read(int(head[b'content-length'])).decode()}"

        def call(method, path, body=None, chunk=None):
            head = f"{method} {path} HTTP/1.1\r\n{common}"
            if chunk is not None:
                head += "Transfer-Encoding: chunked\r\n"
            elif body is not None:
                head += f"Content-Length: {len(body)}\r\n"
            head += "Content-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
            connection.sendall(head.encode())
            for i in range(0, len(body or ""), chunk or 2**30):
                part = body[i : i + (chunk or 2**30)].encode()
                connection.sendall(b"%x\r\n%b\r\n" % (len(part), part) if chunk else part)
            if chunk:
                connection.sendall(b"0\r\n\r\n")
            return reply()

        judged(
            [
                call("PUT", "/v1/learners/go", '{"task": "multiclass"}'),
                call("POST", "/v1/learners/go/feedback", json.dumps(EVENT)),
                call("POST", "/v1/learners/go/feedback", json.dumps(EVENT), chunk=7),
                call("POST", "/v1/learners/go/predict", PREDICT, chunk=32_768),
                call("GET", "/v1/learners/nobody"),
            ]
        )
