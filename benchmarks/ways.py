"""Processor time of the server a call, beside another revision, and of twins that differ in nothing that costs.

    python benchmarks/ways.py [--base 1fab778] [--quick]

Over HTTP on real sockets, each server on a fresh SQLite file. The other revision is built in a worktree of its own. Both
servers are sent the same calls turn by turn, and each ratio is the median over the turns, so that a busy machine slows
both sides of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from report import Report, arguments, track
from served import HERE, Served, running, spent

BASE = "1fab778"
CONNECTIONS = 16
WORDS, LENGTH = 2_000, 20
PAIR, LABELS = ("inbox", "spam"), tuple(f"folder-{i}" for i in range(8))
TO_REACH = {"plain": 1.05, "twin": 1.3}
Json = dict[str, Any]

SPECS: dict[str, Json] = {
    "plain": {"task": "multiclass", "algorithm": "predtron"},
    "ascent": {"task": "multiclass", "algorithm": "dual-ascent"},
    "binary": {"task": "binary", "algorithm": "predtron", "labels": list(PAIR)},
    "two": {"task": "multiclass", "algorithm": "predtron", "labels": list(PAIR)},
}


class Shape(NamedTuple):
    """One way to say a call: to which learner, in which words, with which labels."""

    learner: str = "plain"
    operation: str = "feedback"
    instance: str = "features"
    options: Mapping[str, object] = MappingProxyType({})
    id: bool = False
    stream: bool = False


class Sent(NamedTuple):
    """Requests as bytes, by the connection that sends them, and the calls in them."""

    rounds: list[list[bytes]]
    calls: int


PLAIN = {
    "predict": Shape(operation="predict"),
    "feedback": Shape(),
    "a line of a stream": Shape(stream=True),
}
TWINS = {
    "an id, or none": (Shape(id=True), Shape()),
    "predict: binary, or two classes": (Shape("binary", "predict"), Shape("two", "predict")),
    "feedback: binary, or two classes": (Shape("binary"), Shape("two")),
    "predict: dual ascent, or predtron": (Shape("ascent", "predict"), Shape("plain", "predict")),
    "feedback: dual ascent, or predtron": (Shape("ascent"), Shape()),
    "predict: a text, or its words": (
        Shape(operation="predict", instance="text"),
        Shape(operation="predict", instance="words"),
    ),
    "feedback: a text, or its words": (Shape(instance="text"), Shape(instance="words")),
    "predict: defaults said, or not": (
        Shape(operation="predict", options={"explain": False, "remember": True}),
        Shape(operation="predict"),
    ),
    "feedback: default said, or not": (Shape(options={"weight": 1.0}), Shape()),
}


def body(shape: Shape, chance: random.Random) -> Json:
    """What one call says."""
    words = [f"word{int(WORDS * chance.random() ** 2)}" for _ in range(LENGTH)]
    instance: Json
    match shape.instance:
        case "text":
            instance = {"text": " ".join(words)}
        case "words":
            instance = {"features": list(dict.fromkeys(words))}
        case _:
            instance = {"features": dict.fromkeys(words, 1.0)}
    truth: Json = {}
    if shape.operation == "feedback":
        truth = {"label": chance.choice(PAIR if "labels" in SPECS[shape.learner] else LABELS)}
        if shape.id:
            truth["feedback_id"] = f"{chance.getrandbits(64):x}"
    return {**instance, **truth, **shape.options}


def request(method: str, path: str, data: bytes) -> bytes:
    """The bytes of a request to a learner."""
    head = f"{method} /v1/learners/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json"
    return f"{head}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


def prepared(shape: Shape, calls: int, chance: random.Random) -> Sent:
    """The requests of one turn, which both sides are sent."""
    bodies = [body(shape, chance) for _ in range(calls)]
    if shape.stream:
        asks = ({"predict": {"features": each["features"], "remember": False}} for each in bodies)
        learns = ({"feedback": each} for each in bodies)
        both = [json.dumps(line) for pair in zip(asks, learns, strict=True) for line in pair]
        return Sent([[request("POST", f"{shape.learner}/stream", "\n".join(both).encode())]], len(both))
    path = f"{shape.learner}/{shape.operation}"
    messages = [request("POST", path, json.dumps(each).encode()) for each in bodies]
    return Sent([messages[i : i + CONNECTIONS] for i in range(0, calls, CONNECTIONS)], calls)


class Side:
    """A server, and the connections to it."""

    def __init__(self, served: Served) -> None:
        self._pid, place = served.pid, urlsplit(served.url)
        self._sockets = [socket.create_connection((place.hostname, place.port)) for _ in range(CONNECTIONS)]
        self._files = [each.makefile("rb") for each in self._sockets]
        for name, spec in SPECS.items():
            message = request("PUT", name, json.dumps(spec).encode())
            self._sockets[0].sendall(message)
            self._read(0)

    def __call__(self, sent: Sent) -> float:
        """Microseconds of processor a call."""
        before = spent(self._pid)
        for messages in sent.rounds:
            for connection, message in zip(self._sockets, messages, strict=False):
                connection.sendall(message)
            for number in range(len(messages)):
                self._read(number)
        return 1e6 * (spent(self._pid) - before) / sent.calls

    def _read(self, number: int) -> None:
        """One reply."""
        file = self._files[number]
        status, length = file.readline(), None
        while (line := file.readline().lower()) != b"\r\n":
            if line.startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        data = b""
        if length is not None:
            data = file.read(length)
        else:
            while size := int(file.readline(), 16):
                data += file.read(size + 2)[:-2]
            file.readline()
        if not status.split()[1].startswith(b"2") or b'"status":4' in data:
            raise RuntimeError(data[:1000].decode())

    def close(self) -> None:
        for connection in (*self._files, *self._sockets):
            connection.close()


@contextlib.contextmanager
def tree(revision: str, folder: Path) -> Iterator[Path]:
    """A worktree of a revision, built."""
    root, place = HERE.parent, folder / "tree"
    git = ["git", "-C", str(root), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", place, revision], check=True)
    try:
        build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        subprocess.run(build, cwd=place, check=True, capture_output=True)
        yield place
    finally:
        subprocess.run([*git, "remove", "--force", place], check=True)


@contextlib.contextmanager
def side(root: Path, store: Path) -> Iterator[Side]:
    """The server of a tree on a fresh store."""
    code = f"import sys; sys.path.insert(0, {str(root)!r}); from feedrank.cli import main; main()"
    with running("-c", code, "serve", "--port", "0", "--store", f"sqlite:{store}") as served:
        one = Side(served)
        try:
            yield one
        finally:
            one.close()


def main() -> None:
    parser = arguments(__doc__, "ways")
    parser.add_argument("--base", default=BASE, help=f"the revision to compare with ({BASE})")
    options = parser.parse_args()
    turns, calls = (2, 160) if options.quick else (9, 480)
    report, chance = Report("Ways of a call", options.out), random.Random(35)
    every = [*PLAIN.values(), *(shape for pair in TWINS.values() for shape in pair)]
    shapes = list({repr(shape): shape for shape in every}.values())
    times: dict[str, list[tuple[float, float]]] = {repr(shape): [] for shape in shapes}
    os.environ.pop("FEEDRANK_KEYS_FILE", None)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        base = stack.enter_context(tree(options.base, folder))
        sides = [
            stack.enter_context(side(root, folder / f"{name}.db"))
            for name, root in (("new", HERE.parent), ("base", base))
        ]
        for turn in track(range(turns + 1), "turns"):
            for shape in shapes:
                sent = prepared(shape, calls if turn else calls // 4, chance)
                new, old = (one(sent) for one in sides)
                if turn:  # the first one warms up
                    times[repr(shape)].append((new, old))
    rows: list[list[object]] = []
    for name, shape in PLAIN.items():
        figures = times[repr(shape)]
        ratio = median(new / old for new, old in figures)
        rows.append([name, *middle(figures), f"{ratio:.2f}", TO_REACH["plain"]])
    report.table(["plain shape", "us of processor", options.base, "ratio", "at most"], rows)
    rows = []
    for name, (shape, twin) in TWINS.items():
        both = list(zip(times[repr(shape)], times[repr(twin)], strict=True))
        now, then = (f"{median(one[at] / other[at] for one, other in both):.2f}" for at in (0, 1))
        figures = [middle(times[repr(one)])[0] for one in (shape, twin)]
        rows.append([name, *figures, now, then, TO_REACH["twin"]])
    report.table(["twins", "us, the first", "us, the other", "ratio", options.base, "at most"], rows)


def middle(figures: list[tuple[float, float]]) -> list[float]:
    """The medians of both sides."""
    return [median(each[at] for each in figures) for at in (0, 1)]


if __name__ == "__main__":
    main()
