"""Who gets in: loopback names only without keys, no page of another origin, nobody who sends slowly; health always."""

import contextlib
import http.server
import json
import socket
import threading

import pytest

from feedrank.service.contract.settings import Settings
from feedrank.service.http.edge import Door, ForeignRequest, host_name


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost:8000", "localhost"),
        ("[::1]:80", "::1"),
        ("127.0.0.1", "127.0.0.1"),
        ("Evil.Example.", "evil.example"),
        ("localhost:80:evil.example", ""),
        ("localhost@evil.example", ""),
        ("[::1]evil.example", ""),
    ],
)
def test_the_name_of_a_host_has_no_port(host, name):
    assert host_name(host) == name


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "192.168.1.5:8000", "", "localhost.evil"]
)
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/learners"), ("GET", "/"), ("DELETE", "/v1/learners/mail")]
)
def test_a_name_that_is_not_loopback_is_refused_without_keys(mail, refused, host, method, path):
    refused(mail.request(method, path, headers={"host": host}), 403, "forbidden")
    assert mail.get("/v1/learners/mail").status_code == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "127.8.8.8", "[::1]:8000"])
def test_loopback_names_are_answered(mail, host):
    assert mail.get("/v1/learners", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_what_a_browser_sends_from_another_origin_changes_nothing(mail, refused, headers):
    body = {"features": ["a"], "label": "x"}
    for call in ("feedback", "predict", "retract", "stream"):
        refused(mail.post(f"/v1/learners/mail/{call}", json=body, headers=headers), 403, "forbidden")
    refused(mail.delete("/v1/learners/mail", headers=headers), 403, "forbidden")
    assert mail.get("/v1/learners/mail").json()["version"] == 0


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_our_own_pages_get_in(mail, site):
    own = str(mail.base_url).rstrip("/")
    headers = {"origin": own, "sec-fetch-site": site}
    assert mail.post("/v1/learners/mail/predict", json={"features": []}, headers=headers).status_code == 200


def test_an_origin_that_was_named_gets_in(make_client):
    client = make_client(cors_origins="https://app.example")
    headers = {"origin": "https://app.example", "sec-fetch-site": "cross-site"}
    assert client.get("/v1/learners", headers=headers).status_code == 200
    assert client.get("/v1/learners", headers={"origin": "https://other.example"}).status_code == 403


def test_with_keys_the_allowed_hosts_are_a_setting(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("")
    keyed = Settings(keys_file=str(keys), allowed_hosts="rank.example, Rank2.example")
    for host in (b"rank.example", b"RANK2.example:443"):
        Door(keyed).check({b"host": host, b"origin": b"https://any.example"})
    with pytest.raises(ForeignRequest, match="FEEDRANK_ALLOWED_HOSTS"):
        Door(keyed).check({b"host": b"other.example"})
    Door(Settings(keys_file=str(keys))).check({b"host": b"other.example"})


UPGRADE = (
    b"GET /v1/learners HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


def connect(process):
    host, _, port = process.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=600)


def read_all(connection):
    data = b""
    while chunk := connection.recv(65536):
        data += chunk
    return data


@pytest.fixture(scope="module")
def impatient(start_shared):
    """A server that waits for two seconds: long enough to send what is at hand, on a busy machine too."""
    return start_shared(FEEDRANK_HEAD_TIMEOUT="2", FEEDRANK_BODY_TIMEOUT="2")


@pytest.mark.parametrize(
    "part",
    [
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Never: ",
        b"POST /v1/learners/mail/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{",
    ],
)
def test_a_request_that_stays_half_sent_is_hung_up_on(impatient, part):
    with connect(impatient) as connection:
        connection.sendall(part)
        assert b"408" in read_all(connection).partition(b"\r\n")[0]
    with impatient.client() as client:
        assert client.get("/livez").status_code == 200


def test_who_says_nothing_is_hung_up_on(impatient):
    with connect(impatient) as silent:
        assert read_all(silent) == b""
    with impatient.client() as client:
        assert client.get("/livez").status_code == 200


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Endless: " + b"x" * 2**20, 431),
        (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 2**18, 431),
        (b"not HTTP at all\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n\r\n", 403),
        (
            b"GET http://evil.example/v1/learners HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            400,
        ),
        (
            b"GET http://localhost@evil/v1/learners HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            400,
        ),
        (b"GET http://localhost/v1/learners HTTP/1.1\r\nHost: evil\r\nConnection: close\r\n\r\n", 400),
        (b"GET http://evil/v1/learners HTTP/1.1\r\nHost: evil\r\nConnection: close\r\n\r\n", 403),
        (UPGRADE + b"Origin: http://evil.example\r\n\r\n", 403),
    ],
)
def test_a_head_without_an_end_or_sense_is_refused_and_not_kept(process, sent, status):
    with connect(process) as connection:
        threading.Thread(target=lambda: pour(connection, sent), daemon=True).start()
        head, _, body = read_reply(connection).partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status
    assert json.loads(body)["status"] == status
    with process.client() as client:
        assert client.get("/livez").status_code == 200


def pour(connection, data):
    with contextlib.suppress(OSError):  # it is hung up on in the middle
        connection.sendall(data)


def read_reply(connection):
    """What comes until the end, or until the connection is reset: unread bytes are still on it."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while chunk := connection.recv(65536):
            data += chunk
            if data.endswith(b"}"):
                break
    return data


def test_a_target_that_names_its_host_is_answered_as_one_that_does_not(process):
    host = process.url.removeprefix("http://").encode()
    with connect(process) as connection:
        connection.sendall(b"GET http://" + host + b"/livez?x=/ HTTP/1.1\r\nHost: " + host.upper() + b"\r\n")
        connection.sendall(b"Connection: close\r\n\r\n")
        assert read_all(connection).endswith(b'{"status":"ok"}\n')


def test_half_sent_requests_that_take_every_place_make_room_for_others(start):
    process = start(FEEDRANK_MAX_CONNECTIONS="20")
    with process.client() as client:
        assert client.put("/v1/learners/mail", json={"task": "multiclass"}).status_code == 201
    silent = [connect(process) for _ in range(60)]
    for connection in silent:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
    for _ in range(5):
        with process.client() as client:
            assert client.get("/livez").status_code == 200
            assert client.post("/v1/learners/mail/predict", json={"features": []}).status_code == 200
    for connection in silent:
        connection.close()


def test_when_all_are_at_work_health_is_answered_and_others_are_told_to_come_again(start):
    process = start(FEEDRANK_MAX_CONNECTIONS="8")
    with process.client() as client:
        client.put("/v1/learners/mail", json={"task": "multiclass"})
    head = b"POST /v1/learners/mail/stream HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    streams = [connect(process) for _ in range(9)]
    for connection in streams:
        connection.sendall(head)
    with process.client() as client:
        replies = [client.get("/livez").status_code, client.get("/readyz").status_code]
        assert replies == [200, 200]
        crowded = client.get("/v1/learners")
        assert crowded.status_code == 503
        assert crowded.json()["type"] == "timed-out"
        assert "retry-after" in crowded.headers
    for connection in streams:
        connection.close()


class Hostile(http.server.BaseHTTPRequestHandler):
    """A page of another origin that tries what a page can."""

    target = ""

    def do_GET(self):
        page = f"""<!doctype html><title>evil</title><script>
        const target = {self.target!r}, done = [];
        const plain = {{method: "POST", mode: "no-cors", headers: {{"content-type": "text/plain"}}}};
        const event = JSON.stringify({{features: ["a"], label: "x"}});
        Promise.allSettled([
          fetch(target + "/v1/learners/mail/feedback", {{...plain, body: event}}),
          fetch(target + "/v1/learners/mail/stream", {{...plain, body: JSON.stringify({{feedback: JSON.parse(event)}})}}),
          fetch(target + "/v1/learners/mail/retract", {{...plain, body: JSON.stringify({{feedback_id: "mine"}})}}),
          fetch(target + "/v1/learners/mail", {{method: "DELETE"}}),
        ]).then(() => {{ document.title = "done" }});
        </script>""".encode()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        pass


def test_a_page_of_another_origin_cannot_teach_retract_or_delete_in_a_real_browser(chromium, make_client):
    client = make_client()
    client.put("/v1/learners/mail", json={"task": "multiclass"})
    own = {"features": ["a"], "label": "x", "feedback_id": "mine"}
    assert client.post("/v1/learners/mail/feedback", json=own).status_code == 200
    target = str(client.base_url).rstrip("/")
    handler = type("Handler", (Hostile,), {"target": target})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as evil:
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        from selenium.webdriver.support.ui import WebDriverWait

        chromium.get(f"http://localhost:{evil.server_port}/")
        WebDriverWait(chromium, 600).until(lambda driver: driver.title == "done")
        evil.shutdown()
    chromium.get_log("browser")  # the refusals, which the next test of a page must not find
    assert client.get("/v1/learners/mail").json()["version"] == 1
