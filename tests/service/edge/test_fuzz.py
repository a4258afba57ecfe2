"""Some of the hostile requests of benchmarks/fuzz.py, and those that once did harm."""

import socket

from fuzz_inputs import KINDS
from fuzzer import Fuzzer, wrong

INPUTS = 600


def test_hostile_requests_are_refused_and_harm_nothing(make_client):
    client = make_client(max_body=2**18)
    fuzzer = Fuzzer(f"{client.base_url.host}:{client.base_url.port}")
    fuzzer.prepare()
    for number in range(INPUTS):
        fuzzer.send(7, number)
    fuzzer.finish()
    fuzzer.close()
    assert fuzzer.found == []
    assert set(fuzzer.sent) == set(KINDS)
    assert {200, 201, 404, 422} <= set(fuzzer.statuses)


def test_a_reply_that_must_not_be_is_noticed():
    assert wrong(500, b"{}", None)
    assert wrong(200, b"Traceback (most recent call last)", None)
    fuzzer = Fuzzer("127.0.0.1:1")
    fuzzer.send(7, 0)
    assert len(fuzzer.found) == 1


def test_a_cut_beyond_every_machine_word_cuts_nothing(mail):
    mail.post("/v1/learners/mail/feedback", json={"features": ["w"], "label": "a"}).raise_for_status()
    for explain in (False, True):
        body = {"features": ["w"], "top": 2**63, "explain": explain}
        assert len(mail.post("/v1/learners/mail/predict", json=body).json()["ranking"]) == 1


def test_an_instance_without_features_is_learned_from_and_never_skipped(mail):
    for label in ("a", "b"):
        reply = mail.post("/v1/learners/mail/feedback", json={"features": {}, "label": label})
        assert reply.status_code == 200
    assert mail.get("/v1/learners/mail").json()["progress"]["rounds"] == 2


def test_who_hangs_up_within_a_request_is_no_fault_of_ours(mail, capfd):
    with socket.create_connection((mail.base_url.host, mail.base_url.port), 10) as sock:
        sock.sendall(b"PUT /v1/learners/half HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\n{")
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)
    assert "unforeseen" not in capfd.readouterr().err


def test_a_log_is_not_valued_under_other_grades(client):
    client.put("/v1/learners/g", json={"task": "ordinal", "labels": ["low", "high"]}).raise_for_status()
    client.post("/v1/learners/g/feedback", json={"features": ["w"], "label": "low"}).raise_for_status()
    other = {"spec": {"task": "ordinal", "labels": ["least", "high"]}}
    assert client.post("/v1/learners/g/evaluate", json=other).status_code == 422
