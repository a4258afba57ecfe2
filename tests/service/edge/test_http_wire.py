"""What a connection may do that is not one plain request after another: offers, half-closes, silence, heads without end."""

import json
import socket

import pytest


@pytest.fixture(scope="module")
def brief(start_shared):
    """A server that closes what is not in use at once, as far as a busy machine lets it be used at all."""
    return start_shared(FEEDRANK_IDLE_TIMEOUT="2")


@pytest.fixture(scope="module")
def learner(start_shared):
    process = start_shared(FEEDRANK_VERSION_WAIT="0.1")
    with process.client() as client:
        assert client.put("/v1/learners/mail", json={"task": "multiclass"}).status_code == 201
    return process


def connect(process):
    host, _, port = process.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=600)


def replies(connection):
    """(status, headers, body) of each reply until the connection ends."""
    with connection.makefile("rb") as file:
        while line := file.readline():
            headers = {}
            while (header := file.readline().strip()) != b"":
                name, _, value = header.partition(b":")
                headers[name.lower()] = value.strip()
            yield int(line.split()[1]), headers, file.read(int(headers.get(b"content-length", 0)))


def head(method, path, *headers, length=None):
    sized = () if length is None else (f"Content-Length: {length}",)
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *headers, *sized, "", ""]).encode()


H2C = (
    "Connection: Upgrade, HTTP2-Settings",
    "Upgrade: h2c",
    "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
)
LAST = head("GET", "/livez", "Connection: close")
PREDICT = "/v1/learners/mail/predict"


@pytest.mark.parametrize("pieces", ["one", "two", "many"])
@pytest.mark.parametrize("path", [PREDICT, "/v1/learners/mail/retract"])
def test_the_body_of_a_request_that_offers_an_upgrade_is_its_body(learner, pieces, path):
    body = head("DELETE", "/v1/learners/mail")
    sent = head("POST", path, *H2C, length=len(body))
    with connect(learner) as connection:
        for piece in split(pieces, sent, body):
            connection.sendall(piece)
        connection.sendall(LAST)
        first, last = replies(connection)
    assert (first[0], json.loads(first[2])["type"]) == (422, "malformed-json")
    assert last[0] == 200
    with learner.client() as client:
        assert client.get("/v1/learners/mail").status_code == 200


def split(pieces, sent, body):
    if pieces == "one":
        return [sent + body]
    if pieces == "two":
        return [sent, body]
    data = sent + body
    return [data[i : i + 7] for i in range(0, len(data), 7)]


@pytest.mark.parametrize("chunked", [False, True])
def test_a_call_that_offers_an_upgrade_is_answered_as_if_it_did_not(learner, chunked):
    body = b'{"features": ["a"], "remember": false}'
    if chunked:
        sent = head("POST", PREDICT, *H2C, "Transfer-Encoding: chunked")
        sent += b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    else:
        sent = head("POST", PREDICT, *H2C, length=len(body)) + body
    with connect(learner) as connection:
        connection.sendall(sent * 3 + LAST)
        assert [status for status, _, _ in replies(connection)] == [200] * 4


def test_a_websocket_is_not_opened(learner):
    offer = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZQ==",
    )
    with connect(learner) as connection:
        connection.sendall(head("GET", "/livez", *offer) + LAST)
        assert [status for status, _, _ in replies(connection)] == [200, 200]
    with connect(learner) as connection:
        connection.sendall(head("GET", "/livez", *offer, "Connection: close, Upgrade"))
        assert [status for status, _, _ in replies(connection)] == [200]
    with connect(learner) as connection:
        connection.sendall(head("CONNECT", "localhost:80"))
        ((status, headers, body),) = replies(connection)
    assert (status, headers[b"content-type"]) == (400, b"application/problem+json")
    assert json.loads(body)["type"] == "malformed-request"


@pytest.mark.parametrize("body", [b"", b"{}"])
def test_a_head_above_its_limit_is_refused_in_one_packet_too(learner, body):
    for size, expected in ((60_000, 422), (66_000, 431)):
        with connect(learner) as connection:
            connection.sendall(head("POST", PREDICT, "X-Long: " + "x" * size, length=len(body)) + body)
            connection.shutdown(socket.SHUT_WR)
            assert [status for status, _, _ in replies(connection)] == [expected]


def test_a_large_body_is_not_taken_for_a_head(learner):
    body = json.dumps({"features": ["x" * 900] * 80, "remember": False}).encode()
    with connect(learner) as connection:
        connection.sendall(head("POST", PREDICT, length=len(body)) + body + LAST)
        assert [status for status, _, _ in replies(connection)] == [200, 200]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (PREDICT, b'{"features": ["a"]}'),
        (PREDICT, b'{"features": ["a"], "min_version": 1}'),
        ("/v1/learners/mail/clicks", b"{}"),
    ],
)
@pytest.mark.parametrize("count", [1, 3])
def test_who_closes_one_half_gets_the_replies(learner, path, body, count):
    with connect(learner) as connection:
        connection.sendall((head("POST", path, length=len(body)) + body) * count)
        connection.shutdown(socket.SHUT_WR)
        statuses = [status for status, _, _ in replies(connection)]
    assert len(statuses) == count
    assert set(statuses) <= {200, 409, 422}


def test_half_a_request_and_the_end_is_no_request(learner):
    with connect(learner) as connection:
        connection.sendall(head("POST", PREDICT, length=100) + b"{")
        connection.shutdown(socket.SHUT_WR)
        assert list(replies(connection)) == []


def test_a_connection_that_is_not_in_use_is_closed(brief):
    with connect(brief) as connection:
        connection.sendall(head("GET", "/livez"))
        assert [status for status, _, _ in replies(connection)] == [200]


def test_replies_that_nobody_reads_are_not_kept(brief):
    asked = head("GET", "/openapi.json")
    with connect(brief) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with pytest.raises(ConnectionError):
            connection.sendall(asked * 500_000)  # more than sockets take in, until it is hung up on
    with brief.client() as client:
        assert client.get("/livez").status_code == 200
