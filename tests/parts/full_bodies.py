"""Predictions with bodies up to the limit, as a key that may predict can send them, and a neighbour who waits.

Input number i of a seed is always the same: a shape, a length (a power of two from 1 KiB to the limit), and in two of three
cases some bytes changed, moved or cut. Bodies of one shape and length share their beginning, made once.
"""

from __future__ import annotations

import base64
import http.client
import json
import multiprocessing
import random
import time
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path

from fuzz_inputs import HEAD, LITERALS, Input

SMALLEST = 10  # a power of two
LONGEST_STREAM = 17  # the same: a stream's length has no limit, and each line is a request
LINES = b'{"predict":{"features":{"x":1},"remember":false}}\n'


def repeated(start: bytes, part: Callable[[int], bytes], end: bytes) -> Callable[[int], bytes]:
    """JSON of about so many bytes: parts between a start and an end."""

    def make(length: int) -> bytes:
        each = len(part(10_000)) + 1
        return (
            start + b",".join(part(i) for i in range(max(1, (length - len(start) - len(end)) // each))) + end
        )

    return make


def of_bytes(start: bytes, one: bytes, end: bytes) -> Callable[[int], bytes]:
    """JSON of about so many bytes: the same bytes again and again."""
    return lambda length: start + one * max(1, (length - len(start) - len(end)) // len(one)) + end


def nested(length: int) -> bytes:
    half = length // 2 - 10
    return b'{"features":' + b"[" * half + b"]" * half + b"}"


END = b'],"remember":false}'
SHAPES: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "names": ("classes", repeated(b'{"remember":false,"features":{', lambda i: b'"n%d":1.5' % i, b"}}")),
    "words": ("classes", repeated(b'{"features":[', lambda i: b'"w%d"' % i, END)),
    "numbers": ("classes", repeated(b'{"features":[', lambda i: b"%d.125e-3" % i, END)),
    "digits": ("classes", of_bytes(b'{"features":[0.', b"7", END)),
    "explained": (
        "classes",
        repeated(b'{"explain":true,"remember":false,"features":{', lambda i: b'"n%d":2' % i, b"}}"),
    ),
    "text": ("texts", of_bytes(b'{"remember":false,"text":"', b"refund my card ", b'"}')),
    "one word": ("texts", of_bytes(b'{"remember":false,"text":"', b"x", b'"}')),
    "escapes": ("texts", of_bytes(b'{"remember":false,"text":"', b"\\ud83d\\ude00", b'"}')),
    "vector": ("vectors", of_bytes(b'{"vector":[0.5', b",0.25", END)),
    "base64": (
        "vectors",
        lambda length: b'{"remember":false,"vector":"%s"}' % base64.b64encode(bytes(length * 3 // 4)),
    ),
    "row": (
        "rows",
        repeated(
            b'{"remember":false,"unknown_columns":"ignore","row":{"body":"a b"',
            lambda i: b'"c%d":"v"' % i,
            b"}}",
        ),
    ),
    "items": ("lists", repeated(b'{"items":[', lambda i: b'{"id":"%d","features":{"x":%d}}' % (i, i), END)),
    "actions": ("choice", repeated(b'{"items":[', lambda i: b'{"id":"%d","features":["a"]}' % i, END)),
    "instances": ("classes", of_bytes(b'{"remember":false,"instances":[{}', b',{"features":{}}', b"]}")),
    "objects": ("classes", of_bytes(b'{"remember":false,"instances":[{}', b",{}", b"]}")),
    "lists of lists": ("classes", of_bytes(b'{"remember":false,"features":[[]', b",[]", b"]}")),
    "blanks": ("classes", of_bytes(b'{"remember":false,"features":{"x":1}', b" ", b"}")),
    "nested": ("classes", nested),
    "stream": ("classes", of_bytes(b"", LINES, b"")),
    "one line": ("classes", of_bytes(b'{"predict":{"features":{"x":1},"remember":false', b" ", b"}}")),
}
SPECS: dict[str, dict[str, object]] = {
    "classes": {"task": "multiclass", "labels": ["a", "b"]},
    "texts": {"task": "multiclass", "labels": ["a", "b"]},
    "vectors": {"task": "multiclass", "labels": ["a", "b"]},
    "rows": {"task": "multiclass", "labels": ["a", "b"], "input": {"body": "text"}},
    "lists": {"task": "subset-ranking"},
    "choice": {"task": "choice"},
}


@cache
def body_of(shape: str, power: int) -> bytes:
    return SHAPES[shape][1](2**power)[: 2**power + 64]


def full_input(seed: int, number: int, limit: int) -> tuple[str, Input]:
    """The shape and the request of an input."""
    rng = random.Random(f"full:{seed}:{number}")
    shape = rng.choice(list(SHAPES))
    power = rng.randint(SMALLEST, LONGEST_STREAM if shape == "stream" else limit.bit_length() - 1)
    body = body_of(shape, power)[:limit]
    how = rng.randrange(6)
    at = rng.randrange(len(body))
    if how == 1:
        body = body[:at] + rng.randbytes(rng.randrange(1, 9)) + body[at + 9 :]
    elif how == 2:
        body = body[:at]
    elif how == 3:
        body = body[at:] + body[:at]
    elif how == 4:
        body = body[:at] + rng.choice((*LITERALS, b'"', b"{", b"]", b"\\", b"\x00")) + body[at + 1 :]
    kind, call = ("stream", "stream") if shape in ("stream", "one line") else ("body", "predict")
    return shape, Input(kind, "POST", f"/v1/learners/{SHAPES[shape][0]}/{call}", list(HEAD), body[:limit])


def memory_of(process: int, name: str) -> int:
    """A line of /proc/PID/status, in bytes: VmHWM is the most that was ever resident."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def _calls(host: str, port: int, key: str, ending: Connection) -> None:
    """A small prediction after the other, until something is said; how long each took, shortest first."""
    head = {"Authorization": f"Bearer {key}"}
    body = json.dumps({"features": {"x": 1}, "remember": False})
    connection = http.client.HTTPConnection(host, port, timeout=600)
    waits: list[float] = []
    ending.send(None)
    while not ending.poll():
        begun = time.perf_counter()
        connection.request("POST", "/v1/learners/neighbour/predict", body, head)
        assert connection.getresponse().read()
        waits.append(time.perf_counter() - begun)
        time.sleep(0.01)
    ending.send(sorted(waits))
    connection.close()


class Neighbour:
    """Another tenant in a process of its own, who sends small predictions all the time."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self._ending, theirs = multiprocessing.get_context("spawn").Pipe()
        self._process = multiprocessing.get_context("spawn").Process(
            target=_calls, args=(host, port, key, theirs), daemon=True
        )
        self._process.start()
        theirs.close()
        self._ending.recv()

    def end(self) -> list[float]:
        """How long each reply took, in seconds, shortest first; nothing if it was left without one."""
        try:
            self._ending.send(None)
            return list(self._ending.recv())
        except (EOFError, OSError):
            return []
        finally:
            self._process.join(60)
