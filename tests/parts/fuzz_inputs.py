"""Hostile requests by the thousand: input number i of a seed is always the same one.

body       a right request whose JSON was changed at some places, or whose bytes were
header     a right body behind a changed head: fields twice, lengths that lie, hosts, origins, encodings
snapshot   a right snapshot with a changed header, array or byte, signed anew
stream     many lines, right, changed and cut, on one connection
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import numpy as np
import orjson

from feedrank import learners
from feedrank.learners import codec

KINDS = ("body", "header", "snapshot", "stream")
SHARES = (70, 12, 8, 10)

SPECS: dict[str, dict[str, Any]] = {
    "binary": {"task": "binary", "labels": ["no", "yes"]},
    "classes": {"task": "multiclass", "algorithm": "predtron", "labels": ["a", "b"]},
    "ascent": {"task": "multiclass", "algorithm": "dual-ascent", "update": "III", "labels": ["a", "b"]},
    "grades": {"task": "ordinal", "labels": ["low", "mid", "high"]},
    "sets": {"task": "multilabel", "labels": ["a", "b", "c"]},
    "ranks": {"task": "label-ranking", "algorithm": "quadratic-surrogate", "loss": "pairwise-disagreement"},
    "gauss": {"task": "multiclass", "algorithm": "predtron", "kernel": "gaussian", "budget": 20},
    "lists": {"task": "subset-ranking"},
    "ap": {"task": "subset-ranking", "algorithm": "predtron", "loss": "ap"},
    "choice": {"task": "choice"},
}
FEATURES = {"features": {"x": 1.5, "y": -2, "z": 0.25}}
ITEMS = {"items": [{"id": "d1", "features": {"x": 1}}, {"id": "d2", "features": {"x": 2, "y": 1}}]}
TRUTHS: dict[str, dict[str, Any]] = {
    "binary": {"label": "yes"},
    "classes": {"label": "a"},
    "ascent": {"label": "b"},
    "grades": {"label": "mid"},
    "sets": {"labels": ["a", "c"]},
    "ranks": {"relevance": {"a": 2, "b": 0, "c": 1}},
    "gauss": {"label": "a"},
    "lists": {"relevance": {"d1": 2}},
    "ap": {"clicks": ["d2"]},
    "choice": {"reward": 0.5, "served": {"id": "d1", "probability": 0.5}},
}
NASTY: list[Any] = [
    None, True, False, 0, -1, 1e308, -1e308, 5e-324, 1e100, 2**53, 2**63, -(2**70), "", "__class__", "__proto__", "\x00",
    "\u202e", "x" * 300, "a/../b", "0", "NaN", [], {}, [[]], [None], {"": 1}, {"__class__": 1}, ["a"] * 50, [1e300] * 20,
    {str(i): i for i in range(60)},
]  # fmt: skip
LITERALS = [
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e400",
    b"-1e400",
    b"01",
    b"1.",
    b"+1",
    b'"\\ud800"',
    b"'a'",
    b"nul",
]


@dataclass(slots=True)
class Input:
    """One request. `reply` says whether the connection must give one: a broken head may be hung up on."""

    kind: str
    method: str
    path: str
    head: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    length: bool = True
    reply: bool = True

    def wire(self) -> bytes:
        lines = [f"{self.method} {self.path} HTTP/1.1".encode()]
        lines += [name + b": " + value for name, value in self.head]
        if self.length:
            lines.append(b"Content-Length: %d" % len(self.body))
        return b"\r\n".join(lines) + b"\r\n\r\n" + self.body


def instance_of(name: str) -> dict[str, Any]:
    return ITEMS if SPECS[name]["task"] in ("subset-ranking", "choice") else FEATURES


def request_of(rng: random.Random) -> tuple[str, str, Any]:
    """A call that is right: method, path, JSON."""
    name = rng.choice(list(SPECS))
    at, instance, truth = f"/v1/learners/{name}", instance_of(name), TRUTHS[name]
    event = {**instance, **truth, "feedback_id": f"f{rng.randrange(500)}", "weight": 2}
    predict = {**instance, "top": 2, "explain": True, "prediction_id": f"p{rng.randrange(500)}"}
    experiment = f"/v1/experiments/e{rng.randrange(3)}"
    return rng.choice(
        [
            ("POST", f"{at}/predict", predict),
            ("POST", f"{at}/predict", {"instances": [instance, instance], "remember": False}),
            ("POST", f"{at}/predict", {**instance, "min_margin": 0.5, "min_version": 0}),
            ("POST", f"{at}/feedback", event),
            ("POST", f"{at}/feedback", {**instance, **truth}),
            ("POST", f"{at}/feedback", {"prediction_id": f"p{rng.randrange(500)}", **truth}),
            ("POST", f"{at}/feedback", {"events": [{**instance, **truth}, event]}),
            ("POST", f"{at}/retract", {"feedback_id": f"f{rng.randrange(500)}"}),
            ("POST", f"{at}/clicks", {"prediction_id": f"p{rng.randrange(500)}", "clicks": ["d1"]}),
            ("POST", f"{at}/evaluate", {"spec": SPECS[name], "until": 40}),
            ("PUT", f"/v1/learners/new{rng.randrange(20)}", SPECS[name]),
            ("DELETE", f"/v1/learners/new{rng.randrange(20)}", None),
            ("PUT", f"/v1/aliases/alias{rng.randrange(5)}", {"learner": name}),
            ("PUT", experiment, {"arms": ["classes", "ascent"], "method": "split", "measure": "loss"}),
            ("POST", f"{experiment}/predict", {**FEATURES, "unit": "u"}),
            ("POST", f"{experiment}/feedback", {**FEATURES, "label": "a", "unit": "u"}),
            ("POST", "/at/choice/personalizer/v1.0/rank", {"eventId": "e", "actions": [{"id": "d1", "features": [{}]}]}),
            (
                "GET",
                rng.choice(
                    [
                        at, f"{at}/history?points=3", f"{at}/labels", f"{at}/events?after=1", f"{at}/weights?label=a",
                        "/v1/learners?limit=2", "/v1/aliases?limit=1", "/v1/experiments", experiment, "/metrics", "/readyz",
                    ]
                ),
                None,
            ),
        ]
    )  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of some JSON."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from places(part, (*path, key))


def changed(value: Any, rng: random.Random) -> Any:
    """JSON with another value, another name, or nothing at some place."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        path = rng.choice(list(places(value)))
        new = copy.deepcopy(rng.choice(NASTY))
        if not path:
            if rng.random() < 0.1:
                value = new
            elif isinstance(value, dict):
                value[
                    rng.choice(("top", "explain", "labels", "weight", "items", "text", "spec", "unit", "odd"))
                ] = new
            continue
        inside = value
        for key in path[:-1]:
            inside = inside[key]
        how = rng.random()
        if how < 0.2:
            del inside[path[-1]]
        elif how < 0.3 and isinstance(inside, dict):
            inside[rng.choice(("__class__", "", "\x00", "x" * 200))] = inside.pop(path[-1])
        else:
            inside[path[-1]] = new
    return value


def mangled(data: bytes, rng: random.Random) -> bytes:
    """Bytes with some changed, cut, doubled, or a literal that JSON does not have."""
    data = data or b"{}"
    at = rng.randrange(len(data))
    how = rng.randrange(7)
    if how == 0:
        return data[:at]
    if how == 1:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    if how == 2:
        return data[:at] + rng.randbytes(rng.randrange(1, 20)) + data[at:]
    if how == 3:
        return data.replace(b"1", rng.choice(LITERALS), 1)
    if how == 4:  # the same name twice
        return data[:-1] + b"," + data[1:] if data[:1] == b"{" and len(data) > 2 else data + data
    if how == 5:
        depth = rng.choice((20, 200, 5_000))
        return b'{"features":' + b"[" * depth + b"]" * depth + b"}"
    return rng.choice((b"", b"null", b"[]", b"1", b'"x"', b"\xff\xfe", b"{}" * 40, b" " * 500))


def body_input(rng: random.Random) -> Input:
    method, path, value = request_of(rng)
    how = rng.random()
    if value is None:
        if how < 0.5:
            path += (
                ("&" if "?" in path else "?")
                + rng.choice(("limit", "cursor", "after", "points", "label"))
                + "="
            )
            path += quote(str(rng.choice(NASTY[:22]))[:80])
        elif how < 0.7:
            path = "/".join((*path.split("/")[:-1], quote(str(rng.choice(NASTY[:22]))[:80], safe="")))
        return Input("body", method, path, list(HEAD))
    body = orjson.dumps(value)
    if how < 0.6:
        body = json.dumps(changed(value, rng)).encode()
    elif how < 0.85:
        body = mangled(body, rng)
    return Input("body", method, path, list(HEAD), body)


HEAD = [(b"Host", b"127.0.0.1"), (b"Content-Type", b"application/json")]
FIELDS: list[tuple[bytes, bytes]] = [
    (b"Host", b"evil.example"), (b"Host", b""), (b"Origin", b"http://evil.example"), (b"Origin", b"null"),
    (b"Sec-Fetch-Site", b"cross-site"), (b"Content-Encoding", b"gzip"), (b"Content-Type", b"text/plain"),
    (b"Content-Type", b"application/json; charset=utf-16"), (b"Content-Type", b"\xff"),
    (b"Accept", b"text/html"), (b"Idempotency-Key", b"k" * 201), (b"Idempotency-Key", b"\xe9"),
    (b"Idempotency-Key", b""), (b"Expect", b"100-continue"), (b"Authorization", b"Bearer \xff"),
    (b"Authorization", b"Basic eA=="), (b"Transfer-Encoding", b"chunked"),
    (b"Transfer-Encoding", b"gzip, chunked"), (b"Content-Length", b"5"), (b"Content-Length", b"-1"),
    (b"Content-Length", b"x"), (b"Content-Length", b"99999999999999999999"), (b"Connection", b"upgrade"),
    (b"Upgrade", b"websocket"), (b"X", b"y" * 9_000), (b"traceparent", b"00-zz"), (b"X-Request-Id", b"\x01"),
    (b"Cookie", b";" * 500), (b"A\x00b", b"1"), (b"", b"1"),
]  # fmt: skip


def header_input(rng: random.Random) -> Input:
    method, path, value = request_of(rng)
    one = Input(
        "header", method, path, list(HEAD), b"" if value is None else orjson.dumps(value), reply=False
    )
    for _ in range(rng.choice((1, 1, 2, 4))):
        name, text = rng.choice(FIELDS)
        one.head.insert(rng.randrange(len(one.head) + 1), (name, text))
        one.length = one.length and name not in (b"Content-Length", b"Transfer-Encoding")
    if rng.random() < 0.1:
        one.head = [pair for pair in one.head if pair[0] != b"Host"]
    if rng.random() < 0.1:
        one.method = rng.choice(("BREW", "get", "", "OPTIONS", "HEAD", "PATCH", "TRACE"))
    if rng.random() < 0.1:
        one.path = rng.choice(
            ("*", "//", "/%", "/%00", "http://evil.example/v1/learners", "/v1/learners/%ff", "a", "/" * 300)
        )
    return one


def snapshots() -> dict[str, bytes]:
    """A learner of each kind that was taught a little."""
    made = {}
    for name, spec in SPECS.items():
        learner = learners.build(spec)
        for _ in range(4):
            learner.learn(instance_of(name), TRUTHS[name] if name != "choice" else {"reward": 0.5},
                          served=TRUTHS[name].get("served"))  # fmt: skip
        made[name] = learners.dump(learner)
    return made


def parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header, and the arrays as they are."""
    _, _, length = codec._START.unpack_from(data)
    start = codec._START.size
    return json.loads(data[start : start + length]), data[start + length : -32]


def signed(header: Any, arrays: bytes) -> bytes:
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + codec._START.size) % 8)
    data = codec._START.pack(codec.MAGIC, codec.FORMAT, len(text)) + text + arrays
    return data + hashlib.sha256(data).digest()


def snapshot_input(rng: random.Random, made: dict[str, bytes]) -> Input:
    data = made[rng.choice(list(made))]
    how = rng.random()
    if how < 0.2:
        data = mangled(data, rng)
    else:
        header, arrays = parts(data)
        if how < 0.6:
            header = changed(header, rng)
        elif arrays:
            changing = bytearray(arrays)
            at = rng.randrange(len(changing) // 8) * 8
            number = rng.choice((np.nan, np.inf, -1.0, 1e300, 0.0, 5e-324))
            changing[at : at + 8] = (
                np.array(number, "<f8").tobytes() if rng.random() < 0.6 else rng.randbytes(8)
            )
            arrays = bytes(changing)
        data = signed(header, arrays)
    head = [(b"Host", b"127.0.0.1"), (b"Content-Type", b"application/octet-stream")]
    return Input("snapshot", "PUT", f"/v1/learners/snap{rng.randrange(4)}/snapshot", head, data)


def stream_input(rng: random.Random) -> Input:
    name = rng.choice(list(SPECS))
    right = [{"predict": instance_of(name)}, {"feedback": {**instance_of(name), **TRUTHS[name]}}]
    lines = []
    for _ in range(rng.randrange(1, 12)):
        line = orjson.dumps(rng.choice(right))
        how = rng.random()
        if how < 0.4:
            line = json.dumps(changed(json.loads(line), rng)).encode()
        elif how < 0.6:
            line = mangled(line, rng).replace(b"\n", b"")
        lines.append(line)
    body = rng.choice((b"\n", b"\r\n")).join(lines) + rng.choice((b"\n", b""))
    head = [(b"Host", b"127.0.0.1"), (b"Content-Type", b"application/x-ndjson")]
    return Input("stream", "POST", f"/v1/learners/{name}/stream", head, body)


def input_of(seed: int, number: int, made: dict[str, bytes]) -> Input:
    """Input `number` of a seed."""
    rng = random.Random(f"{seed}:{number}")
    kind = rng.choices(KINDS, SHARES)[0]
    if kind == "snapshot":
        return snapshot_input(rng, made)
    return {"body": body_input, "header": header_input, "stream": stream_input}[kind](rng)
