"""Sends the inputs of `fuzz_inputs` to a service and judges what comes back."""

from __future__ import annotations

import http.client
import socket
from collections import Counter
from dataclasses import replace

import orjson
from fuzz_inputs import HEAD, SPECS, TRUTHS, Input, input_of, instance_of, snapshots

WAIT = 120.0  # seconds for a reply; a server that takes longer counts as dead


class Fuzzer:
    """Sends inputs to a service at HOST:PORT and judges the replies; `found` is what must not be, with its number.

    With a key, it is sent with every input that has no other one.
    """

    def __init__(self, address: str, key: str = "", *, busy: bool = False) -> None:
        host, _, port = address.rpartition(":")
        self.host, self.port = host, int(port)
        self.made = {} if busy else snapshots()
        self.busy = busy  # 503 with its document is a right reply
        self.sent: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.found: list[str] = []
        self._kept: socket.socket | None = None
        self._key = (b"Authorization", f"Bearer {key}".encode()) if key else None

    def prepare(self) -> None:
        """The learners that the inputs are about, new."""
        for name, spec in SPECS.items():
            self._exchange(Input("body", "DELETE", f"/v1/learners/{name}", list(HEAD)))
            status, _ = self._exchange(
                Input("body", "PUT", f"/v1/learners/{name}", list(HEAD), orjson.dumps(spec))
            )
            assert status in (200, 201), status

    def send(self, seed: int, number: int) -> None:
        """Send one input; what must not be is noted."""
        one = input_of(seed, number, self.made)
        self.sent[one.kind] += 1
        status = self.judge(one, f"{seed}:{number} {one.kind}")
        if status == 201 and one.kind == "snapshot":
            self._look_at(one.path.removesuffix("/snapshot"), f"{seed}:{number}")

    def judge(self, one: Input, which: str) -> int:
        """Send a request, and note what must not be; the status, 0 without a reply."""
        which = f"{which} {one.method} {one.path}"
        try:
            status, body = self._exchange(one)
        except TimeoutError:
            self.found.append(f"{which}: no reply in {WAIT:g} s")
            return 0
        except (OSError, http.client.HTTPException) as error:
            if one.reply or isinstance(error, ConnectionRefusedError):
                self.found.append(f"{which}: {error!r}")
            return 0
        self.statuses[status] += 1
        if (why := wrong(status, body, one)) is not None and not (self.busy and status == 503):
            self.found.append(f"{which}: {why}")
        return status

    def _look_at(self, path: str, which: str) -> None:
        """A learner out of a changed snapshot predicts and learns, or refuses to."""
        for name in ("classes", "ap"):
            for call, body in (
                ("predict", instance_of(name)),
                ("feedback", {**instance_of(name), **TRUTHS[name]}),
            ):
                one = Input("body", "POST", f"{path}/{call}", list(HEAD), orjson.dumps(body))
                status, reply = self._exchange(one)
                if (why := wrong(status, reply, one)) is not None:
                    self.found.append(f"{which} then {call}: {why}")
        self._exchange(Input("body", "DELETE", path, list(HEAD)))

    def finish(self) -> None:
        """The service is alive and ready, all learners answer, and no event that was taken had to be skipped."""
        for path in ("/livez", "/readyz", *(f"/v1/learners/{name}" for name in SPECS)):
            status, body = self._exchange(Input("body", "GET", path, list(HEAD)))
            if status != 200 or wrong(status, body, None):
                self.found.append(f"at the end {path} gives {status}: {body[:200]!r}")
        for name in SPECS:
            one = Input(
                "body", "POST", f"/v1/learners/{name}/predict", list(HEAD), orjson.dumps(instance_of(name))
            )
            status, body = self._exchange(one)
            if status != 200 or wrong(status, body, one):
                self.found.append(f"at the end {name} predicts {status}: {body[:200]!r}")
        _, metrics = self._exchange(Input("body", "GET", "/metrics", list(HEAD)))
        for line in metrics.decode().splitlines():
            if line.startswith("feedrank_skipped_events_total") and float(line.split()[-1]):
                self.found.append(line)

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _exchange(self, one: Input) -> tuple[int, bytes]:
        if self._key is not None and all(name.lower() != b"authorization" for name, _ in one.head):
            one = replace(one, head=[*one.head, self._key])
        fresh = not one.reply or self._kept is None
        if fresh and self._kept is not None:
            self.close()
        if self._kept is None:
            self._kept = socket.create_connection((self.host, self.port), WAIT)
        try:
            self._kept.sendall(one.wire())
            if not one.reply:
                self._kept.shutdown(socket.SHUT_WR)
            reply = http.client.HTTPResponse(self._kept, method=one.method)
            reply.begin()
            body = reply.read()
        except (OSError, http.client.HTTPException):
            self.close()
            if not fresh:  # the server hung up on what was sent before
                return self._exchange(one)
            raise
        if reply.will_close or not one.reply:
            self.close()
        return reply.status, body


def wrong(status: int, body: bytes, one: Input | None) -> str | None:
    """Why a reply must not be: a 5xx, a stack trace, what is no JSON (NaN is none), a refusal without its document."""
    if status >= 500:
        return f"{status} {body[:300]!r}"
    if b"Traceback" in body:
        return "a stack trace"
    if one is None or one.kind == "header" or not body or one.path.partition("?")[0] in ("/", "/metrics"):
        return None
    for line in body.splitlines() if one.kind == "stream" and status == 200 else [body]:
        try:
            said = orjson.loads(line)
        except orjson.JSONDecodeError:
            return f"{status} is no JSON: {line[:200]!r}"
        if isinstance(said, dict) and isinstance(said.get("status"), int) and said["status"] >= 500:
            return f"a line says {line[:300]!r}"
        if status >= 400 and "detail" not in said and "/personalizer/" not in one.path:
            return f"{status} without its problem: {line[:200]!r}"
    return None
