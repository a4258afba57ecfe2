"""A hundred requests of odd form, as bytes, to the service and through the shipped proxy: refused or answered, never both.

Whatever a request says of its own length, what stands in its body is never another request: a DELETE is in many of them.
"""

import contextlib
import re
import shutil
import socket
import subprocess

import pytest
from nginx_proxy import configure
from ports import free_port
from waiting import until

PREDICT, LIVEZ = b"POST /v1/learners/mail/predict HTTP/1.1", b"GET /livez HTTP/1.1"
HOST = b"Host: localhost"
BODY = b'{"features": ["a"], "remember": false}'
DELETE = b"DELETE /v1/learners/mail HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKED, END = b"Transfer-Encoding: chunked", b"0\r\n\r\n"
SIZE = b"%x\r\n%b\r\n" % (len(BODY), BODY)
LENGTH = b"Content-Length: %d" % len(BODY)
ONE, TWICE = b"Content-Length: 5", b"Content-Length: 5, 5"


def request(line, *headers, body=b"", host=HOST):
    return b"\r\n".join([line, *([host] if host else []), *headers, b"", b""]) + body


def lengths():
    """Bodies whose length is said twice, wrongly, or in words that few understand."""
    for value in (
        b"-1",
        b"+5",
        b"0x5",
        b"5 5",
        b"5,6",
        b"",
        b" ",
        b"five",
        b"99999999999999999999999",
        b"5.0",
        b"\x005",
        b"1e1",
    ):
        yield request(PREDICT, b"Content-Length: " + value, body=DELETE)
    yield request(PREDICT, ONE, b"Content-Length: 6", body=DELETE)
    yield request(PREDICT, ONE, ONE, body=DELETE)
    yield request(PREDICT, TWICE, body=DELETE)
    yield request(PREDICT, b"Content-Length : 5", body=DELETE)
    yield request(PREDICT, b" Content-Length: 5", body=DELETE)
    yield request(PREDICT, b"Content-Length\t: 5", body=DELETE)
    yield request(PREDICT, b"Content_Length: %d" % len(DELETE), b"Content-Length: 0")
    yield request(PREDICT, b"X: y\nContent-Length: 5", body=DELETE)
    yield request(PREDICT, b"X: y\rContent-Length: 5", body=DELETE)
    yield request(PREDICT, b"Content-Length: 1000", body=DELETE)
    yield request(LIVEZ, b"Content-Length: %d" % len(DELETE), body=DELETE)


def encodings():
    """Both framings at once, and codings that are not ours."""
    names = (
        b"chunked, chunked", b"identity", b"gzip, chunked", b"chunked, gzip", b"xchunked", b"chunkedx", b"CHUNKED",
        b"chunked;q=1",
        b"\x0bchunked", b'"chunked"', b"chunked\x00", b",chunked", b"chunked,", b"",
    )  # fmt: skip
    for name in names:
        yield request(PREDICT, b"Transfer-Encoding: " + name, body=END)
        yield request(
            PREDICT, b"Transfer-Encoding: " + name, b"Content-Length: %d" % len(DELETE), body=DELETE
        )
    yield request(PREDICT, CHUNKED, ONE, body=END)
    yield request(PREDICT, ONE, CHUNKED, body=END)
    yield request(PREDICT, b"Transfer-Encoding : chunked", body=END)
    yield request(PREDICT, b"Transfer-Encoding:\r\n chunked", body=END)
    yield request(PREDICT, b"Transfer-Encoding: identity", CHUNKED, body=END)
    yield request(b"POST /v1/learners/mail/predict HTTP/1.0", CHUNKED, body=SIZE + END)


def chunks():
    """Chunks that are not."""
    sizes = (
        b"-1",
        b"+5",
        b"0x5",
        b" 5",
        b"5 ",
        b"g",
        b"",
        b"ffffffffffffffffff",
        b"5;x=" + b"y" * 20_000,
        b"5\n",
        b"00000000000000000005",
    )
    for size in sizes:
        yield request(PREDICT, CHUNKED, body=size + b"\r\nhello\r\n" + END)
    yield request(PREDICT, CHUNKED, body=b"5\nhello\n0\n\n")
    yield request(PREDICT, CHUNKED, body=b"5\r\nhelloworld\r\n" + END)
    yield request(PREDICT, CHUNKED, body=SIZE + b"0\r\nContent-Length: 5\r\n\r\n")
    yield request(PREDICT, CHUNKED, body=SIZE + b"0\r\n" + b"X: " + b"y" * 70_000 + b"\r\n\r\n")
    yield request(PREDICT, CHUNKED, body=b"5\r\nhello")


def lines():
    """Request lines, hosts and headers."""
    for line in (
        b"GET", b"GET /livez", b"GET  /livez HTTP/1.1", b"GET /livez HTTP/9.9", b"GET /livez HTTP/1.1 x",
        b"GET /livez http/1.1",
        b" GET /livez HTTP/1.1", b"G\x00T /livez HTTP/1.1", b"GET /li\x00vez HTTP/1.1", b"GET /li\x7fvez HTTP/1.1",
        b"get /livez HTTP/1.1",
        b"GET livez HTTP/1.1", b"GET * HTTP/1.1", b"GET http://evil.example/livez HTTP/1.1", b"GET //livez HTTP/1.1",
        b"GET /livez#x HTTP/1.1", b"GET /%2e%2e/livez HTTP/1.1", b"GET /v1/learners/%00 HTTP/1.1",
        b"GET /v1/learners/..%2f..%2fetc HTTP/1.1",
        b"TRACE / HTTP/1.1", b"CONNECT evil.example:443 HTTP/1.1", b"OPTIONS * HTTP/1.1", b"PRI * HTTP/2.0",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1", b"PATCH /v1/learners/mail HTTP/1.1", b"HEAD /livez HTTP/1.1",
    ):  # fmt: skip
        yield request(line)
    for host in (
        b"",
        b"Host: ",
        b"Host: a b",
        b"Host: localhost\r\nHost: evil.example",
        b"Host: evil.example@localhost",
        b"Host: [::1",
    ):
        yield request(LIVEZ, host=host)
    for header in (
        b"X",
        b": x",
        b"X y: z",
        b"X\x00: y",
        b"X: \x00",
        b"X: y\x00z",
        b"\x80: x",
        b"X: " + b"y" * 70_000,
        b"X:\r\n\tfolded",
    ):
        yield request(LIVEZ, header)
    yield request(LIVEZ, *[b"X-%d: y" % i for i in range(5_000)])
    yield LIVEZ + b"\n" + HOST + b"\n\n"
    yield b"\r\n" * 100 + request(LIVEZ)
    yield request(PREDICT, LENGTH, b"Expect: 200-ok", body=BODY)
    yield request(PREDICT, LENGTH, b"Content-Encoding: gzip", body=BODY)


CASES = [case for cases in (lengths, encodings, chunks, lines) for case in cases()]


@pytest.fixture(scope="module")
def served(start_shared):
    process = start_shared(FEEDRANK_HEAD_TIMEOUT="5", FEEDRANK_BODY_TIMEOUT="5")
    with process.client() as client:
        assert (
            client.put("/v1/learners/mail", json={"task": "multiclass", "algorithm": "predtron"}).status_code
            == 201
        )
    return process


@pytest.fixture(scope="module")
def proxied(served, tmp_path_factory):
    """The port of the shipped proxy in front of the service."""
    if shutil.which("nginx") is None:
        pytest.skip("no nginx: `apt-get install nginx-light` to test the proxy")
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    command = configure(folder, str(port), [served.url.removeprefix("http://")])
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: ask(port, request(LIVEZ)), not_yet=OSError)
        yield port
    finally:
        process.terminate()
        process.wait()


def ask(port, data):
    """The statuses of all replies, until the other side hangs up: we send no more."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=600) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(65536):
                received += piece
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3})", received)]


def check(process, port, data, most):
    statuses = ask(port, data)
    assert len(statuses) <= most, (data[:200], statuses)
    assert all(status < 500 or status in (501, 505) for status in statuses), (data[:200], statuses)
    with process.client() as client:
        assert client.get("/v1/learners/mail").status_code == 200, data[:200]


def test_there_are_a_hundred():
    assert len(CASES) == len(set(CASES)) >= 100


@pytest.mark.parametrize("number", range(0, len(CASES), 10))
def test_the_service_answers_each_once(served, number):
    port = int(served.url.rpartition(":")[2])
    for data in CASES[number : number + 10]:
        check(served, port, data, 2)


@pytest.mark.parametrize("number", range(0, len(CASES), 10))
def test_so_it_does_behind_the_proxy(served, proxied, number):
    for data in CASES[number : number + 10]:
        check(served, proxied, data, 2)
