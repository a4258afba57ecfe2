"""kill -9 while something is erased: what was begun is finished at the next start, and what was acknowledged is gone."""

import signal
import threading
import time

import httpx
import pytest
from kill_rounds import SPEC, Service
from store_bytes import bytes_of
from waiting import until


@pytest.mark.parametrize("pause", [0.0, 0.03, 0.3])
def test_a_kill_in_the_middle_of_erasing(store_url, pause):
    secret, replies = "jane.doe", []
    service = Service(store_url)
    with service.client() as client:
        client.put("/learners/a", json=SPEC).raise_for_status()
        events = [
            {"features": {f"w{i % 9}": 1, secret if i % 7 == 0 else "x": 1}, "label": f"l{i % 5}"}
            | ({"subject": secret, "feedback_id": f"{secret} {i}"} if i % 7 == 0 else {})
            for i in range(70)
        ]
        client.post("/learners/a/feedback", json={"events": events}).raise_for_status()
        client.post("/learners/a/predict", json={"features": [secret], "subject": secret}).raise_for_status()

        def erase():
            try:
                replies.append(client.post("/erase", json={"subject": secret}).status_code)
            except httpx.TransportError:
                replies.append(None)

        thread = threading.Thread(target=erase)
        thread.start()
        time.sleep(pause)  # anywhere on the way
        service.stop(signal.SIGKILL)
        thread.join()
    if replies == [200]:
        assert secret.encode() not in bytes_of(store_url)
    service = Service(store_url)
    with service.client() as client:

        def finished():  # asked again by who got no reply
            done = client.post("/learners/a/erase", json={"subject": secret})
            assert done.json()["erased"] in (0, 1, 10, 11)
            return done.status_code == 200

        until(finished, "what was begun is not finished")
        until(lambda: secret.encode() not in bytes_of(store_url), "nor is what all learners were asked")
        assert client.post("/learners/a/feedback", json=events[7]).status_code == 410
        assert client.get("/learners/a").json()["progress"]["rounds"] == 60
    service.stop(signal.SIGTERM)
